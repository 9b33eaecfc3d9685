/** What others share: how it is found, what a guest may do there, and what delta tells of it. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import type { SimDrive } from './sim-drive.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'
const CAT = 'cat@example.com'
const WIDE = ['Files.ReadWrite.All']

type Json = Record<string, unknown> & { value?: Json[]; error?: { code: string } }
type Answer = { status: number; json: Json }

let sim: Sim
let ann: SimDrive
/** Personal. */
let ben: SimDrive
/** Business. */
let cat: SimDrive
let token: string

before(async () => {
  const drives = [{ account: ANN }, { account: BEN }, { account: CAT, type: 'business' as const }]
  sim = await startSim({ onedrive: { drives } })
  ann = sim.onedrive.drive(ANN)
  ben = sim.onedrive.drive(BEN)
  cat = sim.onedrive.drive(CAT)
  token = sim.onedrive.issue(ANN, WIDE).accessToken
})
after(() => sim.close())
beforeEach(() => {
  for (const { device } of [ben, cat]) {
    if (device.has('Projects')) device.delete('Projects')
    device.write('Projects/plan.txt', 'plan')
    device.write('Projects/deep/note.txt', 'note')
    device.write('private.txt', 'mine')
  }
})

async function call(
  verb: string,
  path: string,
  { body, headers = {}, as = token }: { body?: unknown; headers?: Record<string, string>; as?: string } = {},
): Promise<Answer> {
  const answer = await fetch(path.startsWith('http') ? path : sim.onedrive.graphUrl + path, {
    method: verb,
    headers: { authorization: `Bearer ${as}`, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return { status: answer.status, json: isJson ? (JSON.parse(text) as Json) : {} }
}

const get = (path: string): Promise<Answer> => call('GET', path)
const names = ({ json }: Answer): unknown[] => json.value!.map(({ name }) => name)
const at = (of: SimDrive, path: string): string => `/drives/${of.id}/items/${of.device.item(path).id}`

describe('what is shared', () => {
  test('is listed with where it is and whose, until it is withdrawn or deleted', async () => {
    const shared = ben.share('Projects', ANN)
    const [row] = (await get('/me/drive/sharedWithMe')).json.value!
    const remote = row!.remoteItem as Json
    assert.equal(remote.id, shared.id)
    assert.deepEqual(remote.parentReference, { driveId: ben.id, driveType: 'personal' })
    assert.equal((remote.shared as { owner: { user: Json } }).owner.user.email, BEN)
    ann.setQuirks({ sharedWithMeEnded: true })
    assert.deepEqual((await get('/me/drive/sharedWithMe')).json.value, [])
    ann.setQuirks({ sharedWithMeEnded: false })
    ben.unshare('Projects', ANN)
    assert.deepEqual((await get('/me/drive/sharedWithMe')).json.value, [])
  })

  test('is read and changed by its ids, and nothing beside it is', async () => {
    for (const drive of [ben, cat]) {
      drive.share('Projects', ANN)
      assert.deepEqual(names(await get(`${at(drive, 'Projects')}/children`)), ['deep', 'plan.txt'])
      const put = await call('PUT', `${at(drive, 'Projects')}:/new.txt:/content`, { body: 'of ann' })
      assert.equal(put.status, 201)
      assert.equal(drive.device.read('Projects/new.txt')?.toString(), 'of ann')
      const outside = drive === ben ? 404 : 403
      assert.equal((await get(at(drive, 'private.txt'))).status, outside)
      assert.equal((await get(`/drives/${drive.id}/root`)).status, outside)
      assert.equal((await get(`/drives/${drive.id}/root:/Projects`)).status, outside)
      assert.equal((await get(`/drives/${drive.id}`)).status, 403)
      const away = { parentReference: { id: drive.state.root.id } }
      assert.equal((await call('PATCH', at(drive, 'Projects/plan.txt'), { body: away })).status, outside)
      drive.unshare('Projects', ANN)
      assert.equal((await get(at(drive, 'Projects/plan.txt'))).status, outside)
    }
  })

  test('takes a permission for what is not one’s own', async () => {
    ben.share('Projects', ANN)
    const narrow = sim.onedrive.issue(ANN).accessToken
    assert.equal((await call('GET', at(ben, 'Projects'), { as: narrow })).status, 403)
  })

  test('for reading refuses every change, and says so to the guest alone', async () => {
    ben.share('Projects', ANN, 'read')
    const file = at(ben, 'Projects/plan.txt')
    assert.equal((await get(file)).status, 200)
    assert.equal((await call('PUT', `${file}/content`, { body: 'x' })).status, 403)
    assert.equal((await call('DELETE', file)).status, 403)
    assert.equal((await call('PATCH', file, { body: { name: 'b.txt' } })).status, 403)
    const folder = { name: 'new', folder: {} }
    assert.equal((await call('POST', `${at(ben, 'Projects')}/children`, { body: folder })).status, 403)
    const upload = `${at(ben, 'Projects')}:/new.txt:/createUploadSession`
    assert.equal((await call('POST', upload, { body: {} })).status, 403)
    const given = await get(`${at(ben, 'Projects/deep')}/permissions`)
    assert.deepEqual(
      given.json.value!.map(({ roles }) => roles),
      [['read']],
    )
  })

  test('by a link is found by who has the link, and stays reachable once it is redeemed', async () => {
    const own = sim.onedrive.issue(CAT, WIDE).accessToken
    const body = { type: 'view', scope: 'organization' }
    const { json } = await call('POST', `${at(cat, 'Projects')}/createLink`, { as: own, body })
    const share = `u!${Buffer.from((json.link as { webUrl: string }).webUrl).toString('base64url')}`
    const headers = { prefer: 'redeemSharingLink' }
    const found = await call('GET', `/shares/${share}/driveItem`, { headers })
    assert.deepEqual([found.status, found.json.name], [200, 'Projects'])
    assert.equal((await get(at(cat, 'Projects/plan.txt'))).status, 200)
    assert.equal((await call('DELETE', at(cat, 'Projects/plan.txt'))).status, 403)
    assert.equal((await get('/shares/u!bm93aGVyZQ/driveItem')).status, 404)
  })
})

describe('delta of a folder', () => {
  const link = ({ json }: Answer): string => String(json['@odata.deltaLink'] ?? json['@odata.nextLink'])
  const rows = ({ json }: Answer): string[] =>
    json.value!.map(({ name, deleted }) => `${deleted ? '-' : '+'}${name}`)

  test('names what is in it and nothing above or beside it, in pages', async () => {
    ben.share('Projects', ANN)
    let page = await get(`${at(ben, 'Projects')}/delta?$top=2`)
    const seen = rows(page)
    while (page.json['@odata.nextLink'] !== undefined) {
      page = await get(link(page))
      seen.push(...rows(page))
    }
    assert.deepEqual([...new Set(seen)].sort(), ['+Projects', '+deep', '+note.txt', '+plan.txt'])
    ben.device.write('private.txt', 'other')
    ben.device.write('Projects/deep/new.txt', 'new')
    page = await get(link(page))
    assert.deepEqual(rows(page), ['+Projects', '+deep', '+new.txt'])
    assert.deepEqual(rows(await get(link(page))), [])
  })

  test('what is moved out of it is deleted there, and what is moved into it comes with all that is in it', async () => {
    ben.share('Projects', ANN)
    ben.device.write('Outside/sub/far.txt', 'far')
    let page = await get(`${at(ben, 'Projects')}/delta`)
    ben.device.move('Projects/deep', 'deep')
    page = await get(link(page))
    assert.deepEqual(rows(page), ['-deep'])
    ben.device.write('deep/note.txt', 'changed outside')
    ben.device.move('deep', 'Projects/back')
    ben.device.move('Outside', 'Projects/Outside')
    page = await get(link(page))
    assert.deepEqual(rows(page).sort(), ['+Outside', '+Projects', '+back', '+far.txt', '+note.txt', '+sub'])
  })

  test('that is withdrawn is not found, or by a switch looks as if all in it were deleted', async () => {
    ben.share('Projects', ANN)
    const page = await get(`${at(ben, 'Projects')}/delta`)
    ben.unshare('Projects', ANN)
    assert.equal((await get(link(page))).status, 404)
    ben.setQuirks({ withdrawnListsDeleted: true })
    assert.deepEqual(rows(await get(link(page))).sort(), ['-deep', '-note.txt', '-plan.txt'])
    ben.setQuirks({ withdrawnListsDeleted: false })
  })

  test('is refused on Business, unless that has learned it', async () => {
    cat.share('Projects', ANN)
    const refusal = await get(`${at(cat, 'Projects')}/delta`)
    assert.deepEqual([refusal.status, refusal.json.error?.code], [501, 'notSupported'])
    cat.setQuirks({ folderDelta: true })
    const page = await get(`${at(cat, 'Projects')}/delta`)
    assert.equal((await get(link(page))).status, 200)
    cat.setQuirks({ folderDelta: false })
  })
})

test('a shortcut is in the own drive, points elsewhere, and may be shown only to who asks for it', async () => {
  const shared = ben.share('Projects', ANN)
  ann.device.shortcut('Projects of Ben', { drive: ben.state, item: shared })
  const [row] = (await get('/me/drive/root/children')).json.value!
  assert.equal(row!.name, 'Projects of Ben')
  assert.equal((row!.remoteItem as Json).id, shared.id)
  assert.equal(row!.folder, undefined)
  assert.ok(names(await get('/me/drive/root/delta')).includes('Projects of Ben'))
  ann.setQuirks({ shortcutsHidden: true })
  assert.deepEqual(names(await get('/me/drive/root/children')), [])
  assert.deepEqual(names(await get('/me/drive/root/delta')), ['root'])
  const headers = { prefer: 'Include-Feature=AddToOneDrive' }
  assert.deepEqual(names(await call('GET', '/me/drive/root/children', { headers })), ['Projects of Ben'])
})
