import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type Sim, startSim } from './start.ts'

const ADDRESS = 'owner@example.com'

let sim: Sim

before(async () => {
  sim = await startSim({
    gmail: { accounts: [{ address: ADDRESS, messages: 30 }], quota: { unitsPerMinute: null } },
  })
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

async function gmail(path: string): Promise<number> {
  const headers = { authorization: `Bearer ${sim.gmail.accounts[0]!.accessToken}` }
  return (await fetch(`${sim.baseUrl}/gmail/v1/users/me/${path}`, { headers })).status
}

type Dump = {
  historyId: string
  messages: {
    id: string
    internalMs: number
    sha256: string
    labels: string[]
    state: 'present' | 'deleted'
    listed: boolean
    delivered: boolean
  }[]
}

describe('the control API', () => {
  test('switches faults on and off while it runs, and is spared by them', async () => {
    assert.equal((await control('PUT', '/faults', { rules: [{ do: 'error', status: 503 }] })).status, 200)
    assert.equal(await gmail('profile'), 503)
    const shown = await control<{ rules: { struck: number }[] }>('GET', '/faults')
    assert.equal(shown.rules[0]!.struck, 1)
    await control('POST', '/faults/rules', { do: 'latency', latency: { kind: 'fixed', ms: 1 } })
    assert.equal((await control<{ rules: unknown[] }>('GET', '/faults')).rules.length, 2)
    assert.equal(
      (await control<{ profile: string }>('PUT', '/faults', { profile: 'mixed' })).profile,
      'mixed',
    )
    await control('DELETE', '/faults')
    assert.equal(await gmail('profile'), 200)
  })

  test('changes the quota, with another client beside', async () => {
    await control('PUT', '/quota', { unitsPerMinute: 1, otherShare: 1, shape: 'exhausted429' })
    assert.equal(await gmail('messages'), 429)
    await control('PUT', '/quota', { unitsPerMinute: null, otherShare: 0 })
    assert.equal(await gmail('messages'), 200)
  })

  test('mail arrives (also dated long ago), changes labels and vanishes', async () => {
    const path = `/accounts/${ADDRESS}`
    const oldMs = Date.UTC(2009, 0, 1)
    const raw = Buffer.from('Subject: Old\r\n\r\nx').toString('base64url')
    const arrived = await control<{ messages: { id: string }[] }>('POST', `${path}/arrive`, {
      internalMs: oldMs,
      raw,
    })
    const [{ id } = { id: '' }] = arrived.messages
    assert.equal(sim.gmail.mailbox(ADDRESS).get(id)!.internalMs, oldMs)
    await control('POST', `${path}/relabel`, { ids: [id], add: ['STARRED'], remove: ['INBOX'] })
    assert.ok(sim.gmail.mailbox(ADDRESS).get(id)!.labelIds.has('STARRED'))
    await control('POST', `${path}/delete`, { ids: [id] })
    assert.equal(sim.gmail.mailbox(ADDRESS).get(id), undefined)
    const many = await control<{ messages: unknown[] }>('POST', `${path}/arrive`, { count: 3 })
    assert.equal(many.messages.length, 3)
    assert.equal((await control<{ ids: string[] }>('POST', `${path}/delete`, { count: 2 })).ids.length, 2)
    const start = sim.gmail.mailbox(ADDRESS).historyId - 1n
    await control('POST', `${path}/expire-history`)
    assert.equal(await gmail(`history?startHistoryId=${start}`), 404)
    await control('PUT', `${path}/switches`, { emptyHistoryPages: true })
    assert.ok(sim.gmail.mailbox(ADDRESS).switches.emptyHistoryPages)
  })

  test('dumps everything that is or was there, for an oracle', async () => {
    await gmail('messages?maxResults=5')
    const dump = await control<Dump>('GET', `/accounts/${ADDRESS}/dump`)
    const mailbox = sim.gmail.mailbox(ADDRESS)
    assert.equal(dump.historyId, String(mailbox.historyId))
    const present = dump.messages.filter(({ state }) => state === 'present')
    assert.equal(present.length, mailbox.profile().messagesTotal)
    assert.equal(dump.messages.length - present.length, mailbox.deleted.size)
    for (const message of present) {
      const raw = mailbox.get(message.id)!.raw()
      assert.equal(message.sha256, createHash('sha256').update(raw).digest('hex'))
    }
    assert.ok(dump.messages.some(({ listed, delivered }) => listed && delivered))
    const short = await control<Dump>('GET', `/accounts/${ADDRESS}/dump?hashes=false`)
    assert.equal(short.messages[0]!.sha256, undefined)
  })

  test('counts calls, parts and units, and keeps a log that does not grow for ever', async () => {
    await control('DELETE', '/counters')
    for (let at = 0; at < 3; at++) await gmail('profile')
    await gmail('messages/ffffffffffffffff')
    const counters = await control<{
      requests: Record<string, Record<string, number>>
      quota: Record<string, { unitsUsed: number }>
    }>('GET', '/counters')
    assert.deepEqual(counters.requests.getProfile, { 200: 3 })
    assert.deepEqual(counters.requests['messages.get'], { 404: 1 })
    assert.equal(counters.quota[ADDRESS]!.unitsUsed, 23)
    for (let at = 0; at < 2_500; at++) sim.log.note({ atMs: at, operation: 'x', status: 200 })
    assert.equal(sim.log.last().length, 1_000)
    assert.equal(sim.log.last(2)[1]!.atMs, 2_499)
    const { calls } = await control<{ calls: unknown[] }>('GET', '/log?limit=7')
    assert.equal(calls.length, 7)
  })

  test('issues, expires and revokes tokens', async () => {
    const scopes = ['https://www.googleapis.com/auth/gmail.readonly']
    const issued = await control<{ accessToken: string; refreshToken: string }>('POST', '/tokens', {
      address: ADDRESS,
      scopes,
    })
    assert.equal(sim.gmail.grants.access(issued.accessToken)!.scopes[0], scopes[0])
    await control('POST', '/tokens/revoke', { token: issued.refreshToken })
    assert.equal(sim.gmail.grants.access(issued.accessToken), undefined)
    await control('POST', '/tokens/expire', { address: ADDRESS })
    assert.equal(await gmail('profile'), 401)
    assert.ok(sim.gmail.grants.refresh(sim.gmail.accounts[0]!.refreshToken))
    await control('POST', '/tokens/revoke', { address: ADDRESS })
    assert.equal(sim.gmail.grants.refresh(sim.gmail.accounts[0]!.refreshToken), undefined)
    await control('PUT', '/oauth', { autoApprove: true, refreshTokenMs: 1000, delegatedScopes: scopes })
    assert.equal(sim.oauth.autoApprove, true)
    assert.deepEqual(sim.oauth.delegatedScopes, scopes)
    const key = await control<{ token_uri: string }>('GET', '/service-account')
    assert.equal(key.token_uri, sim.gmail.tokenUrl)
  })

  test('says what is wrong with a wrong request', async () => {
    const cases: [verb: string, path: string, body: unknown, status: number, error: RegExp][] = [
      ['PUT', '/faults', { profile: 'sunny' }, 400, /no fault profile "sunny"/],
      ['PUT', '/quota', { unitsPerMinute: -1 }, 400, /unitsPerMinute/],
      ['GET', '/accounts/nobody@example.com', undefined, 400, /no account nobody@example\.com/],
      ['POST', `/accounts/${ADDRESS}/delete`, { ids: ['ffffffffffffffff'] }, 404, /not found/],
      ['GET', '/weather', undefined, 404, /There is no GET \/control\/weather/],
      ['PUT', '/push', { endpoint: 'nowhere' }, 400, /endpoint/],
    ]
    for (const [verb, path, body, status, error] of cases) {
      const answer = await control<{ error: string }>(verb, path, body)
      assert.equal(answer.status, status, path)
      assert.match(answer.error, error)
    }
  })
})
