/** Setting up the client of a service through the API: who may, what is kept, and that a secret never comes back. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TOKEN_BYTES, tokenText } from '../../../ledger/users.ts'
import { type Answer, type MailWorld, startMailApi } from './mail-api.suite.ts'

const PATH = '/api/oauth-clients/gmail'

let world: MailWorld
let client: { id: string; secret: string }
before(async () => {
  world = await startMailApi()
  const { gmail } = world.services.config
  client = { id: gmail.client_id!, secret: gmail.client_secret! }
  delete gmail.client_id
  delete gmail.client_secret
})
after(() => world.close())

const put = (body: object, token?: string): Promise<Answer> => world.put(PATH, body, token)
const isSetUp = async (service: string): Promise<boolean> => {
  const { body } = await world.get('/api/accounts')
  return body.services.find((one: { name: string }) => one.name === service).isSetUp
}
const connect = (service: string): Promise<Answer> =>
  world.post('/api/accounts/connect', { service, access: 'readonly' })

describe('a service that nobody has set up', () => {
  test('says so, shows the steps, and lets nobody connect', async () => {
    const { status, body } = await world.get(PATH)
    assert.equal(status, 200)
    assert.equal(body.client, null)
    assert.deepEqual(
      body.steps.map(({ id }: { id: string }) => id),
      ['project', 'api', 'consent', 'client', 'enter'],
    )
    assert.equal(await isSetUp('gmail'), false)
    const refused = await connect('gmail')
    assert.deepEqual([refused.status, refused.body.code], [409, 'no-client'])
    assert.equal((await world.post(`${PATH}/check`)).status, 409)
    assert.equal((await world.remove(PATH)).status, 404)
  })

  test('keeps nothing that is not right, and says which step it is about', async () => {
    for (const wrong of [
      { ...client, secret: 'GOCSPX-of-another' },
      { ...client, id: 'my-project' },
      { id: client.id },
    ]) {
      const { status, body } = await put(wrong)
      assert.deepEqual([status, body.code, body.errors[0].where], [422, 'client-refused', 'enter'])
      assert.ok(!JSON.stringify(body).includes('GOCSPX-'.concat('of-another')), 'a secret came back')
    }
    assert.equal(await isSetUp('gmail'), false)
  })

  test('is set up by an admin alone, at once, for every service of the provider; members just connect', async () => {
    const member = await world.services.users.add({ name: 'eve', role: 'member' })
    const token = tokenText(new Uint8Array(TOKEN_BYTES).fill(7))
    await world.services.users.addToken(member.id, { label: '', token })
    assert.equal((await put(client, token)).status, 403)
    assert.equal((await world.get(PATH, token)).status, 403)
    const kept = await put({ id: ` ${client.id} `, secret: client.secret })
    assert.equal(kept.status, 200, JSON.stringify(kept.body))
    assert.deepEqual(
      kept.body.checks.map(({ step, state }: { step: string; state: string }) => `${step} ${state}`),
      ['enter ok', 'client ok', 'api unknown'],
    )
    assert.equal(await isSetUp('gmail'), true)
    assert.equal(await isSetUp('drive'), true)
    assert.equal(await isSetUp('onedrive'), false)
    assert.equal((await connect('gmail')).status, 200)
    assert.equal((await connect('drive')).status, 200)
    assert.equal((await world.get('/api/accounts', token)).body.services[0].isSetUp, true)
    const [entry] = await world.services.users.audit({ limit: 1 })
    assert.deepEqual([entry?.action, entry?.subject], ['client-set', `google: ${client.id}`])
  })

  test('tells the id of what is kept and never its secret, which no file holds readable', async () => {
    const { body } = await world.get(PATH)
    assert.deepEqual([body.client.id, body.client.hasSecret, body.client.setBy], [client.id, true, null])
    const { home } = world.services
    const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
    const texts = files.map((one) => readFileSync(join(one.parentPath, one.name), 'latin1'))
    for (const text of [JSON.stringify(body), ...texts]) assert.ok(!text.includes(client.secret))
    assert.ok(texts.length > 0)
  })

  test('is checked again, and forgotten; what the configuration says wins and is named', async () => {
    assert.equal((await world.post(`${PATH}/check`)).body.checks[0].state, 'ok')
    world.services.config.gmail.client_id = 'of-the-file'
    const { body } = await world.get(PATH)
    assert.deepEqual([body.client.id, body.client.setBy], ['of-the-file', 'gmail.client_id'])
    const refused = await put(client)
    assert.deepEqual([refused.status, refused.body.code], [409, 'client-configured'])
    delete world.services.config.gmail.client_id
    assert.equal((await world.remove(PATH)).status, 200)
    assert.equal(await isSetUp('gmail'), false)
  })
})
