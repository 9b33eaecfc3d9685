/** The other device over HTTP, generated drives, subscriptions. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import { nameProblem } from './drive.ts'
import type { DriveDump } from './drive-dump.ts'

const ANN = 'ann@example.com'

let sim: Sim

before(async () => {
  sim = await startSim({ onedrive: { drives: [{ account: ANN, files: 0 }] } })
})
after(() => sim.close())

async function control<Answer>(
  verb: string,
  path: string,
  body?: unknown,
): Promise<Answer & { status: number }> {
  const init = body === undefined ? { method: verb } : { method: verb, body: JSON.stringify(body) }
  const answer = await fetch(sim.controlUrl + path, init)
  return { ...((await answer.json()) as Answer), status: answer.status }
}

const act = (
  what: string,
  body: unknown,
): Promise<{ status: number; id?: string; path?: string; error?: string }> =>
  control('POST', `/drives/${ANN}/${what}`, body)

describe('the control API of drives', () => {
  test('is the other device: writes, edits, moves, renames, deletes, restores, empties', async () => {
    const made = await act('write', { path: 'a/b.txt', text: 'one', modifiedMs: 1_000 })
    assert.equal(made.status, 200)
    await act('edit', { path: 'a/b.txt', base64: Buffer.from('two').toString('base64') })
    await act('append', { path: 'a/b.txt', text: ' three' })
    await act('move', { path: 'a', to: 'x/a' })
    await act('rename', { path: 'x/a/b.txt', name: 'B.txt' })
    await act('times', { path: 'x/a/b.txt', modifiedMs: 2_000 })
    await act('mkdir', { path: 'empty/deep' })
    await act('notebook', { path: 'Notes' })
    await act('write', { path: 'big.bin', synthetic: { seed: 1, size: 10_000_000_000 } })
    await act('delete', { path: 'empty' })
    assert.equal((await act('restore', { path: 'empty' })).path, 'empty')
    await act('delete', { path: 'empty/deep' })
    const dump = await control<DriveDump>('GET', `/drives/${ANN}/dump`)
    const item = dump.items.find(({ path }) => path === 'x/a/B.txt')!
    assert.deepEqual([item.id, item.fsModifiedMs, item.versions.length], [made.id, 2_000, 2])
    const bytes = await fetch(
      `${sim.controlUrl}/drives/${ANN}/content?key=${encodeURIComponent(item.contentKey!)}`,
    )
    assert.equal(await bytes.text(), 'two three')
    assert.equal(sim.onedrive.drive(ANN).bytesOf(item.contentKey!)!.toString(), 'two three')
    assert.deepEqual(
      dump.recycleBin.map(({ path }) => path),
      ['empty/deep'],
    )
    await act('empty-recycle-bin', {})
    const after = await control<DriveDump>('GET', `/drives/${ANN}/dump`)
    assert.deepEqual([after.recycleBin.length, after.purged.length], [0, 1])
    assert.deepEqual(after, {
      ...(JSON.parse(JSON.stringify(sim.onedrive.drive(ANN).dump())) as object),
      status: 200,
    })
  })

  test('switches quirks, limits, tokens and delta', async () => {
    const path = `/drives/${ANN}`
    assert.equal(
      (await control<{ deltaLagMs: number }>('PUT', `${path}/quirks`, { deltaLagMs: 5 })).deltaLagMs,
      5,
    )
    assert.equal(sim.onedrive.drive(ANN).quirks.deltaLagMs, 5)
    await control('PUT', `${path}/quirks`, { deltaLagMs: 0 })
    await control('PUT', `${path}/settings`, { quotaBytes: 2 ** 45, sessionMs: 5_000 })
    assert.equal(sim.onedrive.drive(ANN).sessions.sessionMs, 5_000)
    const { accessToken } = await control<{ accessToken: string }>('POST', '/tokens', { address: ANN })
    const headers = { authorization: `Bearer ${accessToken}` }
    const status = async (): Promise<number> =>
      (await fetch(`${sim.onedrive.graphUrl}/me/drive`, { headers })).status
    assert.equal(await status(), 200)
    await control('POST', `${path}/pause`, { seconds: 600 })
    assert.equal(await status(), 429)
    await control('POST', `${path}/pause`, { seconds: 0 })
    assert.equal(await status(), 200)
    const generation = sim.onedrive.drive(ANN).deltaGeneration
    await control('POST', `${path}/expire-delta`, { kind: 'resyncChangesUploadDifferences' })
    assert.equal(sim.onedrive.drive(ANN).deltaGeneration, generation + 1)
    await control('POST', '/tokens/expire', { address: ANN, service: 'onedrive' })
    assert.equal(await status(), 401)
    const rate = await control<{ status: number }>('PUT', '/drive-rate', { requestsPerSecond: 100 })
    assert.equal(sim.onedrive.rate.settings.requestsPerSecond, 100)
    assert.equal(rate.status, 200)
    await control('PUT', '/drive-rate', { requestsPerSecond: null })
    await control('PUT', '/drive-sign-in', {
      deviceIntervalS: 1,
      endsUsedRefresh: true,
      downloadUrlMs: 9_000,
    })
    assert.deepEqual([sim.onedrive.signIn.deviceIntervalS, sim.onedrive.urls.downloadMs], [1, 9_000])
  })

  test('says what is wrong', async () => {
    const cases: [what: string, body: unknown, status: number, error: RegExp][] = [
      ['write', { path: 'x' }, 400, /content is missing/],
      ['write', { path: 'a:b', text: '' }, 400, /invalidRequest/],
      ['delete', { path: 'nothing' }, 404, /nothing at nothing/],
      ['restore', { path: 'nothing' }, 404, /Nothing was deleted/],
      ['dance', {}, 404, /There is no POST/],
    ]
    for (const [what, body, status, error] of cases) {
      const answer = await act(what, body)
      assert.equal(answer.status, status, what)
      assert.match(answer.error!, error)
    }
    const unknown = await control<{ error: string }>('GET', '/drives/nobody')
    assert.deepEqual([unknown.status, /no drive nobody/.test(unknown.error)], [400, true])
    assert.equal((await control('PUT', `/drives/${ANN}/quirks`, { sunny: true })).status, 400)
  })
})

describe('a generated drive', () => {
  test('is the same for the same seed, with names that the service takes and sizes of all sorts', async () => {
    const options = {
      seed: 3,
      onedrive: { drives: [{ account: ANN, files: 500, large: { files: 2, bytes: 10 ** 9 } }] },
    }
    const [one, two] = [await startSim(options), await startSim(options)]
    const shape = (own: Sim): unknown[] =>
      own.onedrive
        .drive(ANN)
        .dump()
        .items.map(({ id, path, hash, size }) => [id, path, hash, size])
    assert.deepEqual(shape(one), shape(two))
    const { items } = one.onedrive.drive(ANN).dump()
    const files = items.filter(({ kind }) => kind === 'file')
    assert.equal(files.length, 502)
    for (const { name } of items) assert.equal(nameProblem(name), undefined, name)
    assert.ok(files.some(({ size }) => size === 0))
    assert.ok(files.some(({ size }) => size > 4_000 && size < 10 ** 7))
    assert.ok(items.some(({ path }) => path.split('/').length > 3))
    assert.ok(items.some(({ name }) => /[^\x20-\x7e]/.test(name)))
    assert.equal(files.filter(({ size }) => size === 10 ** 9).length, 2)
    await Promise.all([one.close(), two.close()])
  })
})

describe('subscriptions', () => {
  let listener: Server
  let url: string
  let answersValidation = true
  const heard: Record<string, unknown>[] = []
  let onHeard: () => void = () => {}

  before(async () => {
    listener = createServer((request, response) => {
      const token = new URL(request.url!, 'http://x').searchParams.get('validationToken')
      if (token !== null) return void response.end(answersValidation ? token : 'nonsense')
      let text = ''
      request.on('data', (chunk) => {
        text += chunk
      })
      request.on('end', () => {
        heard.push(...(JSON.parse(text) as { value: Record<string, unknown>[] }).value)
        response.writeHead(202).end()
        onHeard()
      })
    })
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/hook?own=1`
  })
  after(() => {
    listener.closeAllConnections()
    listener.close()
  })

  async function graph(
    verb: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; json: Record<string, unknown> }> {
    const { accessToken } = sim.onedrive.issue(ANN)
    const answer = await fetch(sim.onedrive.graphUrl + path, {
      method: verb,
      headers: { authorization: `Bearer ${accessToken}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) }
  }

  const wanted = (change: Record<string, unknown> = {}): Record<string, unknown> => ({
    changeType: 'updated',
    notificationUrl: url,
    resource: '/me/drive/root',
    clientState: 'secret',
    expirationDateTime: new Date(Date.now() + 3_600_000).toISOString(),
    ...change,
  })

  test('tell that something changed, after a handshake, until they are deleted', async () => {
    const made = await graph('POST', '/subscriptions', wanted())
    assert.equal(made.status, 201)
    const first = new Promise<void>((resolve) => {
      onHeard = resolve
    })
    sim.onedrive.drive(ANN).device.write('told.txt', 'x')
    await first
    assert.deepEqual([heard[0]!.subscriptionId, heard[0]!.clientState], [made.json.id, 'secret'])
    const later = new Date(Date.now() + 7_200_000).toISOString()
    const renewed = await graph('PATCH', `/subscriptions/${made.json.id}`, { expirationDateTime: later })
    assert.equal(renewed.json.expirationDateTime, later)
    assert.equal(((await graph('GET', '/subscriptions')).json.value as unknown[]).length, 1)
    for (let at = 0; at < 50; at++) sim.onedrive.drive(ANN).device.write(`flood/${at}`, 'x')
    await sim.onedrive.subscriptions.settled()
    assert.ok(heard.length < 20)
    assert.equal((await graph('DELETE', `/subscriptions/${made.json.id}`)).status, 204)
    const before = heard.length
    sim.onedrive.drive(ANN).device.write('untold.txt', 'x')
    await sim.onedrive.subscriptions.settled()
    assert.equal(heard.length, before)
    assert.equal((await graph('GET', `/subscriptions/${made.json.id}`)).status, 404)
  })

  test('are refused where nobody answers the handshake, elsewhere, for long or for something else', async () => {
    const changes = [
      { notificationUrl: 'https://example.com/hook' },
      { changeType: 'created' },
      { resource: '/me/messages' },
      { expirationDateTime: '2001-01-01T00:00:00Z' },
      { expirationDateTime: '2999-01-01T00:00:00Z' },
    ]
    for (const change of changes)
      assert.equal((await graph('POST', '/subscriptions', wanted(change))).status, 400)
    answersValidation = false
    assert.equal((await graph('POST', '/subscriptions', wanted())).status, 400)
    answersValidation = true
  })
})
