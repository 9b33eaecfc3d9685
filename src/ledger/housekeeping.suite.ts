/** The contract of what keeps a ledger small and its people informed: pruning, schedules, alerts, listings. */
import assert from 'node:assert/strict'
import type { NewJob } from './contract.ts'
import type { Home } from './home.suite.ts'
import { HOUR_MS, type LedgerFixture, type LedgerTest, plain } from './ledger-fixture.suite.ts'
import type { ScheduleRow } from './schedules.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

export function housekeepingContract(test: LedgerTest, home: Home): void {
  pruning(test)
  schedules(test, home)
  alerts(test)
  listings(test)
}

function pruning(test: LedgerTest): void {
  /** All steps from the start; returns how many jobs went with each. */
  async function prune(
    fixture: LedgerFixture,
    policy: { settledBefore: number; failedBefore: number },
  ): Promise<number[]> {
    const deleted: number[] = []
    for (let afterId: number | null = 0; afterId !== null; ) {
      const step = await fixture.ledger.pruneStep(policy, afterId)
      if (step.nextId !== null) deleted.push(step.deleted)
      afterId = step.nextId
    }
    return deleted
  }

  test('a canceled job stays while its segment waits for its items, and goes once that has settled', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const id = await fixture.add({ streamId, segment })
    await fixture.write({ counts: [{ segment, listed: 1, seal: true }] })
    await fixture.ledger.cancel(id)
    fixture.clock.pass(HOUR_MS)
    const policy = { settledBefore: fixture.ledger.now(), failedBefore: 0 }
    assert.deepEqual(await prune(fixture, policy), [0])
    assert.equal(await fixture.stage(id), 'canceled')
    await fixture.write({ counts: [{ segment, gone: 1 }] })
    assert.deepEqual(await prune(fixture, policy), [1])
  })

  test('settled jobs go after their time, with their errors and edges; everything else stays', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const settled: number[] = []
    for (const event of ['succeed', 'skip', 'stop'] as const) {
      const one = await fixture.claimed()
      await fixture.settle(one, event, { error: { kind: 'bug', message: 'x' } })
      settled.push(one.id)
    }
    const failed = await fixture.claimed()
    await fixture.settle(failed, 'fail', { error: { kind: 'bug', message: 'x' } })
    const proof = await fixture.claimed({ streamId, segment })
    await fixture.settle(proof, 'fail')
    fixture.clock.pass(HOUR_MS)
    const recent = await fixture.claimed()
    await fixture.settle(recent, 'succeed')
    const waiting = await fixture.add({ after: [await fixture.add()] })
    const running = (await fixture.claim())[0]!.id
    const later = await fixture.add({ runAt: fixture.ledger.now() + 10 })
    const now = fixture.ledger.now()

    assert.deepEqual(await prune(fixture, { settledBefore: now, failedBefore: now - HOUR_MS }), [3])
    for (const id of settled) assert.equal(await fixture.ledger.job(id), undefined)
    assert.equal(await fixture.count('job_errors'), 1)
    assert.deepEqual(await fixture.stages(failed.id, proof.id, recent.id, waiting, running, later), [
      'failed',
      'failed',
      'done',
      'deps',
      'claimed',
      'time',
    ]) // prettier-ignore
    fixture.clock.pass(2 * HOUR_MS)
    assert.deepEqual(
      await prune(fixture, { settledBefore: fixture.ledger.now(), failedBefore: fixture.ledger.now() }),
      [2],
    )
    assert.equal(
      await fixture.stage(proof.id),
      'failed',
      'a failed job of an unsettled segment is part of the proof',
    )
  })

  test('each step of pruning looks at a bounded number of jobs', async (fixture) => {
    await fixture.write({ jobs: Array.from({ length: 12_000 }, () => job()) })
    const claimed = await fixture.claim({ n: 12_000 })
    await fixture.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
    await fixture.add()
    fixture.clock.pass(1)
    const policy = { settledBefore: fixture.ledger.now(), failedBefore: 0 }
    assert.deepEqual(await prune(fixture, policy), [5_000, 5_000, 2_000])
    assert.deepEqual(plain(await fixture.ledger.tallies()), [{ kind: 'job', stage: 'ready', n: 1 }])
  })

  test('a dependency that is pruned while its dependent waits for others takes nothing from it', async (fixture) => {
    const first = await fixture.claimed({ kind: 'fetch' })
    const second = await fixture.add({ kind: 'other' })
    const dependent = await fixture.add({ after: [first.id, second] })
    await fixture.settle(first, 'succeed')
    fixture.clock.pass(1)
    await prune(fixture, { settledBefore: fixture.ledger.now(), failedBefore: 0 })
    assert.equal(await fixture.stage(dependent), 'deps')
    await fixture.settle((await fixture.claim())[0]!, 'succeed')
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('old counters and workers that are long gone go too, but no worker that still holds a job', async (fixture) => {
    await fixture.settle(await fixture.claimed(), 'succeed')
    const second = await fixture.worker('second')
    await fixture.ledger.retire(second)
    fixture.clock.pass(9 * 24 * HOUR_MS)
    await fixture.settle(await fixture.claimed(), 'succeed')
    await fixture.ledger.pruneRest()
    assert.deepEqual(plain(await fixture.ledger.counters({ sinceMinute: 0 })), { processed: 1 })
    assert.deepEqual(
      (await fixture.sql<{ id: number }>(`SELECT id FROM workers`)).map((one) => one.id),
      [fixture.owner],
    )
  })
}

function schedules(test: LedgerTest, home: Home): void {
  const entry = (fixture: LedgerFixture, more: object = {}) => ({
    name: 'nightly',
    kind: 'job',
    payload: '{}',
    spec: '0 3 * * *',
    stream_id: 0,
    lane: 'bulk' as const,
    priority: 0,
    next_at: fixture.ledger.now() + 100,
    ...more,
  }) // prettier-ignore
  const only = async (fixture: LedgerFixture): Promise<ScheduleRow> => {
    const [row, ...more] = await fixture.ledger.schedules()
    assert.equal(more.length, 0)
    return row!
  }

  test('a schedule keeps its next time when it is put again unchanged, and takes the new one with a new spec', async (fixture) => {
    await fixture.ledger.putSchedule(entry(fixture))
    const due = (await only(fixture)).next_at
    await fixture.ledger.putSchedule(entry(fixture, { next_at: due + 5_000, payload: '{"full":true}' }))
    assert.deepEqual([(await only(fixture)).next_at, (await only(fixture)).payload], [due, '{"full":true}'])
    await fixture.ledger.putSchedule(entry(fixture, { next_at: due + 5_000, spec: '0 4 * * *' }))
    assert.equal((await only(fixture)).next_at, due + 5_000)
    assert.equal(await fixture.ledger.dropSchedule('nightly'), true)
    assert.equal(await fixture.ledger.dropSchedule('nightly'), false)
  })

  test('a due entry fires once over all callers, and remembers its job', async (fixture) => {
    await fixture.ledger.putSchedule(entry(fixture))
    const row = await only(fixture)
    const ledgers = home.shared
      ? [fixture.ledger, await fixture.neighbour(), await fixture.neighbour()]
      : [fixture.ledger, fixture.ledger, fixture.ledger]
    const fired = await Promise.all(
      ledgers.map((ledger) => ledger.fireSchedule(row, row.next_at + 1_000, { jobs: [job()] })),
    )
    assert.equal(fired.filter((one) => one !== undefined).length, 1)
    assert.equal(await fixture.count('jobs'), 1)
    const after = await only(fixture)
    assert.deepEqual(
      [after.next_at, after.last_at, after.last_job],
      [row.next_at + 1_000, fixture.ledger.now(), fired.find(Boolean)!.id],
    )
  })

  test('an entry that was changed meanwhile does not fire by its old spec', async (fixture) => {
    await fixture.ledger.putSchedule(entry(fixture))
    const old = await only(fixture)
    await fixture.ledger.putSchedule(entry(fixture, { spec: '0 4 * * *', next_at: old.next_at }))
    assert.equal(await fixture.ledger.fireSchedule(old, old.next_at + 1, { jobs: [job()] }), undefined)
    assert.equal(await fixture.count('jobs'), 0)
  })

  test('an entry whose job cannot be written stays due', async (fixture) => {
    await fixture.ledger.putSchedule(entry(fixture))
    const row = await only(fixture)
    await assert.rejects(
      fixture.ledger.fireSchedule(row, row.next_at + 1_000, { jobs: [job({ after: ['nobody'] })] }),
    )
    assert.equal((await only(fixture)).next_at, row.next_at)
  })
}

function alerts(test: LedgerTest): void {
  const warning = { condition: 'bad-rate', target: 'mail', severity: 'warning' as const, text: '0.3 % bad' }
  const critical = { ...warning, severity: 'critical' as const, text: '2 % bad' }

  test('an alert is sent once an hour per condition and target', async (fixture) => {
    const raise = (alert = warning): Promise<boolean> => fixture.ledger.raiseAlert(alert, HOUR_MS)
    assert.equal(await raise(), true)
    assert.equal(await raise(), false, 'in the same instant')
    fixture.clock.pass(HOUR_MS - 1)
    assert.equal(await raise(), false)
    assert.equal(await raise({ ...warning, target: 'files' }), true, 'another target')
    fixture.clock.pass(1)
    assert.equal(await raise(), true)
    const [first] = (await fixture.ledger.alerts()).filter((one) => one.target === 'mail')
    assert.deepEqual([first!.count, first!.last_at - first!.first_at], [4, HOUR_MS])
  })

  test('an alert that becomes critical is sent at once', async (fixture) => {
    await fixture.ledger.raiseAlert(warning, HOUR_MS)
    fixture.clock.pass(1)
    assert.equal(await fixture.ledger.raiseAlert(critical, HOUR_MS), true)
    fixture.clock.pass(1)
    assert.equal(await fixture.ledger.raiseAlert(critical, HOUR_MS), false)
    const [row] = await fixture.ledger.alerts()
    assert.deepEqual([row!.severity, row!.text], ['critical', '2 % bad'])
  })

  test('an alert that is cleared leaves the list, and one that comes back has a new beginning', async (fixture) => {
    await fixture.ledger.raiseAlert(warning, HOUR_MS)
    assert.equal(await fixture.ledger.clearAlert('bad-rate', 'mail'), true)
    assert.equal(await fixture.ledger.clearAlert('bad-rate', 'mail'), false)
    assert.deepEqual(await fixture.ledger.alerts(), [])
    assert.equal((await fixture.ledger.alerts({ cleared: true })).length, 1)
    fixture.clock.pass(2 * HOUR_MS)
    assert.equal(await fixture.ledger.raiseAlert(warning, HOUR_MS), true)
    assert.equal((await fixture.ledger.alerts())[0]!.first_at, fixture.ledger.now())
  })
}

function listings(test: LedgerTest): void {
  test('jobs are listed newest first, by page, and by what is asked for', async (fixture) => {
    const streamId = await fixture.stream()
    const all: number[] = []
    for (let n = 0; n < 5; n++) all.push(await fixture.add(n % 2 ? { streamId } : { kind: 'other' }))
    const list = async (filter: Parameters<LedgerFixture['ledger']['jobs']>[0]): Promise<number[]> =>
      (await fixture.ledger.jobs(filter)).map((one) => one.id)
    assert.deepEqual(await list({}), all.toReversed())
    assert.deepEqual(await list({ limit: 2, before: all[3]! }), [all[2], all[1]])
    assert.deepEqual(await list({ stream: 'mail' }), [all[3], all[1]])
    assert.deepEqual(await list({ kind: 'other', state: 'pending' }), [all[4], all[2], all[0]])
    assert.deepEqual(await list({ state: 'done' }), [])
    assert.deepEqual(await list({ createdBefore: fixture.ledger.now() }), [])
  })

  test('a job says what it waits for, who needs it and who holds it', async (fixture) => {
    const first = await fixture.claimed({ kind: 'fetch' })
    const second = await fixture.add({ after: [first.id], onDepFailure: 'run' })
    const detail = (await fixture.ledger.job(second))!
    assert.deepEqual(plain(detail.waitsFor), [
      {
        id: first.id,
        kind: 'fetch',
        state: 'claimed',
        wait: null,
        error: null,
        settled_at: null,
        on_failure: 'run',
        met: 0,
      },
    ])
    assert.equal(detail.owner, null)
    const holder = (await fixture.ledger.job(first.id))!
    assert.deepEqual(
      holder.neededBy.map((one) => one.id),
      [second],
    )
    assert.equal(holder.owner!.id, fixture.owner)
    assert.equal(await fixture.ledger.job(4_711), undefined)
  })

  test('numbers come back as numbers, also sums and counts', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({ counts: [{ segment, listed: 3, stored: 2, gone: 1, seal: true }] })
    await fixture.add({ size: 5_000_000_000, streamId })
    const [stream] = await fixture.ledger.streams()
    const { id, name, mark, ...numbers } = plain(stream!)
    assert.deepEqual(
      { ...numbers, cursor: 0 },
      {
        mark_at: 10,
        tail_at: 10,
        cursor: 0,
        moved_at: fixture.ledger.now(),
        paused: 0,
        segments: 1,
        settled_segments: 1,
        open_segments: 0,
        listed: 3,
        stored: 2,
        gone: 1,
        skipped: 0,
        bad: 0,
        unbalanced: 0,
      },
    ) // prettier-ignore
    assert.deepEqual([typeof id, name, mark], ['number', 'mail', '10'])
    assert.equal((await fixture.ledger.jobs())[0]!.size, 5_000_000_000)
  })
}
