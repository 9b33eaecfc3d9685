import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

const ADDRESS = 'owner@example.com'

let sim: Sim
let ids: string[]

before(async () => {
  sim = await startSim({
    gmail: {
      accounts: [{ address: ADDRESS, messages: 60, profile: 'small' }],
      quota: { unitsPerMinute: null },
    },
  })
  ids = sim.gmail
    .mailbox(ADDRESS)
    .list({ maxResults: 60, includeSpamTrash: true })
    .messages.map(({ id }) => id)
})
after(() => sim.close())
beforeEach(() => sim.faults.clear())

type Part = {
  contentId: string
  status: number
  json: { id?: string; raw?: string; error?: { code: number } }
}
type Answer = { status: number; parts: Part[] }

async function post(body: string | Buffer, to: Sim = sim): Promise<Response> {
  return fetch(`${to.baseUrl}/batch/gmail/v1`, {
    method: 'POST',
    headers: {
      'content-type': `multipart/mixed; boundary=b`,
      authorization: `Bearer ${to.gmail.accounts[0]!.accessToken}`,
    },
    body,
  })
}

function getRequests(wanted: readonly string[]): string {
  const parts = wanted.map(
    (id, at) =>
      `--b\r\nContent-Type: application/http\r\nContent-ID: <item${at}>\r\n\r\nGET /gmail/v1/users/me/messages/${id}?format=raw HTTP/1.1\r\n\r\n`,
  )
  return `${parts.join('\r\n')}\r\n--b--\r\n`
}

async function getAll(wanted: readonly string[], to: Sim = sim): Promise<Answer> {
  const answer = await post(getRequests(wanted), to)
  if (answer.status !== 200) return { status: answer.status, parts: [] }
  const boundary = /boundary=(.+)$/.exec(answer.headers.get('content-type')!)![1]!
  const pieces = (await answer.text()).split(`--${boundary}`).slice(1, -1)
  const parts = pieces.map((piece) => {
    const [outer = '', inner = '', ...rest] = piece.split('\r\n\r\n')
    const text = rest.join('\r\n\r\n').replace(/\r\n$/, '')
    assert.equal(Number(/Content-Length: (\d+)/.exec(inner)![1]), Buffer.byteLength(text))
    return {
      contentId: /Content-ID: (.+)/.exec(outer)?.[1] ?? '',
      status: Number(/^HTTP\/1\.1 (\d+)/.exec(inner.trimStart())![1]),
      json: JSON.parse(text) as Part['json'],
    }
  })
  return { status: 200, parts }
}

describe('a batch', () => {
  test('answers every part with its Content-ID, each with its own status', async () => {
    const { parts } = await getAll([ids[0]!, 'ffffffffffffffff', ids[1]!])
    assert.deepEqual(
      parts.map(({ contentId, status }) => [contentId, status]),
      [
        ['<response-item0>', 200],
        ['<response-item1>', 404],
        ['<response-item2>', 200],
      ],
    )
    assert.deepEqual(
      Buffer.from(parts[0]!.json.raw!, 'base64url'),
      sim.gmail.mailbox(ADDRESS).get(ids[0]!)!.raw(),
    )
  })

  test('costs the sum of its parts, and runs out part by part', async () => {
    // A clock that stands still: nothing falls out of the window.
    const accounts = [{ address: ADDRESS, messages: 10 }]
    const own = await startSim({
      clock: new FakeClock(),
      gmail: { accounts, quota: { unitsPerMinute: 300 } },
    })
    const found = own.gmail
      .mailbox(ADDRESS)
      .list({ includeSpamTrash: true })
      .messages.map(({ id }) => id)
    const first = await getAll(found, own)
    assert.deepEqual(
      first.parts.map(({ status }) => status),
      found.map(() => 200),
    )
    assert.equal(own.gmail.quota.usage(ADDRESS).unitsUsed, 200)
    const { parts } = await getAll(found, own)
    assert.equal(parts.filter(({ status }) => status === 200).length, 5)
    assert.equal(parts.filter(({ status }) => status === 403 || status === 429).length, 5)
    assert.equal(own.gmail.quota.usage(ADDRESS).callsRefused, 5)
    await own.close()
  })

  test('of more than a hundred parts, of none, or of nonsense is refused as a whole', async () => {
    const many = Array.from({ length: 101 }, () => ids[0]!)
    assert.equal((await getAll(many)).status, 400)
    assert.equal((await getAll([])).status, 400)
    assert.equal((await post('--b\r\n\r\nhello\r\n--b--')).status, 400)
    assert.equal((await getAll(many.slice(1))).parts.length, 100)
  })

  test('changes things, with bodies that are not ASCII', async () => {
    const body = JSON.stringify({ name: 'Grüße' })
    const part = `--b\r\nContent-Type: application/http\r\n\r\nPOST /gmail/v1/users/me/labels\r\nContent-Type: application/json\r\n\r\n${body}\r\n--b--`
    assert.match(await (await post(part)).text(), /HTTP\/1\.1 200 OK/)
    assert.ok(
      sim.gmail
        .mailbox(ADDRESS)
        .labels()
        .some(({ name }) => name === 'Grüße'),
    )
  })

  test('a batch within a batch is not found', async () => {
    const text = await (await post('--b\r\n\r\nPOST /batch/gmail/v1\r\n\r\n\r\n--b--')).text()
    assert.match(text, /HTTP\/1\.1 404/)
  })

  test('a body of chance never brings the simulator down', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const answer = await post(Buffer.concat([Buffer.from('--b\r\n'), Buffer.from(bytes)]))
        await answer.arrayBuffer()
        assert.ok(answer.status === 200 || answer.status === 400, String(answer.status))
      }),
      { numRuns: 60 },
    )
  })
})

describe('faults in a batch', () => {
  test('some parts fail, the others do not', async () => {
    sim.faults.set({ rules: [{ do: 'error', status: 500, on: 'part', everyNth: 4 }] })
    const { parts } = await getAll(ids.slice(0, 12))
    assert.deepEqual(
      parts.filter(({ status }) => status === 500).map(({ contentId }) => contentId),
      ['<response-item3>', '<response-item7>', '<response-item11>'],
    )
    assert.equal(parts.filter(({ status }) => status === 200).length, 9)
  })

  test('parts come in another order, and only the Content-ID tells which is which', async () => {
    sim.faults.set({ rules: [{ do: 'shuffle-parts', methods: ['batch'] }] })
    const wanted = ids.slice(0, 20)
    const { parts } = await getAll(wanted)
    const order = parts.map(({ contentId }) => Number(/\d+/.exec(contentId)![0]))
    assert.notDeepEqual(
      order,
      [...order].sort((a, b) => a - b),
    )
    for (const [at, part] of parts.entries()) assert.equal(part.json.id, wanted[order[at]!])
  })

  test('a poison id fails alone, or takes its whole batch with it', async () => {
    const [poison = ''] = ids
    sim.faults.poison({ id: poison, mode: 'part' })
    for (let time = 0; time < 3; time++) {
      const { parts } = await getAll(ids.slice(0, 3))
      assert.deepEqual(
        parts.map(({ status }) => status),
        [500, 200, 200],
      )
    }
    sim.faults.set({ poison: [{ id: poison, mode: 'batch' }] })
    assert.equal((await getAll(ids.slice(0, 3))).status, 500)
    assert.equal((await getAll([poison])).status, 500)
    assert.equal((await getAll(ids.slice(1, 3))).status, 200)
    const alone = await fetch(`${sim.baseUrl}/gmail/v1/users/me/messages/${poison}`, {
      headers: { authorization: `Bearer ${sim.gmail.accounts[0]!.accessToken}` },
    })
    assert.equal(alone.status, 500)
  })

  test('a token that ends is 401 in every part', async () => {
    sim.faults.set({ rules: [{ do: 'expire-access', methods: ['batch'] }] })
    const { parts } = await getAll(ids.slice(0, 2))
    assert.deepEqual(
      parts.map(({ status }) => status),
      [401, 401],
    )
  })
})
