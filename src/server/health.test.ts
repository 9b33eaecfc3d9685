import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { type Core, startCore, TOKEN } from './server.suite.ts'

type Health = { status: string; reasons: { code: string; text: string }[] } & Record<string, unknown>

async function ask(core: Core, path: string): Promise<{ status: number; body: Health }> {
  const response = await core.request(path)
  return { status: response.status, body: (await response.json()) as Health }
}

describe('/healthz', () => {
  test('is well while timers are on time, also without a token', async () => {
    const core = await startCore({ token: TOKEN })
    const { status, body } = await ask(core, '/healthz')
    assert.equal(status, 200)
    assert.equal(body.status, 'ok')
    await core.close()
  })

  test('says for how long the process was blocked', async () => {
    const stuck = new StuckClock()
    const blocked = await startCore({ clock: stuck })
    stuck.passMs(8_000)
    const { status, body } = await ask(blocked, '/healthz')
    assert.equal(status, 503)
    assert.equal(body.reasons[0]?.code, 'loop-blocked')
    await blocked.close()
  })
})

/** Time passes, and no timer fires. */
class StuckClock extends FakeClock {
  #passedMs = 0

  passMs(ms: number): void {
    this.#passedMs += ms
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#passedMs
  }
}

describe('/readyz', () => {
  test('is ready when the engine runs and its heartbeat is fresh, and tells when the mark moved', async () => {
    const core = await startCore({ started: true })
    const before = await ask(core, '/readyz')
    assert.equal(before.status, 200, JSON.stringify(before.body))
    assert.equal(before.body.markMovedAt, null)
    assert.equal(before.body.workers, 1)
    assert.ok(Number(before.body.heartbeatAgeMs) < 30_000)
    await core.close()
    const moved = await startCore({ started: true })
    const stream = await moved.engine.streams.open('box')
    await moved.engine.write({
      segments: [{ streamId: stream.id, from: 0, to: 1, ref: 's' }],
      counts: [{ segment: 's', listed: 0, seal: true }],
    })
    const { body } = await ask(moved, '/readyz')
    assert.equal(typeof body.markMovedAt, 'number')
    assert.ok(Number(body.markMovedAgeMs) < 60_000)
    await moved.close()
  })

  test('is not ready while the engine is not started, where the role says that it should be', async () => {
    const core = await startCore()
    const { status, body } = await ask(core, '/readyz')
    assert.equal(status, 503)
    assert.deepEqual(
      body.reasons.map(({ code }) => code),
      ['engine'],
    )
    await core.close()
    const web = await startCore({ role: 'web' })
    assert.equal((await ask(web, '/readyz')).status, 200)
    await web.close()
  })

  test('is not ready when the database does not answer', async () => {
    const core = await startCore({ role: 'web' })
    await core.ledger.close()
    const { status, body } = await ask(core, '/readyz')
    assert.equal(status, 503)
    assert.match(body.reasons[0]!.text, /database does not answer/)
    assert.equal((await ask(core, '/healthz')).status, 200)
    await core.close().catch(() => {})
  })

  test('is not ready when the lease of this process is gone', async () => {
    const core = await startCore({ started: true })
    await core.ledger.retire(core.engine.owner)
    const { status, body } = await ask(core, '/readyz')
    assert.equal(status, 503)
    assert.equal(body.reasons[0]?.code, 'heartbeat')
    await core.close()
  })
})

test('/metrics speaks to Prometheus', async () => {
  const core = await startCore({ started: true })
  const response = await core.request('/metrics')
  assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /^# HELP /m)
  await core.close()
})
