import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../base/clock.ts'
import { TOKEN, withToken } from '../../../server/server.suite.ts'
import { createServer, createServices } from '../../../server/server.ts'
import { catalog } from '../../catalog.ts'
import { openSearchWorld } from '../../search/search-world.suite.ts'
import { SERVICE } from '../pipeline.ts'
import { ingestModule } from './module.ts'

const SHOWN = ['shards', 'quarantine', 'unparsed', `shards/${'0'.repeat(32)}`]

test('a pipeline of another is as one that is not there; that an admin looks into it is written down', async () => {
  const world = await openSearchWorld({ search: { embedding: 'off' } })
  const services = createServices(world.runtime, { clock: systemClock, catalog })
  const server = createServer({
    services,
    modules: [ingestModule],
    checkAnswers: true,
    token: TOKEN,
    onError: (thrown) => assert.fail(String(thrown)),
  })
  try {
    const { accounts, users } = world.runtime
    const sealed = new Uint8Array([1])
    await accounts.add({ service: SERVICE, name: 'drops', settings: {}, sealed, userId: world.bob.id })
    const ask = async (token: string, path: string): Promise<Response> =>
      server.app.request(`/api/ingest/pipelines/${path}`, withToken({}, token))
    for (const path of SHOWN) {
      const [hidden, absent] = [
        await ask(world.tokens.ann, `drops/${path}`),
        await ask(world.tokens.ann, `none/${path}`),
      ]
      assert.deepEqual([hidden.status, absent.status], [404, 404], path)
      assert.equal((await hidden.text()).replaceAll('drops', 'none'), await absent.text())
    }
    for (const path of SHOWN.slice(0, 3))
      assert.equal((await ask(world.tokens.bob, `drops/${path}`)).status, 200)
    assert.deepEqual(await users.audit({ limit: 10 }), [])
    for (const path of SHOWN) await ask(TOKEN, `drops/${path}`)
    assert.deepEqual(
      (await users.audit({ limit: 10 })).map(({ action, subject }) => `${action} ${subject}`).sort(),
      [
        'view-as bob: listed objects of drops',
        `view-as bob: looked at the object ${'0'.repeat(32)} of drops`,
        'view-as bob: read messages that nobody understood of drops',
        'view-as bob: read quarantined records of drops',
      ],
    )
  } finally {
    await server.close()
    await services.closeServices()
    await world.close()
  }
})
