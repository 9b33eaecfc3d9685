/** What each fault looks like from the other end of the wire. */
import assert from 'node:assert/strict'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { after, before, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import type { FaultRule } from './fault-rules.ts'
import { type Sim, startSim } from './start.ts'

const ADDRESS = 'owner@example.com'
const PROFILE = '/gmail/v1/users/me/profile'

let sim: Sim

before(async () => {
  sim = await startSim({
    gmail: {
      accounts: [{ address: ADDRESS, messages: 50, profile: 'small' }],
      quota: { unitsPerMinute: null },
    },
  })
})
after(() => sim.close())
beforeEach(() => sim.faults.clear())

function call(path: string, init: RequestInit = {}, from: Sim = sim): Promise<Response> {
  const headers = { authorization: `Bearer ${from.gmail.accounts[0]!.accessToken}` }
  return fetch(from.baseUrl + path, { ...init, headers })
}

function rules(...given: FaultRule[]): void {
  sim.faults.set({ rules: given })
}

async function errorCode(thrown: Promise<unknown>): Promise<string> {
  try {
    await thrown
  } catch (error) {
    const cause = (error as Error).cause as (Error & { code?: string }) | undefined
    return cause?.code ?? (error as Error).name
  }
  return 'no error'
}

describe('a fault on the wire', () => {
  test('throttles in both statuses, with Retry-After where it is told', async () => {
    rules({ do: 'throttle', status: 429, retryAfterSeconds: 4, max: 1 }, { do: 'throttle', status: 403 })
    const first = await call(PROFILE)
    assert.equal(first.status, 429)
    assert.equal(first.headers.get('retry-after'), '4')
    const second = await call(PROFILE)
    assert.equal(second.status, 403)
    const { error } = (await second.json()) as { error: { errors: { reason: string }[] } }
    assert.equal(error.errors[0]!.reason, 'userRateLimitExceeded')
  })

  test('answers 5xx in Google’s shape', async () => {
    for (const status of [500, 502, 503]) {
      rules({ do: 'error', status })
      const answer = await call(PROFILE)
      assert.equal(answer.status, status)
      const { error } = (await answer.json()) as { error: { code: number } }
      assert.equal(error.code, status)
    }
  })

  test('resets the connection before the work, or after it', async () => {
    const labels = (): number => sim.gmail.mailbox(ADDRESS).labels().length
    const create = (name: string): Promise<Response> =>
      call('/gmail/v1/users/me/labels', { method: 'POST', body: JSON.stringify({ name }) })
    const there = labels()
    rules({ do: 'reset', when: 'before' })
    assert.match(await errorCode(create('Before')), /ECONNRESET|UND_ERR_SOCKET/)
    assert.equal(labels(), there)
    rules({ do: 'reset', when: 'after' })
    assert.match(await errorCode(create('After')), /ECONNRESET|UND_ERR_SOCKET/)
    assert.equal(labels(), there + 1)
  })

  test('stalls until the caller gives up', async () => {
    rules({ do: 'stall' })
    assert.equal(await errorCode(call(PROFILE, { signal: AbortSignal.timeout(60) })), 'TimeoutError')
  })

  test('stalls until it is told to go on, and then answers', async () => {
    rules({ do: 'stall' })
    const answer = call(PROFILE)
    while (sim.faults.counts()[0]!.struck === 0) await new Promise((resolve) => setImmediate(resolve))
    // It is counted a moment before it is held.
    const releasing = setInterval(() => sim.faults.release(), 5)
    const { status } = await answer.finally(() => clearInterval(releasing))
    assert.equal(status, 200)
  })

  test('stalls for a while, at the start or in the middle, and then goes on', async () => {
    for (const at of ['start', 'middle'] as const) {
      rules({ do: 'stall', ms: 30, at })
      const startedMs = performance.now()
      const body = (await (await call(PROFILE)).json()) as { emailAddress: string }
      assert.equal(body.emailAddress, ADDRESS)
      assert.ok(performance.now() - startedMs >= 25, at)
    }
  })

  test('cuts the body, so that the length is not reached', async () => {
    rules({ do: 'truncate', share: 0.5 })
    const answer = await call(PROFILE)
    assert.equal(answer.status, 200)
    assert.notEqual(await errorCode(answer.text()), 'no error')
  })

  test('cuts the body as if it were whole', async () => {
    rules({ do: 'truncate', share: 0.5, close: false })
    const text = await (await call(PROFILE)).text()
    assert.ok(text.length > 10)
    assert.throws(() => JSON.parse(text), SyntaxError)
  })

  test('answers with a page where JSON was asked for', async () => {
    rules({ do: 'content-type' })
    const answer = await call(PROFILE)
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type')!, /^text\/html/)
    assert.match(await answer.text(), /^<!DOCTYPE html>/)
  })

  test('expires access tokens, revokes grants, and expires history', async () => {
    const refresh = async (): Promise<number> => {
      const body = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: own.gmail.accounts[0]!.refreshToken,
        client_id: own.gmail.clientId,
        client_secret: own.gmail.clientSecret,
      })
      return (await fetch(own.gmail.tokenUrl, { method: 'POST', body })).status
    }
    const own = await startSim({ gmail: { accounts: [{ address: ADDRESS, messages: 3 }] } })
    const { historyId } = own.gmail.mailbox(ADDRESS)
    own.faults.set({ rules: [{ do: 'expire-history' }] })
    assert.equal(
      (await call(`/gmail/v1/users/me/history?startHistoryId=${historyId - 1n}`, {}, own)).status,
      404,
    )
    own.faults.set({ rules: [{ do: 'expire-access' }] })
    assert.equal((await call(PROFILE, {}, own)).status, 401)
    assert.equal(await refresh(), 200)
    const next = own.gmail.issue(ADDRESS, ['https://mail.google.com/'])
    own.faults.set({ rules: [{ do: 'revoke-tokens' }] })
    const answer = await fetch(own.baseUrl + PROFILE, {
      headers: { authorization: `Bearer ${next.accessToken}` },
    })
    assert.equal(answer.status, 401)
    assert.equal(await refresh(), 400)
    await own.close()
  })
})

describe('while a mailbox is listed', () => {
  async function listAll(own: Sim): Promise<string[]> {
    const ids: string[] = []
    let token = ''
    do {
      const page = `/gmail/v1/users/me/messages?maxResults=10&includeSpamTrash=true&pageToken=${token}`
      const body = (await (await call(page, {}, own)).json()) as {
        messages?: { id: string }[]
        nextPageToken?: string
      }
      ids.push(...(body.messages ?? []).map(({ id }) => id))
      token = body.nextPageToken ?? ''
    } while (token)
    return ids
  }

  test('mail arrives, changes and vanishes between its pages', async () => {
    const own = await startSim({
      gmail: { accounts: [{ address: ADDRESS, messages: 50 }], quota: { unitsPerMinute: null } },
    })
    const mailbox = own.gmail.mailbox(ADDRESS)
    const before = mailbox.historyId
    own.faults.set({
      rules: (['arrive', 'arrive-old', 'relabel', 'delete'] as const).map((what) => ({
        do: 'mutate' as const,
        what,
        methods: ['messages.list'],
        nextPage: true,
      })),
    })
    const listed = await listAll(own)
    assert.ok(listed.length > 30)
    assert.ok(mailbox.deleted.size >= 4)
    const history = mailbox.history({ startHistoryId: before })
    assert.ok(history !== 'expired')
    for (const kind of ['messagesAdded', 'messagesDeleted', 'labelsAdded'] as const) {
      assert.ok(
        history.history.some((record) => record[kind]),
        kind,
      )
    }
    assert.deepEqual(
      [...own.gmail.delivered(ADDRESS)].filter((id) => listed.includes(id)).length,
      new Set(listed).size,
    )
    await own.close()
  })

  test('a listing that was cut counts as listed, but not as delivered', async () => {
    const own = await startSim({
      gmail: { accounts: [{ address: ADDRESS, messages: 5 }], quota: { unitsPerMinute: null } },
    })
    own.faults.set({ rules: [{ do: 'truncate', share: 0.5 }] })
    await errorCode(call('/gmail/v1/users/me/messages', {}, own).then((answer) => answer.text()))
    assert.ok(own.gmail.mailbox(ADDRESS).everListed.size > 0)
    assert.equal(own.gmail.delivered(ADDRESS).size, 0)
    await own.close()
  })
})

describe('the server', () => {
  test('delays by the clock it was given', async () => {
    const clock = new FakeClock()
    const own = await startSim({ clock, gmail: { accounts: [{ address: ADDRESS, messages: 1 }] } })
    own.faults.set({ rules: [{ do: 'latency', latency: { kind: 'fixed', ms: 60_000 } }] })
    const answer = call(PROFILE, {}, own)
    while (clock.pendingTimers === 0) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(60_000)
    assert.equal((await answer).status, 200)
    await own.close()
  })

  test('refuses more requests at once than it is told, and lets the next in when one has ended', async () => {
    sim.gmail.quota.set({ concurrencyMax: 1 })
    rules({ do: 'stall', max: 1 })
    const stalled = new AbortController()
    const first = errorCode(call(PROFILE, { signal: stalled.signal }))
    while (sim.faults.counts()[0]!.struck === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal((await call(PROFILE)).status, 429)
    stalled.abort()
    await first
    let status = 429
    for (let tries = 0; status === 429 && tries < 1_000; tries++) status = (await call(PROFILE)).status
    assert.equal(status, 200)
    sim.gmail.quota.set({ concurrencyMax: null })
  })

  test('listens on the loopback address, keeps connections, and says 404 for what it does not know', async () => {
    assert.match(sim.baseUrl, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.equal((await fetch(`${sim.baseUrl}/nothing`)).status, 404)
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${sim.gmail.accounts[0]!.accessToken}` }
      httpRequest(sim.baseUrl + PROFILE, { headers }, resolve)
        .on('error', reject)
        .end()
    })
    assert.equal(answer.headers.connection, 'keep-alive')
    answer.resume()
  })

  test('closes although somebody waits', async () => {
    const own = await startSim({ gmail: { accounts: [{ address: ADDRESS, messages: 1 }] } })
    own.faults.set({ rules: [{ do: 'stall' }] })
    const waiting = errorCode(call(PROFILE, {}, own))
    while (own.faults.counts()[0]!.struck === 0) await new Promise((resolve) => setImmediate(resolve))
    await own.close()
    assert.notEqual(await waiting, 'no error')
  })

  test('a simulator that is started again knows the tokens it gave out first, and has the same mail', async () => {
    const options = { seed: 9, gmail: { accounts: [{ address: ADDRESS, messages: 20 }] } }
    const dumpOf = (one: Sim): string[] =>
      [...one.gmail.mailbox(ADDRESS).dump()].map(({ id, sha256 }) => `${id} ${sha256()}`)
    const first = await startSim(options)
    const seen = { accounts: first.gmail.accounts, dump: dumpOf(first) }
    await first.close()
    const second = await startSim(options)
    assert.deepEqual({ accounts: second.gmail.accounts, dump: dumpOf(second) }, seen)
    await second.close()
  })
})
