import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import type { WhoSees } from './oracle.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'

let sim: Sim
before(async () => {
  sim = await startSim({ drive: { users: [ANN] } })
})
after(() => sim.close())

type Answer = Record<string, unknown> & { id: string }

async function control(
  what: string,
  body?: unknown,
  method = body === undefined ? 'GET' : 'POST',
): Promise<Answer> {
  const answer = await fetch(`${sim.controlUrl}/drive${what}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const json = (await answer.json()) as Answer
  assert.equal(answer.status, 200, JSON.stringify(json))
  return json
}

async function seenBy(address: string): Promise<string[]> {
  const { users } = (await control('/who-sees')) as unknown as { users: WhoSees }
  const byId = new Map(users[address]!.items.map(({ id, name }) => [id, name]))
  return users[address]!.find.map((id) => byId.get(id)!).sort()
}

async function list(address: string, query = ''): Promise<Response> {
  const { accessToken } = sim.drive.issue(address)
  return fetch(`${sim.baseUrl}/drive/v3/files?${query}`, {
    headers: { authorization: `Bearer ${accessToken}` },
  })
}

describe('the control API of Google Drive', () => {
  test('makes a world, changes it, and says who sees what', async () => {
    await control('/users', { address: BOB, name: 'Bob B.' })
    await control('/groups', { address: 'all@example.com', members: [ANN] })
    const drive = await control('/drives', { name: 'Team', members: [{ email: ANN, role: 'organizer' }] })
    const folder = await control('/folder', { name: 'Folder', by: ANN })
    const file = await control('/file', { name: 'a.txt', parent: folder.id, by: ANN, text: 'one' })
    await control('/file', { name: 'team.bin', parent: drive.id, by: ANN, base64: 'AAEC' })
    await control('/shortcut', { name: 'short', by: ANN, target: file.id })
    assert.deepEqual(await seenBy(BOB), [])
    await control('/share', { id: folder.id, type: 'user', role: 'reader', email: BOB })
    assert.deepEqual(await seenBy(BOB), ['a.txt'])
    await control('/share', { id: drive.id, type: 'group', role: 'reader', email: 'all@example.com' })
    await control('/groups', { address: 'all@example.com', members: [BOB] }, 'PUT')
    assert.deepEqual(await seenBy(BOB), ['a.txt', 'team.bin'])
    await control('/limit', { id: folder.id, isLimited: true })
    assert.deepEqual(await seenBy(BOB), ['a.txt', 'team.bin'], 'what is given on the folder itself stays')
    await control('/rename', { id: file.id, name: 'b.txt' })
    await control('/edit', { id: file.id, text: 'two', by: ANN })
    await control('/move', { id: file.id, parent: drive.id })
    await control('/trash', { id: file.id })
    assert.deepEqual(await seenBy(BOB), ['team.bin'])
    await control('/untrash', { id: file.id })
    assert.deepEqual(await seenBy(BOB), ['b.txt', 'team.bin'])
    await control('/unshare', { id: drive.id, whose: 'all@example.com' })
    assert.deepEqual(await seenBy(BOB), [])
    await control('/open', { id: file.id, address: BOB })
    await control('/share', { id: file.id, type: 'anyone', role: 'reader' })
    assert.deepEqual(await seenBy(BOB), ['b.txt'])
    await control('/delete', { id: file.id })
    assert.deepEqual(await seenBy(BOB), [])
    const about = await control('')
    assert.equal((about.users as unknown[]).length, 2)
  })

  test('refuses a file or a drive, and takes what makes no sense as a mistake', async () => {
    const drive = await control('/drives', { name: 'Far', members: [{ email: ANN, role: 'organizer' }] })
    await control('/refuse', { id: drive.id, status: 404 })
    const params = `corpora=drive&driveId=${drive.id}&includeItemsFromAllDrives=true&supportsAllDrives=true`
    assert.equal((await list(ANN, params)).status, 404)
    await control('/allow', { id: drive.id })
    assert.equal((await list(ANN, params)).status, 200)
    const wrong = await fetch(`${sim.controlUrl}/drive/share`, {
      method: 'POST',
      body: '{"id":"x","type":"cat"}',
    })
    assert.equal(wrong.status, 400)
    const none = await fetch(`${sim.controlUrl}/drive/trash`, { method: 'POST', body: '{"id":"nothing"}' })
    assert.equal(none.status, 404)
  })

  test('a world may begin with documents that are refused', async () => {
    const world = await startSim({ drive: { users: [ANN], documents: 40, kinds: 'text', refused: 4 } })
    const reasons = [...world.drive.refusals.values()].map(({ status, reason }) => `${status} ${reason}`)
    assert.deepEqual(reasons, [
      '403 cannotDownloadFile',
      '403 insufficientFilePermissions',
      '403 cannotDownloadAbusiveFile',
      '403 domainPolicy',
    ])
    await world.close()
  })

  test('counts what was fetched, file by file', async () => {
    const file = await control('/file', { name: 'count.txt', by: ANN, text: 'x' })
    await fetch(`${sim.controlUrl}/counters`, { method: 'DELETE' })
    const headers = { authorization: `Bearer ${sim.drive.issue(ANN).accessToken}` }
    for (let at = 0; at < 2; at++) {
      await (await fetch(`${sim.baseUrl}/drive/v3/files/${file.id}?alt=media`, { headers })).arrayBuffer()
    }
    assert.deepEqual((await control('/counts')).downloads, { [file.id]: 2 })
    const counters = (await (await fetch(`${sim.controlUrl}/counters`)).json()) as { requests: object }
    assert.deepEqual(counters.requests, { control: { 200: 2 }, 'files.media': { 200: 2 } })
  })

  test('faults strike listings in the middle, empty their pages, and change what is listed', async () => {
    for (let at = 0; at < 5; at++) await control('/file', { name: `page ${at}`, by: ANN, text: 'x' })
    const q = `q=${encodeURIComponent("name contains 'page'")}&pageSize=2`
    type Page = { files: { name: string }[]; nextPageToken: string }
    const first = (await (await list(ANN, q)).json()) as Page
    sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['files.list'], nextPage: true, max: 1 }] })
    assert.equal((await list(ANN, q)).status, 200)
    assert.equal((await list(ANN, `${q}&pageToken=${first.nextPageToken}`)).status, 500)
    sim.faults.set({ rules: [{ do: 'empty-page', methods: ['files.list'], max: 1 }] })
    const empty = (await (await list(ANN, `${q}&pageToken=${first.nextPageToken}`)).json()) as Page
    assert.deepEqual(empty.files, [])
    const second = (await (await list(ANN, `${q}&pageToken=${empty.nextPageToken}`)).json()) as Page
    assert.equal(second.files.length, 2)
    assert.notEqual(second.files[0]!.name, first.files[0]!.name)
    const before = sim.drive.world.items.size
    sim.faults.set({ rules: [{ do: 'mutate', what: 'arrive', count: 3, methods: ['files.list'] }] })
    await list(ANN, q)
    assert.equal(sim.drive.world.items.size, before + 3)
    sim.faults.clear()
  })
})
