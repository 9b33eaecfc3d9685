/** What clients of other people ask for besides items, bytes and delta: options, search, links, versions, ids. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import type { SimDrive } from './sim-drive.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'

type Json = Record<string, unknown> & {
  value?: Json[]
  error?: { code: string; message: string; innerError: Record<string, string> }
}
type Answer = { status: number; headers: Headers; json: Json; text: string }

let sim: Sim
let drive: SimDrive
let tokens: Record<string, string>

before(async () => {
  sim = await startSim({ onedrive: { drives: [{ account: ANN }, { account: BEN, type: 'business' }] } })
  tokens = Object.fromEntries([ANN, BEN].map((who) => [who, sim.onedrive.issue(who).accessToken]))
  drive = sim.onedrive.drive(ANN)
})
after(() => sim.close())
beforeEach(() => sim.faults.clear())

async function call(
  verb: string,
  path: string,
  { body, headers = {}, who = ANN }: { body?: unknown; headers?: Record<string, string>; who?: string } = {},
): Promise<Answer> {
  const answer = await fetch(path.startsWith('http') ? path : sim.onedrive.graphUrl + path, {
    method: verb,
    headers: { authorization: `Bearer ${tokens[who]}`, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return {
    status: answer.status,
    headers: answer.headers,
    text,
    json: isJson ? (JSON.parse(text) as Json) : {},
  }
}

const get = (path: string, who = ANN): Promise<Answer> => call('GET', path, { who })
const names = ({ json }: Answer): unknown[] => json.value!.map(({ name }) => name)

async function refused(answer: Promise<Answer>, status: number, code: string): Promise<void> {
  const { status: got, json } = await answer
  assert.deepEqual([got, json.error?.code], [status, code])
}

describe('options of a listing', () => {
  const children = '/me/drive/root:/options:/children'
  before(() => {
    for (const who of [ANN, BEN]) {
      const { device } = sim.onedrive.drive(who)
      device.write('options/beta.txt', '22')
      device.write('options/alpha.txt', '333')
      device.write('options/Ålesund.txt', '1')
      device.mkdir('options/albums')
    }
  })

  test('$filter finds by name, by the beginning of a name, and on Personal by what an item is', async () => {
    assert.deepEqual(names(await get(`${children}?$filter=name eq 'BETA.txt'`)), ['beta.txt'])
    assert.deepEqual(names(await get(`${children}?filter=startswith(name,'al')`)), ['albums', 'alpha.txt'])
    assert.deepEqual(names(await get(`${children}?$filter=folder ne null`)), ['albums'])
    assert.equal(names(await get(`${children}?$filter=folder eq null`)).length, 3)
    await refused(get(`${children}?$filter=folder ne null`, BEN), 501, 'notSupported')
    assert.deepEqual(names(await get(`${children}?$filter=name eq 'beta.txt'`, BEN)), ['beta.txt'])
  })

  test('$filter that the service does not know is refused, not passed over', async () => {
    await refused(get(`${children}?$filter=contains(name,'a')`), 400, 'invalidRequest')
    await refused(get(`${children}?$filter=size gt 10`), 400, 'invalidRequest')
    await refused(get(`${children}?$filter=folder ne null and startswith(name,'a')`), 501, 'notSupported')
    await refused(get('/me/drive/root/delta?$filter=file ne null'), 400, 'invalidRequest')
    await refused(get("/me/drive/root?$filter=name eq 'root'"), 400, 'invalidRequest')
    await refused(get(`${children}?$search=beta`), 400, 'invalidRequest')
    await refused(get(`${children}?$skip=2`), 400, 'invalidRequest')
  })

  test('$filter and $orderby hold on the next page, too', async () => {
    const found: unknown[] = []
    let next: string | undefined = `${children}?$filter=file ne null&$orderby=size desc&$top=1&$select=name`
    while (next) {
      const page: Answer = await get(next)
      found.push(...names(page))
      next = page.json['@odata.nextLink'] as string | undefined
    }
    assert.deepEqual(found, ['alpha.txt', 'beta.txt', 'Ålesund.txt'])
    await refused(get(`${children}?$orderby=createdBy`), 501, 'notSupported')
  })

  test('$select holds of drives, people and versions as of items', async () => {
    for (const path of ['/me', '/me/drive', '/me/drive/root:/options/beta.txt']) {
      assert.deepEqual(Object.keys((await get(`${path}?$select=id`)).json), ['id'], path)
    }
    for (const path of ['/me/drives', '/me/drive/root:/options/beta.txt:/versions']) {
      assert.deepEqual(Object.keys((await get(`${path}?$select=id`)).json.value![0]!), ['id'], path)
    }
  })

  test('$expand brings children with the folder, and says where the rest is', async () => {
    for (let at = 0; at < 205; at++) drive.device.write(`many/f${String(at).padStart(3, '0')}`, 'x')
    const { json } = await get('/me/drive/root:/many:/?$select=name&$expand=children($select=id,name)')
    const inside = json.children as Json[]
    assert.deepEqual([json.name, inside.length, Object.keys(inside[0]!)], ['many', 200, ['id', 'name']])
    assert.deepEqual(names(await get(String(json['children@odata.nextLink']))), [
      'f200',
      'f201',
      'f202',
      'f203',
      'f204',
    ])
    const rows = (await get(`${children}?$expand=children,thumbnails`)).json.value!
    assert.deepEqual(rows[0]!.children, [])
    assert.deepEqual(rows[1]!.thumbnails, [])
    assert.ok(!('children' in rows[1]!))
  })

  test('$expand of what cannot be expanded is refused', async () => {
    await refused(get('/me/drive/root?$expand=nothing'), 400, 'invalidRequest')
    await refused(get('/me/drive/root:/options/beta.txt?$expand=children'), 422, 'notSupported')
    await refused(get('/me/drive/root/delta?$expand=permissions'), 501, 'notSupported')
    await refused(get('/me/drive/root/delta?$expand=children'), 400, 'badArgument')
    await refused(get('/me/drive/root/delta?$expand=thumbnails', BEN), 400, 'badArgument')
    assert.deepEqual((await get('/me/drive/root/delta?$expand=thumbnails')).json.value![0]!.thumbnails, [])
  })
})

describe('an upload session with deferCommit', () => {
  async function begin(name: string): Promise<string> {
    const body = { item: { name }, deferCommit: true }
    const made = await call('POST', `/me/drive/root:/${name}:/createUploadSession`, { body })
    return String(made.json.uploadUrl)
  }
  const put = (url: string, bytes: string): Promise<Answer> =>
    call('PUT', url, { body: bytes, headers: { 'content-range': `bytes 0-${bytes.length - 1}/5` } })

  test('makes the file when it is told to, not with its last byte', async () => {
    const url = await begin('deferred.txt')
    await refused(call('POST', url), 400, 'invalidRequest')
    const last = await put(url, 'later')
    assert.deepEqual([last.status, last.json.nextExpectedRanges], [202, []])
    assert.ok(!drive.device.has('deferred.txt'))
    const made = await call('POST', url)
    assert.deepEqual([made.status, made.json.name, made.json.size], [201, 'deferred.txt', 5])
    assert.ok(drive.device.has('deferred.txt'))
    await refused(call('POST', url), 404, 'itemNotFound')
  })

  test('that is canceled leaves nothing', async () => {
    const url = await begin('dropped.txt')
    await put(url, 'later')
    assert.equal((await call('DELETE', url)).status, 204)
    assert.ok(!drive.device.has('dropped.txt'))
  })

  test('is refused where deferCommit is no yes or no', async () => {
    const body = { deferCommit: 'later' }
    await refused(call('POST', '/me/drive/root:/x:/createUploadSession', { body }), 400, 'invalidRequest')
  })
})

describe('versions', () => {
  const file = '/me/drive/root:/history.txt:'
  const ids = async (): Promise<unknown[]> => (await get(`${file}/versions`)).json.value!.map(({ id }) => id)

  test('DELETE of a version takes that one away, and never what the file holds now', async () => {
    for (const text of ['one', 'two', 'three']) drive.device.write('history.txt', text)
    assert.deepEqual(await ids(), ['3.0', '2.0', '1.0'])
    assert.equal((await call('DELETE', `${file}/versions/2.0`)).status, 204)
    assert.deepEqual(await ids(), ['3.0', '1.0'])
    await refused(call('DELETE', `${file}/versions/2.0`), 404, 'itemNotFound')
    await refused(call('DELETE', `${file}/versions/3.0`), 400, 'invalidRequest')
    drive.device.write('history.txt', 'four')
    assert.deepEqual(await ids(), ['4.0', '3.0', '1.0'])
  })

  test('are looked at, downloaded and brought back', async () => {
    assert.equal((await get(`${file}/versions/1.0`)).json.size, 3)
    const { headers } = await get(`${file}/versions/1.0/content`)
    assert.equal((await get(headers.get('location')!)).text, 'one')
    assert.equal((await call('POST', `${file}/versions/1.0/restoreVersion`)).status, 204)
    const now = await get(`${file}/content`)
    assert.equal((await get(now.headers.get('location')!)).text, 'one')
    assert.equal((await ids())[0], '5.0')
  })
})

describe('ways to an item', () => {
  test('search finds by words of the name, in the drive or below a folder, in pages', async () => {
    for (const path of ['find/Annual report.txt', 'find/deep/report 2.txt', "elsewhere/it's a report.txt"]) {
      drive.device.write(path, path)
    }
    const found = await get("/me/drive/root/search(q='REPORT')?$top=2")
    assert.equal(names(found).length, 2)
    assert.equal(names(await get(String(found.json['@odata.nextLink']))).length, 1)
    assert.deepEqual(names(await get("/me/drive/search(q='it''s')")), ["it's a report.txt"])
    assert.deepEqual(names(await get('/me/drive/root:/find/deep:/search(q=%27report%27)')), ['report 2.txt'])
    assert.deepEqual(names(await get("/me/drive/root/search(q='nowhere')")), [])
    await refused(get("/me/drive/root/search(q='')"), 400, 'invalidRequest')
  })

  test('a special folder is made when it is first asked for, and keeps its name for programs', async () => {
    const { json } = await get('/me/drive/special/documents')
    assert.deepEqual([json.name, json.specialFolder], ['Documents', { name: 'documents' }])
    drive.device.rename('Documents', 'Papers')
    assert.equal((await get('/me/drive/special/documents')).json.id, json.id)
    const put = await call('PUT', '/me/drive/special/approot:/state.json:/content', { body: '{}' })
    assert.equal(put.status, 201)
    assert.ok(drive.device.has('Apps/Simulated app/state.json'))
    assert.deepEqual(names(await get('/me/drive/special')), ['Papers', 'Simulated app'])
    await refused(get('/me/drive/special/attic'), 400, 'invalidRequest')
  })

  test('recent files come newest first, and nothing is shared yet', async () => {
    drive.device.write('newest.txt', 'x')
    assert.equal(names(await get('/me/drive/recent'))[0], 'newest.txt')
    assert.deepEqual((await get('/me/drive/sharedWithMe')).json.value, [])
  })
})

describe('links', () => {
  const file = '/me/drive/root:/shared.txt:'

  test('createLink gives a link, the same one to who asks again, until it is taken back', async () => {
    drive.device.write('shared.txt', 'x')
    const body = { type: 'view', scope: 'anonymous' }
    const made = await call('POST', `${file}/createLink`, { body })
    const link = made.json.link as Json
    assert.deepEqual([made.status, made.json.roles, link.type], [201, ['read'], 'view'])
    assert.ok(String(link.webUrl).startsWith(sim.baseUrl))
    const again = await call('POST', `${file}/createLink`, { body })
    assert.deepEqual([again.status, again.json], [200, made.json])
    const edit = await call('POST', `${file}/createLink`, { body: { type: 'edit' } })
    assert.notEqual(edit.json.id, made.json.id)
    assert.equal((await get(`${file}/permissions`)).json.value!.length, 3)
    assert.equal((await call('DELETE', `${file}/permissions/${made.json.id}`)).status, 204)
    assert.equal((await get(`${file}/permissions`)).json.value!.length, 2)
  })

  test('createLink refuses what the kind of drive does not have', async () => {
    const ask = (body: unknown, who = ANN) => call('POST', `${file}/createLink`, { body, who })
    sim.onedrive.drive(BEN).device.write('shared.txt', 'x')
    await refused(ask({ type: 'give' }), 400, 'invalidRequest')
    await refused(ask({ scope: 'organization' }), 400, 'invalidRequest')
    await refused(ask({ type: 'embed' }, BEN), 400, 'invalidRequest')
    assert.equal((await ask({ scope: 'organization' }, BEN)).status, 201)
  })
})

describe('every answer', () => {
  test('has a request-id of its own, the same in its header and in the body of an error', async () => {
    const answers = await Promise.all([
      get('/me/drive'),
      get('/me/drive/items/none'),
      get('/me/drive/items/none'),
    ])
    const ids = answers.map(({ headers }) => headers.get('request-id'))
    assert.equal(new Set(ids).size, 3)
    const inner = answers[1]!.json.error!.innerError
    assert.equal(inner['request-id'], ids[1])
    assert.match(inner.date!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
  })

  test('repeats the client-request-id, also where a fault refuses the call, and in parts of a batch', async () => {
    const headers = { 'client-request-id': 'mine-1' }
    assert.equal((await call('GET', '/me/drive', { headers })).headers.get('client-request-id'), 'mine-1')
    const requests = ['1', '2'].map((id) => ({ id, method: 'GET', url: '/me/drive/items/none' }))
    const { responses } = (await call('POST', '/$batch', { body: { requests } })).json as {
      responses: { body: Json }[]
    }
    const ids = responses.map(({ body }) => body.error!.innerError['request-id'])
    assert.equal(new Set(ids).size, 2)
    sim.faults.set({ rules: [{ do: 'error', status: 503, methods: ['graph.search'] }] })
    const fault = await call('GET', "/me/drive/root/search(q='x')", { headers })
    assert.deepEqual([fault.status, fault.json.error!.innerError['client-request-id']], [503, 'mine-1'])
  })
})

test('HEAD of the sign-in host is answered: clients ask it whether there is a network', async () => {
  assert.equal((await fetch(sim.baseUrl, { method: 'HEAD' })).status, 200)
})

test('what is deleted for good is in no recycle bin', async () => {
  const { id } = drive.device.write('purged.txt', 'x')
  assert.equal((await call('POST', `/me/drive/items/${id}/permanentDelete`)).status, 204)
  assert.ok(!drive.state.recycleBin.has(id))
  await refused(call('POST', `/me/drive/items/${id}/restore`, { body: {} }), 404, 'itemNotFound')
})

test('new routes need a scope for writing like the others', async () => {
  const { accessToken } = sim.onedrive.issue(ANN, ['Files.Read'])
  const headers = { authorization: `Bearer ${accessToken}` }
  drive.device.write('read-only.txt', 'x')
  const link = call('POST', '/me/drive/root:/read-only.txt:/createLink', { body: {}, headers })
  await refused(link, 403, 'accessDenied')
  await refused(
    call('DELETE', '/me/drive/root:/read-only.txt:/versions/1.0', { headers }),
    403,
    'accessDenied',
  )
})
