/** Items, listings and delta over HTTP; bytes are in transfers.test.ts, oddities in quirks.test.ts. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import type { SimDrive } from './sim-drive.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'

type Json = Record<string, unknown> & { value?: Json[]; error?: { code: string; message: string } }
type Answer = { status: number; headers: Headers; json: Json }

let sim: Sim
let drive: SimDrive
let token: string

before(async () => {
  sim = await startSim({
    onedrive: {
      drives: [
        { account: ANN, type: 'personal' },
        { account: ANN, name: 'second', type: 'personal' },
        { account: BEN, type: 'business' },
      ],
    },
  })
  drive = sim.onedrive.drive(ANN)
  token = sim.onedrive.issue(ANN).accessToken
})
after(() => sim.close())

async function call(
  verb: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(path.startsWith('http') ? path : sim.onedrive.graphUrl + path, {
    method: verb,
    headers: { authorization: `Bearer ${token}`, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return {
    status: answer.status,
    headers: answer.headers,
    json: text === '' ? {} : (JSON.parse(text) as Json),
  }
}

const get = (path: string, headers?: Record<string, string>): Promise<Answer> =>
  call('GET', path, undefined, headers)
const names = ({ json }: Answer): unknown[] => json.value!.map(({ name }) => name)

async function refused(answer: Promise<Answer>, status: number, code: string): Promise<void> {
  const { status: got, json } = await answer
  assert.deepEqual([got, json.error?.code], [status, code])
  assert.equal(typeof json.error?.message, 'string')
}

describe('who calls', () => {
  test('is told who it is and which drives it has', async () => {
    assert.equal((await get('/me')).json.userPrincipalName, ANN)
    const own = await get('/me/drive')
    assert.equal(own.json.id, drive.id)
    assert.equal(own.json.driveType, 'personal')
    assert.deepEqual(
      (await get('/me/drives')).json.value!.map(({ id }) => id),
      [drive.id, sim.onedrive.drive('second').id],
    )
    assert.equal(
      (await get(`/drives/${sim.onedrive.drive('second').id}`)).json.id,
      sim.onedrive.drive('second').id,
    )
  })

  test('needs a token, and one with the scope', async () => {
    await refused(get('/me/drive', { authorization: '' }), 401, 'InvalidAuthenticationToken')
    await refused(get('/me/drive', { authorization: 'Bearer x' }), 401, 'InvalidAuthenticationToken')
    const reader = sim.onedrive.issue(ANN, ['Files.Read']).accessToken
    assert.equal((await get('/me/drive', { authorization: `Bearer ${reader}` })).status, 200)
    const mkdir = call(
      'POST',
      '/me/drive/root/children',
      { name: 'x', folder: {} },
      { authorization: `Bearer ${reader}` },
    )
    await refused(mkdir, 403, 'accessDenied')
  })

  test('does not see the drives of others', async () => {
    await refused(get(`/drives/${sim.onedrive.drive(BEN).id}/root`), 404, 'itemNotFound')
    assert.equal((await get('/me/drive/root/analytics')).status, 400)
  })

  test('finds its drive also without the leading zero and in other letters', async () => {
    assert.ok(drive.id.startsWith('0'))
    assert.equal((await get(`/drives/${drive.id.slice(1).toUpperCase()}/root`)).status, 200)
  })
})

describe('items', () => {
  test('are found by id and by path, with every name encoded on its own', async () => {
    const item = drive.device.write('Ordner/100% #1?/é.txt'.replace('?', ''), 'hello')
    const path = ['Ordner', '100% #1', 'é.txt'].map(encodeURIComponent).join('/')
    const addresses = [
      `/drives/${drive.id}/items/${encodeURIComponent(item.id)}`,
      `/me/drive/items/${item.id}`,
      `/me/drive/root:/${path}`,
      `/me/drive/root:/${path}:`,
      `/me/drive/root:/${path.toLowerCase()}:/`,
      `/me/drive/items/${drive.device.item('Ordner').id}:/${encodeURIComponent('100% #1')}/e%CC%81.txt`,
    ]
    for (const address of addresses) assert.equal((await get(address)).json.id, item.id, address)
    await refused(get('/me/drive/root:/none.txt'), 404, 'itemNotFound')
    await refused(get('/me/drive/items/nothing'), 404, 'itemNotFound')
    await refused(get('/me/drive/root:/%E0%A4%A'), 400, 'invalidRequest')
  })

  test('have what a client needs', async () => {
    const item = drive.device.write('have/a.txt', 'hello', { modifiedMs: Date.UTC(2020, 1, 2, 3, 4, 5, 6) })
    const { json, headers } = await get('/me/drive/root:/have/a.txt')
    assert.deepEqual(json.file, { mimeType: 'text/plain', hashes: { quickXorHash: item.content!.hash } })
    assert.equal(json.size, 5)
    assert.equal((json.fileSystemInfo as Json).lastModifiedDateTime, '2020-02-02T03:04:05.006Z')
    const parent = drive.device.item('have')
    assert.deepEqual(json.parentReference, {
      driveId: drive.id,
      driveType: 'personal',
      id: parent.id,
      path: `/drives/${drive.id}/root:/have`,
    })
    assert.equal(headers.get('etag'), `"${json.eTag}"`)
    assert.match(String(json['@microsoft.graph.downloadUrl']), /^http:\/\/127\.0\.0\.1/)
    const folder = (await get('/me/drive/root:/have')).json
    assert.deepEqual([folder.folder, folder.size, folder.file], [{ childCount: 1 }, 5, undefined])
    assert.deepEqual((await get('/me/drive/root')).json.root, {})
    const few = (await get('/me/drive/root:/have/a.txt?$select=name,size')).json
    assert.deepEqual(few, { name: 'a.txt', size: 5, id: item.id })
    drive.device.notebook('have/Notes')
    const { json: notebook } = await get('/me/drive/root:/have/Notes')
    assert.deepEqual(
      [notebook.package, notebook.folder, notebook.file],
      [{ type: 'oneNote' }, undefined, undefined],
    )
  })

  test('Business has other ids and eTags, and no cTag of folders', async () => {
    const ben = sim.onedrive.drive(BEN)
    ben.device.write('a/b.txt', 'x')
    const own = { authorization: `Bearer ${sim.onedrive.issue(BEN).accessToken}` }
    const file = (await get('/me/drive/root:/a/b.txt', own)).json
    assert.match(String(file.id), /^01[A-Z2-7]{25}/)
    assert.match(String(file.eTag), /^"\{.*\},\d+"$/)
    assert.match(String(file.cTag), /^"c:\{.*\},\d+"$/)
    assert.equal((await get('/me/drive/root:/a', own)).json.cTag, undefined)
    assert.match(ben.id, /^b!/)
  })
})

describe('addresses', () => {
  test('the root item says in which drive it is, and in no folder', async () => {
    const { json } = await get('/me/drive/root')
    assert.deepEqual(json.parentReference, { driveId: drive.id, driveType: 'personal' })
    const delta = await get('/me/drive/root/delta')
    const root = delta.json.value!.find((item) => item.root !== undefined)
    assert.deepEqual(root!.parentReference, { driveId: drive.id, driveType: 'personal' })
  })

  test('%2F inside a path address is a separator, and a dot between two is nothing', async () => {
    const { id } = drive.device.write('slashed/deep/er.txt', 'x')
    assert.equal((await get('/me/drive/root:/slashed%2Fdeep%2Fer.txt')).json.id, id)
    assert.equal((await get('/me/drive/root:/.%2Fslashed%2F.%2Fdeep%2Fer.txt')).json.id, id)
    const put = await call('PUT', '/me/drive/root:/slashed%2Fnew.txt:/content', 'y')
    assert.equal(put.status, 201)
    assert.ok(drive.device.has('slashed/new.txt'))
  })

  test('links follow the host and scheme by which the request came', async () => {
    drive.device.write('linked/one.txt', '1')
    drive.device.write('linked/two.txt', '2')
    const through = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'drive.example:8443' }
    const origin = 'https://drive.example:8443/'
    const page = await get('/me/drive/root:/linked:/children?$top=1', through)
    const delta = await get('/me/drive/root/delta?token=latest', through)
    const item = await get('/me/drive/root:/linked/one.txt', through)
    const upload = await call('POST', '/me/drive/root:/linked/new:/createUploadSession', {}, through)
    const copy = await call('POST', '/me/drive/root:/linked/one.txt:/copy', { name: 'copied' }, through)
    const batch = await call(
      'POST',
      '/$batch',
      { requests: [{ id: '1', method: 'GET', url: '/me/drive/root:/linked:/children?$top=1' }] },
      through,
    )
    const [part] = batch.json.responses as { body: Json }[]
    const links = [
      page.json['@odata.nextLink'],
      delta.json['@odata.deltaLink'],
      item.json['@microsoft.graph.downloadUrl'],
      upload.json.uploadUrl,
      copy.headers.get('location'),
      part!.body['@odata.nextLink'],
    ]
    for (const link of links) assert.ok(String(link).startsWith(origin), String(link))
    const local = await get(
      `${sim.baseUrl.replace('127.0.0.1', 'localhost')}/v1.0/me/drive/root/delta?token=latest`,
    )
    assert.ok(String(local.json['@odata.deltaLink']).startsWith('http://localhost:'))
  })
})

describe('listings', () => {
  test('come in pages by name, and lose nothing when the folder changes in between', async () => {
    for (let at = 0; at < 25; at++) drive.device.write(`list/f${String(at).padStart(2, '0')}`, `${at}`)
    const first = await get('/me/drive/root:/list:/children?$top=10&$select=name')
    assert.equal(names(first).length, 10)
    drive.device.delete('list/f03')
    drive.device.write('list/a', 'new, before')
    const second = await get(String(first.json['@odata.nextLink']))
    const third = await get(String(second.json['@odata.nextLink']))
    assert.equal(third.json['@odata.nextLink'], undefined)
    const all = [first, second, third].flatMap(names)
    assert.deepEqual(
      all,
      Array.from({ length: 25 }, (_, at) => `f${String(at).padStart(2, '0')}`),
    )
    const backwards = await get('/me/drive/root:/list:/children?$orderby=name%20desc&$top=3')
    assert.deepEqual(names(backwards), ['f24', 'f23', 'f22'])
    const onwards = await get(String(backwards.json['@odata.nextLink']))
    assert.deepEqual(names(onwards), ['f21', 'f20', 'f19'])
  })

  test('have 200 rows unless told otherwise, and never more than 1,000', async () => {
    for (let at = 0; at < 1_100; at++) drive.device.write(`many/${at}`, '')
    assert.equal(names(await get('/me/drive/root:/many:/children')).length, 200)
    assert.equal(names(await get('/me/drive/root:/many:/children?$top=5000')).length, 1_000)
    assert.equal((await get('/me/drive/root/delta')).json.value!.length, 200)
    assert.equal((await get('/me/drive/root/delta?$top=5000')).json.value!.length, 1_000)
    await refused(get('/me/drive/root/children?$top=0'), 400, 'invalidRequest')
  })
})

describe('changes', () => {
  const root = '/me/drive/root'

  test('a folder is made once, or again under another name', async () => {
    const mkdir = (conflict?: string): Promise<Answer> =>
      call('POST', `${root}/children`, {
        name: 'Made',
        folder: {},
        ...(conflict === undefined ? {} : { '@microsoft.graph.conflictBehavior': conflict }),
      })
    assert.equal((await mkdir()).status, 201)
    await refused(mkdir(), 409, 'nameAlreadyExists')
    assert.equal((await mkdir('rename')).json.name, 'Made 1')
    const replaced = await mkdir('replace')
    assert.deepEqual([replaced.status, replaced.json.id], [200, drive.device.item('made').id])
    await refused(call('POST', `${root}/children`, { name: 'a:b', folder: {} }), 400, 'invalidRequest')
    await refused(call('POST', `${root}/children`, { folder: {} }), 400, 'invalidRequest')
    await refused(mkdir('maybe'), 400, 'invalidRequest')
  })

  test('PATCH renames, moves by id or path, and sets times', async () => {
    const item = drive.device.write('patch/a.txt', 'x')
    const target = drive.device.mkdir('patch/into')
    const address = `/me/drive/items/${item.id}`
    const renamed = await call('PATCH', address, { name: 'A.TXT' })
    assert.deepEqual([renamed.status, renamed.json.name], [200, 'A.TXT'])
    await call('PATCH', address, { parentReference: { id: target.id, driveId: drive.id }, name: 'b.txt' })
    assert.equal(drive.device.item('patch/into/b.txt'), item)
    await call('PATCH', address, { parentReference: { path: `/drives/${drive.id}/root:/patch` } })
    assert.equal(drive.device.item('patch/b.txt'), item)
    const lastModifiedDateTime = '2001-02-03T04:05:06.000Z'
    const timed = await call('PATCH', address, { fileSystemInfo: { lastModifiedDateTime } })
    assert.equal((timed.json.fileSystemInfo as Json).lastModifiedDateTime, lastModifiedDateTime)
  })

  test('a move under itself, to another drive, to nowhere or onto another item is refused', async () => {
    const folder = drive.device.mkdir('moved')
    const inner = drive.device.mkdir('moved/inner')
    drive.device.mkdir('other')
    const patch = (body: unknown): Promise<Answer> => call('PATCH', `/me/drive/items/${folder.id}`, body)
    await refused(patch({ parentReference: { id: inner.id } }), 400, 'invalidRequest')
    await refused(patch({ parentReference: { id: folder.id } }), 400, 'invalidRequest')
    await refused(
      patch({ parentReference: { driveId: sim.onedrive.drive('second').id, id: 'root' } }),
      400,
      'invalidRequest',
    )
    await refused(patch({ parentReference: { id: 'gone' } }), 404, 'itemNotFound')
    await refused(patch({ name: 'OTHER' }), 409, 'nameAlreadyExists')
    await refused(patch({ name: 'con' }), 400, 'invalidRequest')
    await refused(
      patch({ name: 'a', fileSystemInfo: { lastModifiedDateTime: 'soon' } }),
      400,
      'invalidRequest',
    )
    await refused(call('PATCH', root, { name: 'x' }), 403, 'accessDenied')
    const renamed = await patch({ name: 'other', '@microsoft.graph.conflictBehavior': 'rename' })
    assert.equal(renamed.json.name, 'other 1')
  })

  test('If-Match takes eTag or cTag, and 412 means that nothing has happened', async () => {
    const item = drive.device.write('match.txt', '1')
    const { eTag, cTag } = (await get('/me/drive/root:/match.txt')).json as Record<string, string>
    drive.device.edit('match.txt', '2')
    for (const tag of [eTag!, cTag!, `"${eTag}"`]) {
      const headers = { 'if-match': tag }
      await refused(
        call('PATCH', `/me/drive/items/${item.id}`, { name: 'x' }, headers),
        412,
        'resourceModified',
      )
      await refused(call('DELETE', `/me/drive/items/${item.id}`, undefined, headers), 412, 'resourceModified')
    }
    const fresh = (await get('/me/drive/root:/match.txt')).json as Record<string, string>
    assert.equal(
      (await call('PATCH', `/me/drive/items/${item.id}`, { name: 'n.txt' }, { 'if-match': fresh.cTag! }))
        .status,
      200,
    )
    const { headers } = await get('/me/drive/root:/n.txt')
    assert.equal((await get('/me/drive/root:/n.txt', { 'if-none-match': headers.get('etag')! })).status, 304)
    const gone = await call('DELETE', `/me/drive/items/${item.id}`, undefined, { 'if-match': '*' })
    assert.equal(gone.status, 204)
  })

  test('DELETE takes a folder with all that is in it to the recycle bin, and restore brings it back', async () => {
    const item = drive.device.write('bin/deep/a.txt', 'x')
    const folder = drive.device.item('bin')
    assert.equal((await call('DELETE', `/me/drive/items/${folder.id}`)).status, 204)
    await refused(get(`/me/drive/items/${item.id}`), 404, 'itemNotFound')
    await refused(call('DELETE', `/me/drive/items/${folder.id}`), 404, 'itemNotFound')
    await refused(call('DELETE', root), 403, 'accessDenied')
    await refused(call('POST', `/me/drive/items/${item.id}/restore`, {}), 404, 'itemNotFound')
    assert.equal((await call('POST', `/me/drive/items/${folder.id}/restore`, {})).json.id, folder.id)
    assert.equal((await get(`/me/drive/items/${item.id}`)).status, 200)
  })

  test('a copy is under way, then done or failed', async () => {
    const item = drive.device.write('copy/a.txt', 'x')
    const begun = await call('POST', `/me/drive/items/${item.id}/copy`, { name: 'b.txt' })
    assert.equal(begun.status, 202)
    const monitor = begun.headers.get('location')!
    assert.equal((await get(monitor)).json.status, 'inProgress')
    const done = (await get(monitor)).json
    assert.deepEqual([done.status, done.resourceId], ['completed', drive.device.item('copy/b.txt').id])
    const again = (await call('POST', `/me/drive/items/${item.id}/copy`, { name: 'b.txt' })).headers.get(
      'location',
    )!
    await get(again)
    assert.deepEqual((await get(again)).json.status, 'failed')
    await refused(get(monitor.replace(/\w+$/, 'none')), 404, 'itemNotFound')
  })

  test('versions are listed, the newest first', async () => {
    drive.device.write('versions.txt', '1')
    drive.device.write('versions.txt', '22')
    const { json } = await get('/me/drive/root:/versions.txt:/versions')
    assert.deepEqual(
      json.value!.map(({ size }) => size),
      [2, 1],
    )
  })
})

describe('delta', () => {
  const linkOf = ({ json }: Answer): string => String(json['@odata.deltaLink'] ?? json['@odata.nextLink'])

  test('goes from everything to what changed, and says when there is no more', async () => {
    const second = sim.onedrive.drive('second')
    second.device.write('a/b.txt', 'x')
    const address = `/drives/${second.id}/root/delta?$top=2`
    const first = await get(address)
    assert.equal(first.json['@odata.deltaLink'], undefined)
    const last = await get(linkOf(first))
    assert.equal(last.json['@odata.nextLink'], undefined)
    assert.deepEqual([...names(first), ...names(last)], ['root', 'a', 'b.txt'])
    assert.equal((first.json.value![1]!.parentReference as Json).path, `/drives/${second.id}/root:`)
    assert.deepEqual((await get(linkOf(last))).json.value, [])
    second.device.rename('a', 'A')
    const changed = await get(linkOf(last))
    assert.deepEqual(names(changed), ['root', 'A'])
    const { id } = second.device.delete('A')
    const gone = (await get(linkOf(changed))).json.value!.at(-1)!
    assert.deepEqual([gone.id, gone.deleted], [id, { state: 'deleted' }])
  })

  test('everything is listed with each folder before what is in it, also where the folder changed since', async () => {
    for (let at = 0; at < 5; at++) drive.device.write(`renamed later/deep/f${at}.txt`, 'x')
    drive.device.rename('renamed later/deep', 'deeper')
    drive.device.rename('renamed later', 'renamed')
    const known = new Set<unknown>()
    let page = await get('/me/drive/root/delta?$top=3')
    for (;;) {
      for (const { id, root, parentReference } of page.json.value!) {
        assert.ok(root !== undefined || known.has((parentReference as Json).id))
        known.add(id)
      }
      if (page.json['@odata.nextLink'] === undefined) break
      page = await get(linkOf(page))
    }
  })

  test('token=latest is an empty page from which later changes follow', async () => {
    const latest = await get('/me/drive/root/delta?token=latest')
    assert.deepEqual(latest.json.value, [])
    drive.device.write('later.txt', 'x')
    assert.deepEqual(names(await get(linkOf(latest))), ['root', 'later.txt'])
    const bracket = await get("/me/drive/root/delta(token='latest')")
    assert.deepEqual(bracket.json.value, [])
  })

  test('keeps $select and $top in its links', async () => {
    const page = await get('/me/drive/root/delta?$select=id,name&$top=3')
    const next = await get(linkOf(page))
    assert.equal(next.json.value!.length, 3)
    assert.deepEqual(Object.keys(next.json.value![0]!).sort(), ['id', 'name'])
  })

  test('an old token is answered with 410, the kind of resync, and where to begin', async () => {
    const { json } = await get('/me/drive/root/delta?token=latest')
    const link = String(json['@odata.deltaLink'])
    for (const kind of ['resyncChangesApplyDifferences', 'resyncChangesUploadDifferences'] as const) {
      drive.expireDelta(kind)
      const gone = await get(link)
      assert.deepEqual([gone.status, gone.json.error?.code], [410, kind])
      const restart = await get(gone.headers.get('location')!)
      assert.ok(names(restart).includes('root'))
    }
    await refused(get('/me/drive/root/delta?token=rubbish'), 400, 'invalidRequest')
  })
})

describe('trouble', () => {
  test('the throttle profile sends 429 and 503 with Retry-After, and never 403', async () => {
    const own = await startSim({ onedrive: { drives: [{ account: ANN }] }, faults: { profile: 'throttle' } })
    const headers = { authorization: `Bearer ${own.onedrive.issue(ANN).accessToken}` }
    const seen = new Set<number>()
    for (let time = 0; time < 250; time++) {
      const answer = await fetch(`${own.onedrive.graphUrl}/me/drive`, { headers })
      await answer.body?.cancel()
      seen.add(answer.status)
      if (answer.status !== 200) assert.equal(answer.headers.get('retry-after'), '1')
    }
    assert.deepEqual([...seen].sort(), [200, 429, 503])
    await own.close()
  })

  test('faults of the core strike here too, in the words of Graph', async () => {
    sim.faults.set({ rules: [{ do: 'throttle', status: 503, retryAfterSeconds: 7, methods: ['graph.*'] }] })
    const refusal = await get('/me/drive')
    assert.deepEqual([refusal.status, refusal.headers.get('retry-after')], [503, '7'])
    assert.equal(refusal.json.error?.code, 'serviceNotAvailable')
    sim.faults.set({ rules: [{ do: 'throttle', retryAfterSeconds: 2, max: 1 }] })
    await refused(get('/me/drive'), 429, 'activityLimitReached')
    sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['graph.delta'] }] })
    assert.equal((await get('/me/drive')).status, 200)
    await refused(get('/me/drive/root/delta'), 500, 'generalException')
    sim.faults.clear()
  })

  test('a reset after the effect: the folder is there, and the caller was not told', async () => {
    sim.faults.set({ rules: [{ do: 'reset', when: 'after', max: 1 }] })
    await assert.rejects(call('POST', '/me/drive/root/children', { name: 'silent', folder: {} }))
    assert.ok(drive.device.has('silent'))
    sim.faults.set({ rules: [{ do: 'reset', when: 'before', max: 1 }] })
    await assert.rejects(call('POST', '/me/drive/root/children', { name: 'never', folder: {} }))
    assert.ok(!drive.device.has('never'))
    sim.faults.clear()
  })

  test('effects happen to the drive: changes, expired tokens, expired delta', async () => {
    const latest = String((await get('/me/drive/root/delta?token=latest')).json['@odata.deltaLink'])
    sim.faults.set({ rules: [{ do: 'mutate', what: 'arrive', count: 3, methods: ['graph.delta'], max: 1 }] })
    assert.equal((await get(latest)).json.value!.length, 4)
    sim.faults.set({ rules: [{ do: 'expire-history', max: 1 }] })
    assert.equal((await get(latest)).status, 410)
    sim.faults.set({ rules: [{ do: 'expire-access', max: 1 }] })
    const own = sim.onedrive.issue(ANN)
    await refused(
      get('/me/drive', { authorization: `Bearer ${own.accessToken}` }),
      401,
      'InvalidAuthenticationToken',
    )
    sim.faults.set({ rules: [{ do: 'empty-page', max: 1 }] })
    token = sim.onedrive.issue(ANN).accessToken
    const empty = await get('/me/drive/root/delta')
    assert.deepEqual([empty.json.value, typeof empty.json['@odata.nextLink']], [[], 'string'])
    sim.faults.clear()
  })

  test('who makes too many requests has to wait, with all of them', async () => {
    const own = await startSim({
      onedrive: {
        drives: [{ account: ANN }],
        rate: { requestsPerSecond: 1, burst: 3, retryAfterSeconds: 60, status: 429 },
      },
    })
    const headers = { authorization: `Bearer ${own.onedrive.issue(ANN).accessToken}` }
    const statuses: number[] = []
    for (let time = 0; time < 5; time++)
      statuses.push((await fetch(`${own.onedrive.graphUrl}/me/drive`, { headers })).status)
    assert.deepEqual(statuses, [200, 200, 200, 429, 429])
    const waiting = await fetch(`${own.onedrive.graphUrl}/me/drive`, { headers })
    assert.ok(Number(waiting.headers.get('retry-after')) > 30)
    assert.deepEqual(own.onedrive.rate.counts(ANN), { throttled: 1, calledWhileWaiting: 2 })
    await own.close()
  })

  test('batches hold up to twenty calls, each with its own answer', async () => {
    const requests = [
      { id: '1', method: 'POST', url: '/me/drive/root/children', body: { name: 'batched', folder: {} } },
      { id: '2', method: 'GET', url: '/me/drive/root:/batched', dependsOn: ['1'] },
      { id: '3', method: 'GET', url: '/me/drive/items/none' },
      { id: '4', method: 'GET', url: '/me/drive', dependsOn: ['3'] },
    ]
    const { json } = await call('POST', '/$batch', { requests })
    const responses = json.responses as { id: string; status: number; body: Json }[]
    assert.deepEqual(
      responses.map(({ status }) => status),
      [201, 200, 404, 424],
    )
    assert.equal(responses[1]!.body.name, 'batched')
    assert.equal(responses[2]!.body.error?.code, 'itemNotFound')
    const many = Array.from({ length: 21 }, (_, at) => ({ id: `${at}`, method: 'GET', url: '/me' }))
    await refused(call('POST', '/$batch', { requests: many }), 400, 'invalidRequest')
    sim.faults.set({ rules: [{ do: 'throttle', on: 'part', methods: ['graph.me'] }] })
    const parts = (await call('POST', '/$batch', { requests: many.slice(0, 2) })).json.responses as {
      status: number
    }[]
    assert.deepEqual(
      parts.map(({ status }) => status),
      [429, 429],
    )
    sim.faults.clear()
  })
})
