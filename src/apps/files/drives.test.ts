/** What a folder can be kept in step with, and choosing it: by the command line and by the API. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startFilesApi, until } from './api/files-api.suite.ts'
import { ANN, FilesHome } from './cli/files.suite.ts'

const DRIVES = [
  { account: ANN, type: 'business' as const },
  { account: ANN, name: 'Documents', site: 'Marketing' },
  { account: ANN, name: 'Contracts', site: 'Legal' },
]

const BEN = 'ben@example.com'

type Listed = { account: string; drives: { id: string; name: string; type: string }[]; hint: string | null }

describe('files drives', () => {
  let world: FilesHome
  before(async () => {
    world = await FilesHome.start({ drives: DRIVES, access: 'shared' })
    world.sim.onedrive.drive('Documents').device.write('Plan.txt', 'of the team')
  })
  after(() => world.close())

  const list = async (): Promise<Listed> =>
    JSON.parse((await world.run('files', 'drives', '--json')).stdout) as Listed

  test("lists the account's own drive and the libraries of the sites that it follows", async () => {
    const { account, drives, hint } = await list()
    assert.equal(account, ANN)
    assert.deepEqual(
      drives.map(({ name, type }) => `${name} ${type}`),
      ['OneDrive business', 'Marketing/Documents documentLibrary', 'Legal/Contracts documentLibrary'],
    )
    assert.match(hint ?? '', /found by its link/)
    const { stdout, stderr } = await world.run('files', 'drives')
    assert.match(stdout, /Marketing\/Documents/)
    assert.match(stderr, /tidemark files sync FOLDER --drive NAME, or with its id/)
  })

  test('a library is chosen by the name under which it is listed, and kept in step both ways', async () => {
    const folder = join(world.place, 'team')
    mkdirSync(folder)
    const synced = await world.run('files', 'sync', folder, '--drive', 'marketing/documents')
    assert.equal(synced.code, 0, synced.stderr)
    assert.equal(readFileSync(join(folder, 'Plan.txt'), 'utf8'), 'of the team')
    assert.equal(world.sim.onedrive.drive(ANN).device.has('Plan.txt'), false)
  })

  test('one that is not there is answered with those that are', async () => {
    const folder = join(world.place, 'other')
    const { code, stderr } = await world.run('files', 'sync', folder, '--drive', 'Sales/Documents')
    assert.equal(code, 2)
    assert.match(stderr, /has no drive Sales\/Documents[\s\S]*Marketing\/Documents \(/)
  })
})

test('an account without that permission is told how to get at libraries, and sees its own drive alone', async () => {
  const world = await FilesHome.start({ drives: DRIVES })
  try {
    const { stdout, stderr } = await world.run('files', 'drives')
    assert.doesNotMatch(stdout, /Marketing/)
    assert.match(stderr, /tidemark account add onedrive --shared --user ann@example\.com/)
    const library = world.sim.onedrive.drive('Documents').id
    const { code } = await world.run('files', 'sync', join(world.place, 'x'), '--drive', library)
    assert.notEqual(code, 0, 'a library by its id is not opened either')
  } finally {
    await world.close()
  }
})

test('the API lists drives, and adds a folder for one of them', async () => {
  const world = await startFilesApi()
  try {
    assert.equal((await world.get('/api/files/drives')).status, 400, 'no account is connected')
    await world.connect()
    const { status, body } = await world.get('/api/files/drives')
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      body.drives.map(({ name }: { name: string }) => name),
      ['OneDrive'],
    )
    const added = await world.add({ drive: body.drives[0].id })
    assert.equal(added.status, 201, JSON.stringify(added.body))
    const other = await world.post('/api/files/folders', { path: join(world.place, 'b'), drive: 'No such' })
    assert.deepEqual([other.status, other.body.code], [400, 'no-drive'])
  } finally {
    await world.close()
  }
})

test('the API lists shared folders, adds one, and says when it is withdrawn and when it goes on', async () => {
  const world = await startFilesApi({ others: [{ account: BEN }] })
  try {
    const ben = world.sim.onedrive.drive(BEN)
    ben.device.write('Team/plan.txt', 'the plan')
    ben.share('Team', ANN, 'read')
    await world.connect('shared')
    const { body } = await world.get('/api/files/drives')
    assert.equal(body.isWide, true)
    const [, shared] = body.drives
    assert.deepEqual([shared.name, shared.type, shared.owner], ['Team (ben)', 'sharedFolder', 'ben'])
    const added = await world.add({ drive: shared.id })
    assert.equal(added.status, 201, JSON.stringify(added.body))
    assert.match(added.body.text, /ben shares with ann@example\.com for reading: changes only come here/)
    await world.settled()
    assert.equal(world.read('plan.txt'), 'the plan')
    const folder = async () => (await world.get('/api/files/folders/docs')).body
    assert.deepEqual([(await folder()).sharedBy, (await folder()).mode], ['ben', 'download-only'])

    ben.unshare('Team', ANN)
    await world.post('/api/files/folders/docs/sync', {})
    await until(async () => (await folder()).pauseCode === 'share-gone')
    assert.equal((await folder()).state, 'needs you')
    assert.match((await folder()).text, /does not share it with you any more\. All files here stay/)
    assert.equal(world.read('plan.txt'), 'the plan')
    const held = await world.post('/api/files/folders/docs/sync', {})
    assert.match(held.body.text, /Paused, so it waits/)

    ben.share('Team', ANN, 'read')
    ben.device.write('Team/plan.txt', 'a newer plan')
    await world.post('/api/files/folders/docs/sync', {})
    await until(async () => world.read('plan.txt') === 'a newer plan')
    assert.equal((await folder()).pauseCode, null)
  } finally {
    await world.close()
  }
})
