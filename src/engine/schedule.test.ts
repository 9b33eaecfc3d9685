import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type Clock, FakeClock, systemClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import type { NewSchedule, ScheduleRow } from '../ledger/schedules.ts'
import {
  type FiredSchedule,
  REREAD_MS,
  RETRY_MS,
  Scheduler,
  type SchedulerOptions,
  scheduleKey,
} from './schedule.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const START = Date.UTC(2026, 0, 1)

/** The ledger's waits are real, what it takes for now is not. */
const ledgerClock = (clock: Clock): Clock => ({ ...systemClock, now: () => clock.now() })

async function openMemory(t: TestContext): Promise<{ ledger: Ledger; clock: FakeClock }> {
  const clock = new FakeClock(START)
  const ledger = await openLedger('sqlite::memory:', { clock: ledgerClock(clock) })
  t.after(() => ledger.close())
  return { ledger, clock }
}

function entry(over: Partial<NewSchedule> = {}): NewSchedule {
  return {
    name: 'nightly',
    kind: 'mail.sync',
    payload: '{}',
    spec: 'every 1h',
    stream_id: 0,
    lane: 'bulk',
    priority: 3,
    next_at: START + HOUR_MS,
    ...over,
  }
}

const plainJob = ({ kind, payload }: ScheduleRow) =>
  kind.startsWith('unknown') ? undefined : { kind, payload }

function startScheduler(
  t: TestContext,
  options: Partial<SchedulerOptions> & Pick<SchedulerOptions, 'ledger' | 'clock'>,
) {
  const fired: FiredSchedule[] = []
  const errors: string[] = []
  const scheduler = new Scheduler({
    toJob: plainJob,
    onFired: (one) => void fired.push(one),
    onError: (error, of) => void errors.push(`${of?.name ?? 'ledger'}: ${(error as Error).message}`),
    ...options,
  })
  t.after(() => scheduler.stop())
  scheduler.start()
  return { scheduler, fired, errors }
}

async function settle(ledger: Ledger): Promise<void> {
  const owner = await ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'test' }, HOUR_MS * 1000)
  const { claimed } = await ledger.cycle({
    owner,
    claim: { owner, room: { interactive: 100, bulk: 100 }, kinds: new Set(['mail.sync']) },
  })
  await ledger.cycle({ owner, settle: claimed.map((job) => ({ job, event: 'succeed' })) })
}

describe('a scheduler', () => {
  test('fires what a clock that was put back has put off, once, and goes on from there', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const year = 365 * 24 * HOUR_MS
    await ledger.putSchedule(entry({ next_at: START + year + MINUTE_MS }))
    await ledger.putSchedule(
      entry({ name: 'yearly', spec: 'cron 0 0 31 12 *', next_at: Date.UTC(2026, 11, 31) }),
    )
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    await scheduler.poke()
    assert.deepEqual(
      fired.map(({ name, nextAt }) => [name, nextAt]),
      [['nightly', START + MINUTE_MS]],
    )
  })

  test('fires an entry when it is due and moves it on by its interval', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry())
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    await clock.advance(HOUR_MS - 1)
    assert.equal(fired.length, 0)
    await clock.advance(1)
    await scheduler.poke()
    assert.equal(fired.length, 1)
    assert.deepEqual(
      { dueAt: fired[0]!.dueAt, nextAt: fired[0]!.nextAt },
      { dueAt: START + HOUR_MS, nextAt: START + 2 * HOUR_MS },
    )
    const [job] = await ledger.jobs()
    assert.equal(job!.id, fired[0]!.job.id)
    assert.deepEqual(
      { kind: job!.kind, key: job!.key, lane: job!.lane, priority: job!.priority },
      { kind: 'mail.sync', key: scheduleKey('nightly'), lane: 'bulk', priority: 3 },
    )
    const [row] = await ledger.schedules()
    assert.deepEqual(
      { next: row!.next_at, last: row!.last_at, job: row!.last_job },
      { next: START + 2 * HOUR_MS, last: START + HOUR_MS, job: job!.id },
    )
  })

  test('makes up once for all runs that were missed, and keeps the rhythm', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry())
    await clock.advance(7.5 * HOUR_MS)
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    assert.deepEqual(
      fired.map(({ nextAt }) => nextAt),
      [START + 8 * HOUR_MS],
    )
  })

  test('does not pile up runs behind a slow one, and runs again after it', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry())
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    for (let hour = 0; hour < 3; hour++) {
      await clock.advance(HOUR_MS)
      await scheduler.poke()
    }
    assert.deepEqual(
      fired.map(({ job }) => job.outcome),
      ['added', 'ignored', 'ignored'],
    )
    await settle(ledger)
    await clock.advance(HOUR_MS)
    await scheduler.poke()
    assert.equal(fired[3]!.job.outcome, 'added')
    assert.equal((await ledger.jobs()).length, 2)
  })

  test('fires cron entries by their own time zone', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const spec = 'cron 0 3 * * * Europe/Berlin'
    await ledger.putSchedule(entry({ spec, next_at: START + 2 * HOUR_MS }))
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await clock.advance(2 * HOUR_MS)
    await scheduler.poke()
    assert.deepEqual(
      fired.map(({ nextAt }) => nextAt),
      [START + 26 * HOUR_MS],
    )
  })

  test('sees entries that others wrote within a minute, and at once when poked', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    await ledger.putSchedule(entry({ name: 'late', next_at: START }))
    await clock.advance(REREAD_MS)
    await scheduler.poke()
    await ledger.putSchedule(entry({ name: 'poked', next_at: START }))
    await scheduler.poke()
    assert.deepEqual(
      fired.map(({ name }) => name),
      ['late', 'poked'],
    )
  })

  test('leaves kinds that it does not know to others', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry({ kind: 'unknown.kind', next_at: START }))
    const { scheduler, fired, errors } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    assert.deepEqual([fired, errors], [[], []])
    assert.equal((await ledger.schedules())[0]!.next_at, START)
    assert.equal(clock.pendingTimers, 1)
  })

  test('tells once of an entry that cannot be read, fires the others, and looks again once it is corrected', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry({ name: 'broken', spec: 'now and then', next_at: START }))
    await ledger.putSchedule(entry({ name: 'sound', next_at: START }))
    const { scheduler, fired, errors } = startScheduler(t, { ledger, clock })
    await scheduler.poke()
    await clock.advance(5 * MINUTE_MS)
    await scheduler.poke()
    assert.deepEqual(errors, ['broken: "now and then" is not a schedule.'])
    await ledger.putSchedule(entry({ name: 'broken', spec: 'every 1h', next_at: START }))
    await scheduler.poke()
    assert.deepEqual(
      fired.map(({ name }) => name),
      ['sound', 'broken'],
    )
  })

  test('survives a ledger that is away and goes on when it is back', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry({ next_at: START }))
    let away = true
    const flaky: SchedulerOptions['ledger'] = {
      now: () => ledger.now(),
      schedules: () =>
        away
          ? Promise.reject(new TidemarkError('connection lost', { kind: 'transient' }))
          : ledger.schedules(),
      fireSchedule: (...args) => ledger.fireSchedule(...args),
    }
    const { scheduler, fired, errors } = startScheduler(t, { ledger: flaky, clock })
    await scheduler.poke()
    assert.equal(errors[0], 'ledger: connection lost')
    away = false
    await clock.advance(RETRY_MS)
    await scheduler.poke()
    assert.equal(fired.length, 1)
  })

  test('fires the others when the ledger refuses the job of one entry, and tries that one again later', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry({ name: 'first', next_at: START }))
    await ledger.putSchedule(entry({ name: 'second', next_at: START }))
    let refuses = true
    const toJob: SchedulerOptions['toJob'] = (row) => ({
      kind: row.kind,
      payload: row.payload,
      after: row.name === 'first' && refuses ? [999] : [],
    })
    const { scheduler, fired, errors } = startScheduler(t, { ledger, clock, toJob })
    await scheduler.poke()
    assert.match(errors[0]!, /^first: There is no job #999/)
    assert.deepEqual(
      fired.map(({ name }) => name),
      ['second'],
    )
    refuses = false
    await clock.advance(REREAD_MS)
    await scheduler.poke()
    assert.equal(fired[1]!.name, 'first')
  })

  test('fires nothing after it was stopped', async (t) => {
    const { ledger, clock } = await openMemory(t)
    await ledger.putSchedule(entry())
    const { scheduler, fired } = startScheduler(t, { ledger, clock })
    await scheduler.stop()
    assert.equal(clock.pendingTimers, 0)
    await clock.advance(3 * HOUR_MS)
    await scheduler.poke()
    assert.deepEqual(fired, [])
  })
})

describe('two schedulers on one ledger', () => {
  test('fire a due time once although their clocks differ', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const specs = ['every 10m', 'cron 0 * * * *']
    for (const spec of specs) await ledger.putSchedule(entry({ name: spec, spec, next_at: START + HOUR_MS }))
    for (const skewMs of [50, 30_000]) {
      // The other one's clock is ahead: for it the time has come.
      const ahead: SchedulerOptions['ledger'] = {
        now: () => ledger.now() + skewMs,
        schedules: () => ledger.schedules(),
        fireSchedule: (...args) => ledger.fireSchedule(...args),
      }
      const early = startScheduler(t, { ledger: ahead, clock })
      const next = Math.ceil((clock.now() + 1) / HOUR_MS) * HOUR_MS
      await clock.advance(next - skewMs - clock.now())
      await early.scheduler.poke()
      await early.scheduler.stop()
      await settle(ledger)
      const own = startScheduler(t, { ledger, clock })
      await own.scheduler.poke()
      assert.deepEqual(own.fired, [], `${skewMs} ms`)
      await clock.advance(skewMs)
      await own.scheduler.poke()
      await own.scheduler.stop()
      assert.deepEqual(own.fired, [], `${skewMs} ms`)
      assert.ok(early.fired.length >= 2)
    }
  })

  test('fire every due time exactly once between them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'schedule-'))
    const clock = new FakeClock(START)
    const open = (): Promise<Ledger> =>
      openLedger(`sqlite:${join(folder, 'ledger.db')}`, { clock: ledgerClock(clock), synchronous: 'NORMAL' })
    const ledgers = [await open(), await open()]
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await ledgers[0]!.putSchedule(entry({ name }))
    const pair = ledgers.map((ledger) => {
      const fired: FiredSchedule[] = []
      const scheduler = new Scheduler({
        ledger,
        clock,
        toJob: plainJob,
        onFired: (one) => void fired.push(one),
      })
      return { scheduler, fired }
    })
    for (const { scheduler } of pair) scheduler.start()
    const hours = 4
    for (let hour = 1; hour <= hours; hour++) {
      await clock.advance(HOUR_MS)
      await Promise.all(pair.map(({ scheduler }) => scheduler.poke()))
      await settle(ledgers[hour % 2]!)
    }
    const all = pair.flatMap(({ fired }) =>
      fired.map(({ name, dueAt }) => `${name} ${(dueAt - START) / HOUR_MS}`),
    )
    const expected = names.flatMap((name) => Array.from({ length: hours }, (_, i) => `${name} ${i + 1}`))
    assert.deepEqual(all.sort(), expected.sort())
    assert.equal((await ledgers[0]!.jobs({ limit: 100 })).length, names.length * hours)
    for (const { scheduler } of pair) await scheduler.stop()
    for (const ledger of ledgers) await ledger.close()
    rmSync(folder, { recursive: true })
  })
})
