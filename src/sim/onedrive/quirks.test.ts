/** Every switch by its name: what it does, and that it does nothing when it is off. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Sim, startSim } from '../start.ts'
import { noQuirks, type Quirks, quirkNames } from './quirks.ts'
import type { SimDrive } from './sim-drive.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'

type Json = Record<string, unknown> & { value?: Json[] }
type Answer = { status: number; headers: Headers; json: Json }

let sim: Sim
let drive: SimDrive
let token: string

before(async () => {
  sim = await startSim({ onedrive: { drives: [{ account: ANN }, { account: BEN, type: 'business' }] } })
  drive = sim.onedrive.drive(ANN)
  token = sim.onedrive.issue(ANN).accessToken
})
after(() => sim.close())
beforeEach(() => drive.setQuirks(noQuirks()))

async function call(verb: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) }
  const url = path.startsWith('http') ? path : sim.onedrive.graphUrl + path
  const answer = await fetch(url, { redirect: 'manual', ...init, method: verb, headers })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return {
    status: answer.status,
    headers: answer.headers,
    json: isJson && text !== '' ? (JSON.parse(text) as Json) : {},
  }
}

const get = (path: string): Promise<Answer> => call('GET', path)
const itemAt = async (path: string): Promise<Json> => (await get(`/me/drive/root:/${path}`)).json
const hashOf = (json: Json): unknown => (json.file as { hashes?: Json })?.hashes?.quickXorHash

async function latest(): Promise<string> {
  return String((await get('/me/drive/root/delta?token=latest')).json['@odata.deltaLink'])
}

async function changesSince(link: string): Promise<Json[]> {
  return (await get(link)).json.value!
}

/** The same question with the quirk and without. */
async function differs(
  quirks: Partial<Quirks>,
  ask: () => Promise<unknown>,
): Promise<[on: unknown, off: unknown]> {
  const off = await ask()
  drive.setQuirks(quirks)
  const on = await ask()
  drive.setQuirks(noQuirks())
  assert.notDeepEqual(on, off)
  return [on, off]
}

/** Many, so that those which a quirk chooses by id are among them. */
function writeMany(folder: string, count = 30): void {
  for (let at = 0; at < count; at++) drive.device.write(`${folder}/file ${at}.txt`, `${folder} ${at}`)
}

async function listed(folder: string): Promise<Json[]> {
  return (await get(`/me/drive/root:/${folder}:/children?$top=1000`)).json.value!
}

describe('identity quirks', () => {
  test('driveIdLosesZero', async () => {
    writeMany('zero')
    const ids = async (): Promise<unknown[]> => [
      ...new Set((await listed('zero')).map((json) => (json.parentReference as Json).driveId)),
    ]
    const [on, off] = await differs({ driveIdLosesZero: true }, ids)
    assert.deepEqual(off, [drive.id])
    assert.deepEqual(new Set(on as string[]), new Set([drive.id, drive.id.slice(1)]))
  })

  test('driveIdChangesCase', async () => {
    const [on, off] = await differs(
      { driveIdChangesCase: true },
      async () => (await get('/me/drive')).json.id,
    )
    assert.equal(on, String(off).toUpperCase())
  })

  test('namesEncoded: in listings and delta, not of the item itself', async () => {
    drive.device.write('names/a b%c.txt', 'x')
    const [on, off] = await differs({ namesEncoded: true }, async () => (await listed('names'))[0]!.name)
    assert.deepEqual([on, off], ['a%20b%25c.txt', 'a b%c.txt'])
    drive.setQuirks({ namesEncoded: true })
    assert.equal((await itemAt('names/a%20b%25c.txt')).name, 'a b%c.txt')
  })

  test('pathMissing', async () => {
    drive.device.write('pathless.txt', 'x')
    const path = async (): Promise<unknown> => ((await itemAt('pathless.txt')).parentReference as Json).path
    const [on] = await differs({ pathMissing: true }, path)
    assert.equal(on, undefined)
  })

  test('deltaPaths: rows of delta name the path of their folder; on for Personal, off for Business', async () => {
    drive.device.write('pathful/deep one/file.txt', 'x')
    const path = async (): Promise<unknown> => {
      const rows = (await get('/me/drive/root/delta?$top=1000')).json.value!
      return (rows.find(({ name }) => name === 'file.txt')!.parentReference as Json).path
    }
    const [on, off] = await differs({ deltaPaths: true }, path)
    assert.deepEqual([on, off], [`/drives/${drive.id}/root:/pathful/deep%20one`, undefined])
    const types = ['personal', 'business'] as const
    const fresh = await startSim({ onedrive: { drives: types.map((type) => ({ account: type, type })) } })
    assert.deepEqual(
      types.map((type) => fresh.onedrive.drive(type).quirks.deltaPaths),
      [true, false],
    )
    await fresh.close()
  })

  test('cTagMissing', async () => {
    drive.device.write('tagless.txt', 'x')
    const [on] = await differs({ cTagMissing: true }, async () => (await itemAt('tagless.txt')).cTag)
    assert.equal(on, undefined)
  })
})

describe('quirks of hashes, sizes and times', () => {
  test('hashMissing: of some files', async () => {
    writeMany('hashes')
    const missing = async (): Promise<number> =>
      (await listed('hashes')).filter((json) => hashOf(json) === undefined).length
    const [on, off] = await differs({ hashMissing: true }, missing)
    assert.equal(off, 0)
    assert.ok((on as number) > 0 && (on as number) < 30)
  })

  test('hashMissingOnEmpty', async () => {
    drive.device.write('empty.txt', '')
    const [on, off] = await differs({ hashMissingOnEmpty: true }, async () =>
      hashOf(await itemAt('empty.txt')),
    )
    assert.deepEqual([on, off], [undefined, 'AAAAAAAAAAAAAAAAAAAAAAAAAAA='])
  })

  test('heicSizeWrong', async () => {
    drive.device.write('photo.HEIC', Buffer.alloc(1_000))
    const [on, off] = await differs({ heicSizeWrong: true }, async () => (await itemAt('photo.HEIC')).size)
    assert.deepEqual([on, off], [700, 1_000])
  })

  test('wholeSecondTimes', async () => {
    drive.device.write('times.txt', 'x', { modifiedMs: Date.UTC(2020, 0, 1, 0, 0, 0, 123) })
    const time = async (): Promise<unknown> =>
      ((await itemAt('times.txt')).fileSystemInfo as Json).lastModifiedDateTime
    const [on, off] = await differs({ wholeSecondTimes: true }, time)
    assert.deepEqual([on, off], ['2020-01-01T00:00:00Z', '2020-01-01T00:00:00.123Z'])
  })

  test('yearOneDates: of some files', async () => {
    writeMany('years')
    const old = async (): Promise<number> =>
      (await listed('years')).filter(
        (json) => (json.fileSystemInfo as Json).lastModifiedDateTime === '0001-01-01T00:00:00Z',
      ).length
    const [on] = await differs({ yearOneDates: true }, old)
    assert.ok((on as number) > 0 && (on as number) < 30)
  })
})

describe('quirks of delta', () => {
  async function deleted(path: string): Promise<Json> {
    const link = await latest()
    drive.device.delete(path)
    return (await changesSince(link)).at(-1)!
  }

  test('hashBogusOnDeleted, deletedNameMissing, deletedSizeMissing', async () => {
    for (const name of ['plain', 'bogus', 'nameless', 'sizeless']) drive.device.write(`gone/${name}`, 'x')
    const plain = await deleted('gone/plain')
    assert.deepEqual([hashOf(plain), plain.name, plain.size], [undefined, 'plain', 1])
    drive.setQuirks({ hashBogusOnDeleted: true })
    assert.equal(hashOf(await deleted('gone/bogus')), `${'A'.repeat(27)}=`)
    drive.setQuirks({ deletedNameMissing: true })
    assert.equal((await deleted('gone/nameless')).name, undefined)
    drive.setQuirks({ deletedSizeMissing: true })
    assert.equal((await deleted('gone/sizeless')).size, undefined)
  })

  test('deltaCreateBeforeDelete', async () => {
    drive.device.write('swap.txt', 'old')
    const link = await latest()
    drive.device.delete('swap.txt')
    drive.device.write('swap.txt', 'new')
    const order = async (): Promise<boolean[]> =>
      (await changesSince(link)).filter(({ root }) => !root).map((json) => json.deleted !== undefined)
    const [on, off] = await differs({ deltaCreateBeforeDelete: true }, order)
    assert.deepEqual(
      [on, off],
      [
        [false, true],
        [true, false],
      ],
    )
  })

  test('deltaDuplicates: earlier rows are out of date', async () => {
    const link = await latest()
    writeMany('twice')
    for (let at = 0; at < 30; at++) drive.device.rename(`twice/file ${at}.txt`, `new ${at}.txt`)
    const rows = async (): Promise<Json[]> => changesSince(link)
    const [on, off] = (await differs({ deltaDuplicates: true }, rows)) as [Json[], Json[]]
    assert.ok(on.length > off.length)
    assert.ok(on.some(({ name }) => String(name).startsWith('file ')))
    const last = new Map(on.map((row) => [row.id, row]))
    for (const row of off) assert.deepEqual(last.get(row.id), row)
  })

  test('deltaParentsLast', async () => {
    const link = await latest()
    drive.device.write('under/deep/a.txt', 'x')
    const order = async (): Promise<unknown[]> => (await changesSince(link)).map(({ name }) => name)
    const [on, off] = await differs({ deltaParentsLast: true }, order)
    assert.deepEqual(off, ['root', 'under', 'deep', 'a.txt'])
    assert.deepEqual(on, ['a.txt', 'deep', 'under', 'root'])
  })

  test('deltaListsDeletedDescendants', async () => {
    drive.device.write('whole/deep/a.txt', 'x')
    const link = await latest()
    drive.device.delete('whole')
    const count = async (): Promise<number> => (await changesSince(link)).filter((row) => row.deleted).length
    assert.deepEqual(await differs({ deltaListsDeletedDescendants: true }, count), [3, 1])
  })

  test('deltaLagMs', async () => {
    drive.setQuirks({ deltaLagMs: 3_600_000 })
    const link = await latest()
    drive.device.write('lagging.txt', 'x')
    assert.equal((await itemAt('lagging.txt')).name, 'lagging.txt')
    const late = await get(link)
    assert.deepEqual(late.json.value, [])
    drive.setQuirks({ deltaLagMs: 0 })
    assert.equal((await changesSince(String(late.json['@odata.deltaLink']))).length, 2)
  })

  test('with all of them on, the last row of each item still tells the truth', async () => {
    const own = sim.onedrive.drive(BEN)
    const bearer = { authorization: `Bearer ${sim.onedrive.issue(BEN).accessToken}` }
    own.setQuirks({
      deltaCreateBeforeDelete: true,
      deltaDuplicates: true,
      deltaParentsLast: true,
      deltaListsDeletedDescendants: true,
      deletedNameMissing: true,
      deletedSizeMissing: true,
    })
    const mirror = new Map<unknown, { name: unknown; parent: unknown }>()
    let link = `${sim.onedrive.graphUrl}/me/drive/root/delta?$top=3`
    const drain = async (): Promise<void> => {
      for (let isLast = false; !isLast; ) {
        const json = (await (await fetch(link, { headers: bearer })).json()) as Json
        for (const row of json.value!) {
          if (row.deleted) mirror.delete(row.id)
          else mirror.set(row.id, { name: row.name, parent: (row.parentReference as Json | undefined)?.id })
        }
        isLast = json['@odata.deltaLink'] !== undefined
        link = String(json['@odata.deltaLink'] ?? json['@odata.nextLink'])
      }
      for (let isStable = false; !isStable; ) {
        isStable = true
        for (const [id, { parent }] of mirror) {
          if (parent === undefined || mirror.has(parent)) continue
          mirror.delete(id)
          isStable = false
        }
      }
    }
    const step = fc.record({ what: fc.nat(6), a: fc.nat(50), b: fc.nat(50) })
    for (const [round, steps] of fc
      .sample(fc.array(step, { maxLength: 12 }), { numRuns: 40, seed: 7 })
      .entries()) {
      for (const [number, { what, a, b }] of steps.entries()) change(own, what, a, b, `${round}-${number}`)
      await drain()
      const found = [...mirror]
        .filter(([, { parent }]) => parent !== undefined)
        .map(([id, one]) => [id, one.name, one.parent])
      const truth = own.dump().items.map(({ id, name, parentId }) => [id, name, parentId])
      assert.deepEqual(found.sort(byId), truth.sort(byId))
    }
  })
})

const byId = ([a]: unknown[], [b]: unknown[]): number => (String(a) < String(b) ? -1 : 1)

function change({ state }: SimDrive, what: number, a: number, b: number, unique: string): void {
  const all = [...state.items()]
  const folders = all.filter(({ kind }) => kind === 'folder')
  const parent = folders[b % folders.length]!
  const item = all[1 + (a % Math.max(1, all.length - 1))]
  const isUnder = ((): boolean => {
    for (let at: typeof parent | undefined = parent; at; at = at.parent) if (at === item) return true
    return false
  })()
  if (what === 0) state.createFolder(parent, `d${unique}`)
  else if (what <= 2 || !item)
    state.putFile({ parent, name: `f${unique}`, content: state.addContent(unique) })
  else if (what === 3) state.delete(item)
  else if (what === 4) state.update(item, { name: `r${unique}` })
  else if (what === 5 && !isUnder) state.update(item, { parent, conflict: 'rename' })
  else if (what === 6 && state.recycleBin.size > 0)
    state.restore([...state.recycleBin.keys()][0]!, { conflict: 'rename' })
}

describe('quirks of what was just made', () => {
  const statuses = async (...paths: string[]): Promise<number[]> => {
    const found: number[] = []
    for (const path of paths) found.push((await get(path)).status)
    return found
  }

  test('freshItemNotFound: once', async () => {
    drive.setQuirks({ freshItemNotFound: true })
    const address = `/me/drive/items/${drive.device.write('fresh.txt', 'x').id}`
    assert.deepEqual(await statuses(address, address), [404, 200])
  })

  test('changedNotFoundMs: until so long after a change, although delta lists it', async () => {
    const { id } = drive.device.write('changed.txt', 'x')
    drive.setQuirks({ changedNotFoundMs: 3_600_000 })
    const addresses = [
      `/me/drive/items/${id}`,
      '/me/drive/root:/changed.txt',
      `/me/drive/items/${id}/content`,
    ]
    assert.deepEqual(await statuses(...addresses), [404, 404, 404])
    drive.setQuirks({ changedNotFoundMs: 0 })
    assert.deepEqual(await statuses(addresses[0]!), [200])
  })

  test('freshPathNotFound: once after every change', async () => {
    drive.setQuirks({ freshPathNotFound: true })
    drive.device.write('freshpath.txt', 'x')
    const address = '/me/drive/root:/freshpath.txt'
    assert.deepEqual(await statuses(address, address), [404, 200])
    drive.device.edit('freshpath.txt', 'y')
    assert.deepEqual(await statuses(address, address), [404, 200])
  })

  test('freshChildNotFound: once, and nothing is made', async () => {
    drive.setQuirks({ freshChildNotFound: true })
    const folder = drive.device.mkdir('freshfolder')
    const put = (): Promise<Answer> =>
      call('PUT', `/me/drive/items/${folder.id}:/a.txt:/content`, { body: 'x' })
    assert.equal((await put()).status, 404)
    assert.ok(!drive.device.has('freshfolder/a.txt'))
    assert.equal((await put()).status, 201)
  })

  test('freshDownloadUnauthorized: once for every address', async () => {
    drive.setQuirks({ freshDownloadUnauthorized: true })
    drive.device.write('freshdown.txt', 'x')
    const { headers } = await get('/me/drive/root:/freshdown.txt:/content')
    const url = headers.get('location')!
    assert.deepEqual(await statuses(url, url), [401, 200])
  })

  test('mkdirEmptyBody: it is there', async () => {
    drive.setQuirks({ mkdirEmptyBody: true })
    const body = JSON.stringify({ name: 'quiet', folder: {} })
    const made = await call('POST', '/me/drive/root/children', { body })
    assert.deepEqual([made.status, made.json], [201, {}])
    assert.ok(drive.device.has('quiet'))
  })
})

describe('quirks of answers', () => {
  test('headersStall: every tenth answer does not come', async () => {
    drive.setQuirks({ headersStall: true })
    sim.log.reset()
    const stop = new AbortController()
    const asked = Array.from({ length: 10 }, () =>
      call('GET', '/me/drive', { signal: stop.signal }).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    const isOver = (): boolean => sim.log.served === 10 && sim.log.counts().faults.stalled === 1
    while (!isOver()) await new Promise((resolve) => setImmediate(resolve))
    const answered = sim.log.counts().requests['graph.drive.get']
    stop.abort()
    assert.deepEqual(answered, { 0: 1, 200: 9 })
    assert.equal((await Promise.all(asked)).includes(0), true)
  })

  test('redirectWithoutLocation: every tenth answer is 308, and nothing has happened', async () => {
    drive.setQuirks({ redirectWithoutLocation: true })
    const found: number[] = []
    for (let at = 0; at < 20; at++) {
      const { status, headers } = await call('PUT', `/me/drive/root:/r/${at}.txt:/content`, { body: 'x' })
      found.push(status)
      if (status === 308) assert.equal(headers.get('location'), null)
    }
    assert.equal(found.filter((status) => status === 308).length, 2)
    assert.ok(!drive.device.has(`r/${found.indexOf(308)}.txt`))
  })

  test('rangeIgnored', async () => {
    drive.device.write('range.txt', '0123456789')
    const read = async (): Promise<unknown> => {
      const { headers } = await get('/me/drive/root:/range.txt:/content')
      const answer = await fetch(headers.get('location')!, { headers: { range: 'bytes=5-' } })
      return [answer.status, await answer.text()]
    }
    assert.deepEqual(await differs({ rangeIgnored: true }, read), [
      [200, '0123456789'],
      [206, '56789'],
    ])
  })
})

describe('quirks of uploads', () => {
  const open = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    call('POST', `/me/drive/root:/${path}:/createUploadSession`, {
      body: JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }),
      headers,
    })
  const finish = (url: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(String(url), {
      method: 'PUT',
      body: 'abcd',
      headers: { 'content-range': 'bytes 0-3/4', ...headers },
    })

  test('sessionIfMatchRefused', async () => {
    drive.device.write('s.txt', 'x')
    const { eTag } = (await itemAt('s.txt')) as Record<string, string>
    const status = async (): Promise<number> => (await open('s.txt', { 'if-match': eTag! })).status
    assert.deepEqual(await differs({ sessionIfMatchRefused: true }, status), [412, 200])
    drive.setQuirks({ sessionIfMatchRefused: true })
    assert.equal((await open('s.txt')).status, 200)
  })

  test('sessionIfMatchForgotten: what was edited meanwhile is a version', async () => {
    drive.setQuirks({ sessionIfMatchForgotten: true })
    drive.device.write('f.txt', 'x')
    const { eTag } = (await itemAt('f.txt')) as Record<string, string>
    const { json } = await open('f.txt', { 'if-match': eTag! })
    drive.device.edit('f.txt', 'edited meanwhile')
    assert.equal((await finish(json.uploadUrl)).status, 200)
    const { versions } = drive.dump().items.find(({ path }) => path === 'f.txt')!
    assert.equal(drive.bytesOf(versions.at(-1)!.contentKey)!.toString(), 'edited meanwhile')
  })

  test('sessionsLeak: a canceled session lives on and takes room', async () => {
    const cancel = async (): Promise<number> => {
      const { json } = await open('leak.txt')
      const bytes = new Uint8Array(320 * 1024)
      const headers = { 'content-range': `bytes 0-${bytes.length - 1}/${bytes.length + 1}` }
      await fetch(String(json.uploadUrl), { method: 'PUT', body: bytes, headers })
      assert.equal((await fetch(String(json.uploadUrl), { method: 'DELETE' })).status, 204)
      return (await fetch(String(json.uploadUrl))).status
    }
    assert.deepEqual(await differs({ sessionsLeak: true }, cancel), [200, 404])
    assert.equal(drive.state.reservedBytes, 320 * 1024)
  })

  test('sessionRefusesAuthorization', async () => {
    drive.setQuirks({ sessionRefusesAuthorization: true })
    const { json } = await open('auth.txt')
    assert.equal((await finish(json.uploadUrl, { authorization: `Bearer ${token}` })).status, 401)
    assert.equal((await finish(json.uploadUrl)).status, 201)
  })

  test('rewritesUploads: the answer says what the service has made of it, once', async () => {
    drive.setQuirks({ rewritesUploads: true })
    const put = (body: string | Buffer): Promise<Answer> =>
      call('PUT', '/me/drive/root:/doc.docx:/content', { body: new Uint8Array(Buffer.from(body)) })
    const made = await put('text')
    assert.notEqual(made.json.size, 4)
    assert.equal(hashOf(made.json), drive.device.item('doc.docx').content!.hash)
    const kept = drive.device.read('doc.docx')!
    assert.equal(hashOf((await put(kept)).json), hashOf(made.json))
    const plain = await call('PUT', '/me/drive/root:/doc.txt:/content', { body: 'text' })
    assert.equal(plain.json.size, 4)
  })

  test('rewritesUploadsLater: the answer is about what was sent, and already out of date', async () => {
    drive.setQuirks({ rewritesUploadsLater: true })
    const made = await call('PUT', '/me/drive/root:/later.xlsx:/content', { body: 'text' })
    assert.equal(made.json.size, 4)
    const now = await itemAt('later.xlsx')
    assert.notEqual(now.size, 4)
    assert.notEqual(now.eTag, made.json.eTag)
  })
})

test('every switch has a test here or among those of shares, and is off by itself', async () => {
  const { readFileSync } = await import('node:fs')
  const files = [import.meta.filename, `${import.meta.dirname}/shares.test.ts`]
  const text = files.map((file) => readFileSync(file, 'utf8')).join('')
  for (const name of quirkNames) {
    assert.match(text, new RegExp(`\\b${name}: (?:true|\\d)`), name)
    assert.ok(!noQuirks()[name], name)
  }
})
