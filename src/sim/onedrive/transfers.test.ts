/** Bytes in and out over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { quickXorHash } from '../../base/quick-xor-hash.ts'
import { type Sim, startSim } from '../start.ts'
import type { SimDrive } from './sim-drive.ts'
import { syntheticBytes, syntheticHash } from './synthetic.ts'

const ANN = 'ann@example.com'
const UNIT = 320 * 1024

type Json = Record<string, unknown> & { error?: { code: string; innerError: { code?: string } } }
type Answer = { status: number; headers: Headers; json: Json }

const clock = new FakeClock()
let sim: Sim
let drive: SimDrive

before(async () => {
  sim = await startSim({ clock, onedrive: { drives: [{ account: ANN, keepBytesMax: 8 * UNIT }] } })
  drive = sim.onedrive.drive(ANN)
})
after(() => sim.close())

function authorization(): Record<string, string> {
  return { authorization: `Bearer ${sim.onedrive.issue(ANN).accessToken}` }
}

async function call(
  verb: string,
  url: string,
  { body, headers = {} }: { body?: string | Buffer; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const isGraph = !url.startsWith('http')
  const answer = await fetch(isGraph ? sim.onedrive.graphUrl + url : url, {
    method: verb,
    headers: { ...(isGraph ? authorization() : {}), ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return {
    status: answer.status,
    headers: answer.headers,
    json: isJson ? (JSON.parse(text) as Json) : { text },
  }
}

async function refused(answer: Promise<Answer>, status: number, code: string): Promise<void> {
  const { status: got, json } = await answer
  assert.deepEqual([got, json.error?.code], [status, code])
}

const put = (path: string, body: string, query = '', headers: Record<string, string> = {}): Promise<Answer> =>
  call('PUT', `/me/drive/root:/${path}:/content${query}`, { body, headers })

describe('a simple upload', () => {
  test('makes a file with its folders, then replaces it', async () => {
    const made = await put('up/one/a.txt', 'hello')
    assert.equal(made.status, 201)
    assert.equal((made.json.file as { hashes: Json }).hashes.quickXorHash, quickXorHash(Buffer.from('hello')))
    const replaced = await put('up/one/A.txt', 'other')
    assert.deepEqual([replaced.status, replaced.json.id, replaced.json.name], [200, made.json.id, 'a.txt'])
    const byId = await call('PUT', `/me/drive/items/${made.json.id}/content`, { body: 'third' })
    assert.equal(byId.status, 200)
    assert.equal(drive.device.read('up/one/a.txt')!.toString(), 'third')
    const parent = drive.device.item('up/one').id
    assert.equal((await call('PUT', `/me/drive/items/${parent}:/b.txt:/content`, { body: '' })).json.size, 0)
  })

  test('does with a name that is taken what it is told', async () => {
    await put('clash.txt', '1')
    const as = (behavior: string): string => `?@microsoft.graph.conflictBehavior=${behavior}`
    await refused(put('CLASH.txt', '2', as('fail')), 409, 'nameAlreadyExists')
    assert.equal((await put('CLASH.txt', '2', as('rename'))).json.name, 'CLASH 1.txt')
    drive.device.mkdir('folder')
    assert.equal((await put('folder', 'x')).status, 409)
    await refused(put('a%3Ab', 'x'), 400, 'invalidRequest')
  })

  test('minds If-Match and If-None-Match', async () => {
    const { json } = await put('match.txt', '1')
    await refused(put('match.txt', '2', '', { 'if-none-match': '*' }), 412, 'resourceModified')
    drive.device.edit('match.txt', 'other')
    await refused(put('match.txt', '2', '', { 'if-match': String(json.eTag) }), 412, 'resourceModified')
    await refused(put('missing.txt', '2', '', { 'if-match': String(json.eTag) }), 412, 'resourceModified')
    assert.equal(drive.device.read('match.txt')!.toString(), 'other')
    assert.ok(!drive.device.has('missing.txt'))
  })

  test('that does not fit any more is answered with 507', async () => {
    drive.state.quotaBytes = drive.state.usedBytes + 3
    await refused(put('full.txt', '1234'), 507, 'quotaLimitReached')
    drive.state.quotaBytes = 2 ** 40
  })

  test('of which the answer is lost has happened', async () => {
    sim.faults.set({ rules: [{ do: 'reset', when: 'after', max: 1 }] })
    await assert.rejects(put('lost.txt', 'there'))
    sim.faults.clear()
    assert.equal(drive.device.read('lost.txt')!.toString(), 'there')
  })
})

async function session(
  path: string,
  item: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call('POST', `/me/drive/root:/${path}:/createUploadSession`, {
    body: JSON.stringify({ item }),
    headers,
  })
}

async function urlOf(path: string, item?: Record<string, unknown>): Promise<string> {
  return String((await session(path, item)).json.uploadUrl)
}

function fragment(url: string, bytes: Buffer, from: number, total: number): Promise<Answer> {
  const headers = { 'content-range': `bytes ${from}-${from + bytes.length - 1}/${total}` }
  return call('PUT', url, { body: bytes, headers })
}

const ranges = ({ json }: Answer): unknown => json.nextExpectedRanges
const noise = (length: number): Buffer => Buffer.alloc(length, 'some bytes that repeat ')

describe('an upload session', () => {
  test('takes fragments in order, and is a file with the last one', async () => {
    const bytes = noise(2 * UNIT + 500)
    const modified = '2011-12-13T14:15:16.000Z'
    const fileSystemInfo = { lastModifiedDateTime: modified }
    const begun = await session('big/a.bin', { fileSystemInfo })
    assert.equal(begun.status, 200)
    assert.deepEqual(ranges(begun), ['0-'])
    const url = String(begun.json.uploadUrl)
    const first = await fragment(url, bytes.subarray(0, UNIT), 0, bytes.length)
    assert.equal(first.status, 202)
    assert.deepEqual(ranges(first), [`${UNIT}-`])
    assert.ok(Date.parse(String(first.json.expirationDateTime)) > clock.now())
    assert.ok(!drive.device.has('big/a.bin'))
    assert.deepEqual(ranges(await call('GET', url)), [`${UNIT}-`])
    const last = await fragment(url, bytes.subarray(UNIT), UNIT, bytes.length)
    assert.equal(last.status, 201)
    assert.equal((last.json.fileSystemInfo as Json).lastModifiedDateTime, modified)
    assert.ok(drive.device.read('big/a.bin')!.equals(bytes))
    await refused(call('GET', url), 404, 'itemNotFound')
  })

  test('refuses what is not a multiple of 320 KiB, out of order, overlapping, too long or malformed', async () => {
    const url = await urlOf('rules.bin')
    const total = 3 * UNIT
    await refused(fragment(url, noise(1_000), 0, total), 400, 'invalidRequest')
    await refused(fragment(url, noise(UNIT), UNIT, total), 416, 'invalidRange')
    assert.equal((await fragment(url, noise(UNIT), 0, total)).status, 202)
    const again = await fragment(url, noise(UNIT), 0, total)
    assert.deepEqual([again.status, again.json.error?.innerError.code], [416, 'fragmentOverlap'])
    await refused(fragment(url, noise(UNIT), UNIT, total + 1), 400, 'invalidRequest')
    await refused(call('PUT', url, { body: noise(10) }), 400, 'invalidRequest')
    const wrong = { 'content-range': `bytes ${UNIT}-${2 * UNIT - 1}/${total}` }
    await refused(call('PUT', url, { body: noise(10), headers: wrong }), 400, 'invalidRequest')
    assert.deepEqual(ranges(await call('GET', url)), [`${UNIT}-`])
    const fresh = await urlOf('long.bin')
    const long = await fragment(fresh, noise(60 * 2 ** 20), 0, 70 * 2 ** 20)
    assert.equal(long.status, 413)
  })

  test('goes on after an answer that was lost, at the place that its status names', async () => {
    const bytes = noise(2 * UNIT)
    const url = await urlOf('ack.bin')
    sim.faults.set({ rules: [{ do: 'reset', when: 'after', methods: ['graph.session.put'], max: 1 }] })
    await assert.rejects(fragment(url, bytes.subarray(0, UNIT), 0, bytes.length))
    sim.faults.clear()
    assert.deepEqual(ranges(await call('GET', url)), [`${UNIT}-`])
    assert.equal((await fragment(url, bytes.subarray(UNIT), UNIT, bytes.length)).status, 201)
  })

  test('nothing of a fragment counts that did not come whole', async () => {
    const url = await urlOf('torn.bin')
    const stop = new AbortController()
    const { sent } = { sent: sim.log.bytesOf('graph.session.put').received }
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sim.log.bytesOf('graph.session.put').received > sent) stop.abort()
        else controller.enqueue(noise(1_000))
      },
    })
    const headers = { 'content-range': `bytes 0-${UNIT - 1}/${UNIT}`, 'content-length': String(UNIT) }
    await assert.rejects(
      fetch(url, { method: 'PUT', body, headers, signal: stop.signal, duplex: 'half' } as RequestInit),
    )
    assert.deepEqual(ranges(await call('GET', url)), ['0-'])
    assert.equal((await fragment(url, noise(UNIT), 0, UNIT)).status, 201)
  })

  test('ends when it is canceled or too old, and each fragment gives it new time', async () => {
    const url = await urlOf('cancel.bin')
    assert.equal((await call('DELETE', url)).status, 204)
    await refused(fragment(url, noise(UNIT), 0, UNIT), 404, 'itemNotFound')
    const old = await urlOf('old.bin')
    await clock.advance(drive.sessions.sessionMs - 1_000)
    assert.equal((await fragment(old, noise(UNIT), 0, 2 * UNIT)).status, 202)
    await clock.advance(drive.sessions.sessionMs - 1_000)
    assert.equal((await call('GET', old)).status, 200)
    await clock.advance(2_000)
    await refused(fragment(old, noise(UNIT), UNIT, 2 * UNIT), 404, 'itemNotFound')
    assert.equal(drive.sessions.open < 10, true)
  })

  test('meets a name that is taken at its beginning or at its end', async () => {
    drive.device.write('taken.bin', 'first')
    await refused(
      session('taken.bin', { '@microsoft.graph.conflictBehavior': 'fail' }),
      409,
      'nameAlreadyExists',
    )
    const behave = (behavior: string): Record<string, unknown> => ({
      '@microsoft.graph.conflictBehavior': behavior,
    })
    const renamed = await fragment(await urlOf('taken.bin', behave('rename')), noise(10), 0, 10)
    assert.equal(renamed.json.name, 'taken 1.bin')
    const replaced = await fragment(await urlOf('taken.bin', behave('replace')), noise(10), 0, 10)
    assert.deepEqual([replaced.status, replaced.json.name], [200, 'taken.bin'])
    const late = await urlOf('late.bin', behave('fail'))
    drive.device.write('late.bin', 'somebody was faster')
    await refused(fragment(late, noise(10), 0, 10), 409, 'nameAlreadyExists')
    assert.equal(drive.device.read('late.bin')!.toString(), 'somebody was faster')
    assert.equal((await call('DELETE', late)).status, 204)
    await refused(session('a%3Fb'), 400, 'invalidRequest')
  })

  test('of which the folder or the file was deleted meanwhile loses nothing of what is there', async () => {
    drive.device.mkdir('short-lived')
    const orphan = await urlOf('short-lived/a.bin')
    drive.device.delete('short-lived')
    await refused(fragment(orphan, noise(10), 0, 10), 404, 'itemNotFound')
    const item = drive.device.write('replaced.bin', 'x')
    const open = await call('POST', `/me/drive/items/${item.id}/createUploadSession`, { body: '{}' })
    drive.device.delete('replaced.bin')
    const made = await fragment(String(open.json.uploadUrl), noise(10), 0, 10)
    assert.equal(made.status, 201)
    assert.notEqual(made.json.id, item.id)
    assert.ok(drive.dump().recycleBin.some(({ id }) => id === item.id))
  })

  test('for an item by id replaces it, and keeps its promise about the eTag until the end', async () => {
    const item = drive.device.write('byid.bin', 'one')
    const open = (headers: Record<string, string> = {}): Promise<Answer> =>
      call('POST', `/me/drive/items/${item.id}/createUploadSession`, { body: '{}', headers })
    const done = await fragment(String((await open()).json.uploadUrl), noise(10), 0, 10)
    assert.deepEqual([done.status, done.json.id], [200, item.id])
    await refused(open({ 'if-match': '"other"' }), 412, 'resourceModified')
    const begun = await open({ 'if-match': String(done.json.eTag) })
    drive.device.edit('byid.bin', 'edited while the upload runs')
    await refused(fragment(String(begun.json.uploadUrl), noise(10), 0, 10), 412, 'resourceModified')
    assert.equal(drive.device.read('byid.bin')!.toString(), 'edited while the upload runs')
  })

  test('that does not fit any more is refused at the first fragment or before', async () => {
    drive.state.quotaBytes = drive.state.usedBytes + 100
    const total = 2 * UNIT
    await refused(session('fit.bin', { fileSize: total }), 507, 'quotaLimitReached')
    await refused(fragment(await urlOf('fit.bin'), noise(UNIT), 0, total), 507, 'quotaLimitReached')
    drive.state.quotaBytes = 2 ** 40
  })

  test('of synthetic content keeps no bytes and gives them all back', async () => {
    const synthetic = { seed: 5, size: 30 * UNIT + 77 }
    const bytes = Buffer.concat([...syntheticBytes(synthetic)])
    const url = await urlOf('synthetic.bin')
    await fragment(url, bytes.subarray(0, 20 * UNIT), 0, bytes.length)
    const done = await fragment(url, bytes.subarray(20 * UNIT), 20 * UNIT, bytes.length)
    assert.equal((done.json.file as { hashes: Json }).hashes.quickXorHash, syntheticHash(synthetic))
    const answer = await fetch(String(done.json['@microsoft.graph.downloadUrl']))
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes))
  })

  test('of other content above the limit keeps hash and size, and a download says so', async () => {
    const bytes = noise(9 * UNIT)
    const done = await fragment(await urlOf('forgotten.bin'), bytes, 0, bytes.length)
    assert.equal((done.json.file as { hashes: Json }).hashes.quickXorHash, quickXorHash(bytes))
    await refused(call('GET', String(done.json['@microsoft.graph.downloadUrl'])), 501, 'notSupported')
  })
})

describe('an upload session without a conflict behavior', () => {
  test('replaces the file that is there', async () => {
    const { id } = drive.device.write('plain.bin', 'before')
    const { status, json } = await fragment(await urlOf('plain.bin'), Buffer.from('after'), 0, 5)
    assert.deepEqual([status, json.id], [200, id])
    assert.equal(drive.device.read('plain.bin')!.toString(), 'after')
  })
})

describe('a download', () => {
  const bytes = noise(5_000)

  async function location(path: string): Promise<string> {
    const { status, headers } = await call('GET', `/me/drive/root:/${path}:/content`)
    assert.equal(status, 302)
    return headers.get('location')!
  }

  async function read(
    url: string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; bytes: Buffer; headers: Headers }> {
    const answer = await fetch(url, { headers })
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers }
  }

  test('is found by a redirect, and needs no sign-in there', async () => {
    drive.device.write('down.bin', bytes)
    const whole = await read(await location('down.bin'))
    assert.equal(whole.status, 200)
    assert.ok(whole.bytes.equals(bytes))
    drive.device.write('empty.bin', '')
    assert.equal((await read(await location('empty.bin'))).bytes.length, 0)
    drive.device.mkdir('nobytes')
    assert.equal((await call('GET', '/me/drive/root:/nobytes:/content')).status, 409)
  })

  test('goes on from any place by Range', async () => {
    const url = await location('down.bin')
    const cases: [range: string, from: number, to: number][] = [
      ['bytes=100-199', 100, 200],
      ['bytes=4000-', 4_000, 5_000],
      ['bytes=-10', 4_990, 5_000],
      ['bytes=0-999999', 0, 5_000],
    ]
    for (const [range, from, to] of cases) {
      const part = await read(url, { range })
      assert.equal(part.status, 206, range)
      assert.equal(part.headers.get('content-range'), `bytes ${from}-${to - 1}/5000`)
      assert.ok(part.bytes.equals(bytes.subarray(from, to)), range)
    }
    const beyond = await read(url, { range: 'bytes=5000-' })
    assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */5000'])
    const first = await read(url)
    const etag = first.headers.get('etag')!
    assert.equal((await read(url, { range: 'bytes=1-', 'if-range': etag })).status, 206)
    drive.device.edit('down.bin', Buffer.concat([bytes, bytes]))
    assert.equal((await read(url, { range: 'bytes=1-', 'if-range': etag })).status, 200)
    drive.device.edit('down.bin', bytes)
  })

  test('ends with its time, with its item, and for whoever changes its address', async () => {
    const url = await location('down.bin')
    assert.equal((await read(`${url}x`)).status, 401)
    await clock.advance(3_600_001)
    assert.equal((await read(url)).status, 401)
    const fresh = await location('down.bin')
    drive.device.delete('down.bin')
    assert.equal((await read(fresh)).status, 404)
    drive.device.restore('down.bin')
  })

  test('can be cut, and counts the bytes that left', async () => {
    const url = await location('down.bin')
    sim.faults.set({ rules: [{ do: 'truncate', share: 0.5, methods: ['graph.download'] }] })
    const before = sim.log.bytesOf('graph.download').sent
    await assert.rejects(read(url))
    assert.equal(sim.log.bytesOf('graph.download').sent - before, 2_500)
    sim.faults.set({ rules: [{ do: 'truncate', share: 0.5, close: false, methods: ['graph.download'] }] })
    assert.equal((await read(url)).bytes.length, 2_500)
    sim.faults.clear()
    await read(url, { range: 'bytes=2500-' })
    assert.equal(sim.log.bytesOf('graph.download').sent - before, 7_500)
  })

  test('stalls in its middle, and goes on', async () => {
    const url = await location('down.bin')
    sim.faults.set({ rules: [{ do: 'stall', at: 'middle', ms: 5_000, methods: ['graph.download'] }] })
    const waiting = read(url)
    while (clock.pendingTimers === 0) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(5_000)
    sim.faults.clear()
    assert.ok((await waiting).bytes.equals(bytes))
  })

  test('of a gigabyte is made while it leaves', async () => {
    const size = 2 ** 30
    drive.device.write('huge.bin', { seed: 9, size })
    const url = await location('huge.bin')
    const part = await read(url, { range: `bytes=${size - 1_000}-` })
    assert.ok(
      part.bytes.equals(Buffer.concat([...syntheticBytes({ seed: 9, size }, { from: size - 1_000 })])),
    )
    const before = sim.log.bytesOf('graph.download').sent
    const stop = new AbortController()
    const answer = await fetch(url, { signal: stop.signal })
    const reader = answer.body!.getReader()
    await reader.read()
    stop.abort()
    await assert.rejects(reader.read())
    assert.ok(sim.log.bytesOf('graph.download').sent - before < size / 4)
  })
})
