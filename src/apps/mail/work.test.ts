import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import type { OpenRuntime as Open, Role } from '../../app/runtime.ts'
import { scheduleName } from '../../app/work.ts'
import { catalog } from '../../apps/catalog.ts'
import { FakeClock, systemClock } from '../../base/clock.ts'
import { unitsOf } from '../../cloud/gmail/budgets.ts'
import { connectGmail } from '../../cloud/simulated-accounts.suite.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { SERVICE, streamOf } from './account.ts'
import { openMail } from './open.ts'
import { type MailRuntime, mailRuntime } from './runtime.ts'
import { followAccounts, indexSchedule, startAccounts } from './work.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'
const closing: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type OpenRuntime = Open & MailRuntime

const apps = [{ name: 'mail', open: openMail }]

type World = { sim: Sim; home: string; open(role?: Role, ledgerUrl?: string): Promise<OpenRuntime> }

async function world(): Promise<World> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-runtime-'))
  closing.push(() => rmSync(home, { recursive: true, force: true }))
  const accounts = [ANN, BEN].map((address) => ({ address, messages: 40, years: 1 }))
  const sim = await startSim({ gmail: { quota: { unitsPerMinute: null }, accounts } })
  closing.push(() => sim.close())
  return {
    sim,
    home,
    async open(role = 'all', ledgerUrl = 'sqlite') {
      const config = configOf(sim, { ledgerUrl })
      const runtime = mailRuntime(await openRuntime({ config, home, env: {}, role, apps }))
      closing.push(() => runtime.close())
      return runtime
    },
  }
}

function configOf(sim: Sim, { ledgerUrl = 'sqlite', unitsPerMinute = 1e8, pollMinutes = 5 } = {}) {
  return catalog.parse({
    ledger: { url: ledgerUrl },
    gmail: {
      api_url: sim.baseUrl,
      token_url: sim.gmail.tokenUrl,
      units_per_minute: unitsPerMinute,
      requests_per_second_start: 5_000,
      requests_per_second_max: 5_000,
    },
    mail: { poll_minutes: pollMinutes },
  })
}

async function connect({ sim }: World, runtime: OpenRuntime, address: string): Promise<void> {
  await connectGmail({ ...runtime, sim }, address)
}

async function statusOf({ ledger }: OpenRuntime, address: string) {
  const stream = (await ledger.streams()).find(({ name }) => name === streamOf(address))
  return (
    stream && { ...stream, isSettled: stream.segments > 0 && stream.segments === stream.settled_segments }
  )
}

/** A copy of forty messages takes a second or two; what stands still for this long will not go on. */
const SETTLED_MS_MAX = 240_000

async function settled(runtime: OpenRuntime, address: string): Promise<void> {
  const fromMs = systemClock.monotonicMs()
  for (;;) {
    const status = await statusOf(runtime, address)
    if (status?.isSettled) return
    if (systemClock.monotonicMs() - fromMs > SETTLED_MS_MAX)
      assert.fail(await whatStandsStill(runtime, address))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A job that is ready and not taken means a lost wake-up; one that is taken, a handler that hangs. */
async function whatStandsStill(runtime: OpenRuntime, address: string): Promise<string> {
  const { ledger, engine } = runtime
  const open = (await ledger.jobs({ limit: 200 })).filter(({ state }) => state !== 'done')
  return JSON.stringify(
    {
      address,
      now: ledger.now(),
      engine: engine.state,
      running: (await engine.live()).running,
      status: await statusOf(runtime, address),
      jobs: open,
      tallies: await ledger.tallies(),
      pauses: await ledger.pauses(),
      budgets: engine.limits.snapshot().budgets,
    },
    undefined,
    1,
  )
}

const schedulesOf = async ({ ledger }: OpenRuntime): Promise<string[]> =>
  (await ledger.schedules())
    .map(({ name, spec }) => `${name}: ${spec}`)
    .filter((one) => one.startsWith('mail'))

/** The mail of ANN is copied, and nothing is left to do. */
async function copied(): Promise<OpenRuntime> {
  const at = await world()
  const runtime = await at.open()
  await connect(at, runtime, ANN)
  await startAccounts(runtime)
  await runtime.engine.start()
  await settled(runtime, ANN)
  await runtime.engine.drained()
  return runtime
}

describe('a runtime', () => {
  test('makes the ledger, runs nothing before its engine is started, and can be closed twice', async () => {
    const { open, home } = await world()
    const runtime = await open()
    assert.ok(existsSync(join(home, 'ledger.db')))
    assert.equal(runtime.engine.state, 'created')
    await runtime.close()
    await runtime.close()
    assert.equal(runtime.engine.state, 'stopped')
  })

  test('sends jobs of the size that the configuration names to the bulk lane', async () => {
    const { sim, home } = await world()
    const config = { ...configOf(sim), engine: catalog.parse({ engine: { bulk_bytes: '1KB' } }).engine }
    const runtime = mailRuntime(await openRuntime({ config, home, env: {}, role: 'all', apps }))
    closing.push(() => runtime.close())
    const { engine, ledger, mail } = runtime
    await engine.enqueue(mail.kinds.plan, { account: ANN }, { size: 999 })
    await engine.enqueue(mail.kinds.plan, { account: BEN }, { size: 1_000 })
    const lanes = (await ledger.jobs({ kind: 'mail.plan' })).map(({ size, lane }) => [size, lane])
    assert.deepEqual(Object.fromEntries(lanes), { 999: 'interactive', 1000: 'bulk' })
  })

  test('is refused where there is no ledger and none is to be made', async () => {
    const { sim, home } = await world()
    const opening = openRuntime({ config: configOf(sim), home, env: {}, role: 'all', apps, create: false })
    await assert.rejects(opening, { code: 'ledger-unmade' })
    assert.equal(existsSync(join(home, 'ledger.db')), false)
  })

  test('copies what is connected before its start, and what is connected while it runs', async () => {
    const at = await world()
    const runtime = await at.open()
    await connect(at, runtime, ANN)
    await startAccounts(runtime)
    await runtime.engine.start()
    await settled(runtime, ANN)
    await connect(at, runtime, BEN)
    await startAccounts(runtime)
    await settled(runtime, BEN)
    assert.deepEqual(runtime.mail.accounts.names(), [ANN, BEN])
    for (const name of [ANN, BEN]) {
      const status = (await statusOf(runtime, name))!
      assert.ok(status.stored > 0)
      assert.equal(status.listed, status.stored + status.gone + status.skipped + status.bad)
    }
    assert.deepEqual(await schedulesOf(runtime), [
      `${scheduleName('mail.history', ANN)}: every 5m`,
      `${scheduleName('mail.history', BEN)}: every 5m`,
      `${indexSchedule(ANN)}: every 15m`,
      `${indexSchedule(BEN)}: every 15m`,
    ])
    const budgets = runtime.engine.limits.snapshot().budgets.map(({ name }) => name)
    assert.ok(budgets.includes(unitsOf(BEN)))
  })

  test('forgets an account that was removed: its schedule is dropped, its archive closed', async () => {
    const runtime = await copied()
    const { archive } = await runtime.mail.accounts.get(ANN)
    await runtime.accounts.remove((await runtime.accounts.find(SERVICE, ANN))!.id)
    await startAccounts(runtime)
    assert.deepEqual(await schedulesOf(runtime), [])
    assert.deepEqual(runtime.mail.accounts.names(), [])
    await assert.rejects(runtime.mail.accounts.get(ANN), { code: 'account-unknown' })
    await assert.rejects(async () => archive.shards())
  })

  test('sees an account by name that was connected since it last looked, and choices that changed', async () => {
    const at = await world()
    const runtime = await at.open()
    await connect(at, runtime, ANN)
    const account = await runtime.mail.accounts.get(ANN)
    assert.equal(account.choices.spam, false)
    const { id } = (await runtime.accounts.find(SERVICE, ANN))!
    await runtime.accounts.setSettings(id, { spam: true })
    await runtime.mail.accounts.reload()
    assert.equal((await runtime.mail.accounts.get(ANN)).choices.spam, true)
    assert.equal(await runtime.mail.accounts.get(ANN), account)
  })

  test('compares the mailbox with the archive where other choices were made', async () => {
    const runtime = await copied()
    const { id } = (await runtime.accounts.find(SERVICE, ANN))!
    await runtime.accounts.setSettings(id, { spam: true })
    await startAccounts(runtime)
    await runtime.engine.drained()
    const jobs = await runtime.ledger.jobs({ kind: 'mail.reconcile' })
    assert.deepEqual(
      jobs.map(({ state }) => state),
      ['done'],
    )
    await startAccounts(runtime)
    assert.equal((await runtime.ledger.jobs({ kind: 'mail.reconcile' })).length, 1)
  })

  test('goes on with a stream whose account has signed in again, and with no other', async () => {
    const at = await world()
    const runtime = await at.open()
    await connect(at, runtime, ANN)
    await connect(at, runtime, BEN)
    await startAccounts(runtime)
    for (const name of [ANN, BEN]) await runtime.engine.pause('stream', streamOf(name), 'x', 'sign-in')
    await runtime.accounts.setState((await runtime.accounts.find(SERVICE, BEN))!.id, 'sign-in')
    await startAccounts(runtime)
    assert.deepEqual(
      (await runtime.ledger.pauses()).map(({ target }) => target),
      [streamOf(BEN)],
    )
  })

  test('that only answers begins nothing', async () => {
    const at = await world()
    const runtime = await at.open('web')
    await connect(at, runtime, ANN)
    await startAccounts(runtime)
    assert.deepEqual(runtime.mail.accounts.names(), [ANN])
    assert.deepEqual(await runtime.ledger.tallies(), [])
  })

  test('takes over a changed configuration in place: budgets, how often is looked, where it came from', async () => {
    const at = await world()
    const runtime = await at.open()
    await connect(at, runtime, ANN)
    await startAccounts(runtime)
    const copy = { ...runtime }
    const changed = configOf(at.sim, { unitsPerMinute: 6_000, pollMinutes: 9 })
    await runtime.reload(changed, new Map([['mail.poll_minutes', { kind: 'env', name: 'X' }]]))
    await startAccounts(runtime)
    assert.equal(copy.config.mail.poll_minutes, 9)
    assert.deepEqual(copy.origins.get('mail.poll_minutes'), { kind: 'env', name: 'X' })
    assert.deepEqual(await schedulesOf(runtime), [
      `${scheduleName('mail.history', ANN)}: every 9m`,
      `${indexSchedule(ANN)}: every 15m`,
    ])
    const units = runtime.engine.limits.snapshot().budgets.find(({ name }) => name === unitsOf(ANN))!
    // Of 100 units a second, a little is left over.
    assert.ok(units.rate > 90 && units.rate <= 100, `${units.rate}`)
  })

  test('goes on telling what holds where a changed setting needs a new start', async () => {
    const at = await world()
    const runtime = await at.open()
    const port = { kind: 'flag', name: '--port' } as const
    const changed = configOf(at.sim, { ledgerUrl: 'postgres://elsewhere/x' })
    changed.server.port = 1
    await runtime.reload(changed, new Map([['server.port', port]]))
    assert.deepEqual([runtime.config.ledger.url, runtime.origins.get('server.port')], ['sqlite', undefined])
    assert.notEqual(runtime.config.server.port, 1)
  })

  test('follows accounts that another process connects', async () => {
    const at = await world()
    const database = await freshDatabase()
    closing.push(() => database.drop())
    const web = await at.open('web', database.url)
    const worker = await at.open('worker', database.url)
    await startAccounts(worker)
    await worker.engine.start()
    const stop = followAccounts(worker, {
      clock: systemClock,
      everyMs: 20,
      onError: (error) => assert.fail(String(error)),
    })
    await connect(at, web, ANN)
    await settled(web, ANN)
    // A stream that the other one opened, in which work waits at once.
    await web.engine.enqueue(web.mail.kinds.history, { account: ANN }, { stream: streamOf(ANN) })
    await worker.engine.drained()
    await stop()
    const failed = await web.ledger.jobs({ state: 'failed' })
    assert.deepEqual(failed, [])
    assert.deepEqual(await web.ledger.alerts(), [])
  })

  test('starts a plan that failed over when it starts, and not while it runs', async () => {
    const at = await world()
    const runtime = await at.open()
    const { ledger } = runtime
    await connect(at, runtime, ANN)
    await startAccounts(runtime)
    const owner = await ledger.register({ host: 'here', pid: 1, pidStart: '', name: 'other' }, 60_000)
    const room = { interactive: 1, bulk: 1 }
    const { claimed } = await ledger.cycle({ owner, claim: { owner, room, kinds: new Set(['mail.plan']) } })
    const error = { kind: 'permanent' as const, message: 'no' }
    await ledger.cycle({ owner, settle: [{ job: claimed[0]!, event: 'fail', error }] })
    const stateOf = async () => (await ledger.jobs({ kind: 'mail.plan' })).map(({ state }) => state)
    const clock = new FakeClock()
    const stop = followAccounts(runtime, {
      clock,
      everyMs: 10,
      onError: (thrown) => assert.fail(String(thrown)),
    })
    await clock.advance(10)
    await stop()
    assert.deepEqual(await stateOf(), ['failed'])
    await startAccounts(runtime)
    assert.deepEqual(await stateOf(), ['pending'])
  })
})
