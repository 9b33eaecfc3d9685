import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Told, told } from '../../../cli/told.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'
const home = mkdtempSync(join(tmpdir(), 'tidemark-drive-cli-'))
let sim: Sim

before(async () => {
  sim = await startSim({ drive: { users: [ANN, BEN], documents: 0, quota: { unitsPerMinute: null } } })
  writeFileSync(join(home, 'key.json'), JSON.stringify(sim.drive.serviceAccount()))
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function tidemark(...args: string[]): Promise<Told> {
  const env = {
    TIDEMARK_HOME: home,
    TIDEMARK_SEARCH_EMBEDDING: 'off',
    TIDEMARK_GOOGLE_DRIVE_API_URL: sim.baseUrl,
    TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: sim.drive.tokenUrl,
  }
  return told(args, env)
}

test('Drives are connected, indexed, looked at and forgotten by commands', async () => {
  const { world } = sim.drive
  const plan = world.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
  world.share(plan.id, { type: 'user', role: 'reader', email: BEN })
  world.create({ name: 'Photo.png', by: ANN, mimeType: 'image/png', content: 'png' })
  for (const user of [ANN, BEN]) {
    const key = join(home, 'key.json')
    const added = await tidemark('account', 'add', 'drive', '--service-account', key, '--user', user)
    assert.equal(added.code, 0, added.err)
  }
  const synced = await tidemark('drive', 'sync')
  assert.equal(synced.code, 0, synced.err)
  assert.match(synced.out, /ann@example\.com: done; Drive lists 2 = 1 indexed \+ 1 skipped \+ 0 failed/)
  const status = await tidemark('drive', 'status', '--account', ANN)
  assert.equal(status.code, 0, status.err)
  assert.match(status.out, /skipped +1 unsupported-type/)
  assert.match((await tidemark('drive', 'skipped')).out, /Photo\.png.*unsupported-type/)
  assert.match((await tidemark('drive', 'users')).out, /ben@example\.com.*completed/)
  const who = await tidemark('drive', 'who', 'Plan.txt')
  assert.match(who.out, /ann@example\.com\s+owner\s+own/)
  assert.match(who.out, /ben@example\.com\s+reader/)
  assert.equal((await tidemark('drive', 'who', 'Nothing.txt')).code, 2)
  assert.match((await tidemark('drive', 'who', `https://drive.google.com/open?id=${plan.id}`)).out, /owner/)
  const nobody = await tidemark('search', 'apples', '--as', 'nobody')
  assert.equal(nobody.code, 2)
  assert.match(nobody.err, /There is no user nobody\.\n.*There are: owner\./)
  assert.equal((await tidemark('drive', 'sync', '--relist')).code, 0)
  assert.equal((await tidemark('account', 'remove', BEN, '--yes')).code, 0)
})
