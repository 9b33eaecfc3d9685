/** The contract of what keeps a ledger small and its people informed: pruning, schedules, alerts, listings. */
import assert from 'node:assert/strict'
import type { NewJob } from './contract.ts'
import { type Desk, type DeskTest, HOUR_MS, plain } from './desk.suite.ts'
import type { Home } from './home.suite.ts'
import type { ScheduleRow } from './schedules.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

export function housekeepingContract(test: DeskTest, home: Home): void {
  pruning(test)
  schedules(test, home)
  alerts(test)
  listings(test)
}

function pruning(test: DeskTest): void {
  /** All steps from the start; returns how many jobs went with each. */
  async function prune(
    desk: Desk,
    policy: { settledBefore: number; failedBefore: number },
  ): Promise<number[]> {
    const deleted: number[] = []
    for (let afterId: number | null = 0; afterId !== null; ) {
      const step = await desk.ledger.pruneStep(policy, afterId)
      if (step.nextId !== null) deleted.push(step.deleted)
      afterId = step.nextId
    }
    return deleted
  }

  test('a canceled job stays while its segment waits for its items, and goes once that has settled', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const id = await desk.add({ streamId, segment })
    await desk.write({ counts: [{ segment, listed: 1, seal: true }] })
    await desk.ledger.cancel(id)
    desk.clock.pass(HOUR_MS)
    const policy = { settledBefore: desk.ledger.now(), failedBefore: 0 }
    assert.deepEqual(await prune(desk, policy), [0])
    assert.equal(await desk.stage(id), 'canceled')
    await desk.write({ counts: [{ segment, gone: 1 }] })
    assert.deepEqual(await prune(desk, policy), [1])
  })

  test('settled jobs go after their time, with their errors and edges; everything else stays', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const settled: number[] = []
    for (const event of ['succeed', 'skip', 'stop'] as const) {
      const one = await desk.claimed()
      await desk.settle(one, event, { error: { kind: 'bug', message: 'x' } })
      settled.push(one.id)
    }
    const failed = await desk.claimed()
    await desk.settle(failed, 'fail', { error: { kind: 'bug', message: 'x' } })
    const proof = await desk.claimed({ streamId, segment })
    await desk.settle(proof, 'fail')
    desk.clock.pass(HOUR_MS)
    const recent = await desk.claimed()
    await desk.settle(recent, 'succeed')
    const waiting = await desk.add({ after: [await desk.add()] })
    const running = (await desk.claim())[0]!.id
    const later = await desk.add({ runAt: desk.ledger.now() + 10 })
    const now = desk.ledger.now()

    assert.deepEqual(await prune(desk, { settledBefore: now, failedBefore: now - HOUR_MS }), [3])
    for (const id of settled) assert.equal(await desk.ledger.job(id), undefined)
    assert.equal(await desk.count('job_errors'), 1)
    assert.deepEqual(await desk.stages(failed.id, proof.id, recent.id, waiting, running, later), [
      'failed',
      'failed',
      'done',
      'deps',
      'claimed',
      'time',
    ]) // prettier-ignore
    desk.clock.pass(2 * HOUR_MS)
    assert.deepEqual(
      await prune(desk, { settledBefore: desk.ledger.now(), failedBefore: desk.ledger.now() }),
      [2],
    )
    assert.equal(
      await desk.stage(proof.id),
      'failed',
      'a failed job of an unsettled segment is part of the proof',
    )
  })

  test('each step of pruning looks at a bounded number of jobs', async (desk) => {
    await desk.write({ jobs: Array.from({ length: 12_000 }, () => job()) })
    const claimed = await desk.claim({ n: 12_000 })
    await desk.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
    await desk.add()
    desk.clock.pass(1)
    const policy = { settledBefore: desk.ledger.now(), failedBefore: 0 }
    assert.deepEqual(await prune(desk, policy), [5_000, 5_000, 2_000])
    assert.deepEqual(plain(await desk.ledger.tallies()), [{ kind: 'job', stage: 'ready', n: 1 }])
  })

  test('a dependency that is pruned while its dependent waits for others takes nothing from it', async (desk) => {
    const first = await desk.claimed({ kind: 'fetch' })
    const second = await desk.add({ kind: 'other' })
    const dependent = await desk.add({ after: [first.id, second] })
    await desk.settle(first, 'succeed')
    desk.clock.pass(1)
    await prune(desk, { settledBefore: desk.ledger.now(), failedBefore: 0 })
    assert.equal(await desk.stage(dependent), 'deps')
    await desk.settle((await desk.claim())[0]!, 'succeed')
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('old counters and workers that are long gone go too, but no worker that still holds a job', async (desk) => {
    await desk.settle(await desk.claimed(), 'succeed')
    const second = await desk.worker('second')
    await desk.ledger.retire(second)
    desk.clock.pass(9 * 24 * HOUR_MS)
    await desk.settle(await desk.claimed(), 'succeed')
    await desk.ledger.pruneRest()
    assert.deepEqual(plain(await desk.ledger.counters({ sinceMinute: 0 })), { processed: 1 })
    assert.deepEqual(
      (await desk.sql<{ id: number }>(`SELECT id FROM workers`)).map((one) => one.id),
      [desk.owner],
    )
  })
}

function schedules(test: DeskTest, home: Home): void {
  const entry = (desk: Desk, more: object = {}) => ({
    name: 'nightly',
    kind: 'job',
    payload: '{}',
    spec: '0 3 * * *',
    stream_id: 0,
    lane: 'bulk' as const,
    priority: 0,
    next_at: desk.ledger.now() + 100,
    ...more,
  }) // prettier-ignore
  const only = async (desk: Desk): Promise<ScheduleRow> => {
    const [row, ...more] = await desk.ledger.schedules()
    assert.equal(more.length, 0)
    return row!
  }

  test('a schedule keeps its next time when it is put again unchanged, and takes the new one with a new spec', async (desk) => {
    await desk.ledger.putSchedule(entry(desk))
    const due = (await only(desk)).next_at
    await desk.ledger.putSchedule(entry(desk, { next_at: due + 5_000, payload: '{"full":true}' }))
    assert.deepEqual([(await only(desk)).next_at, (await only(desk)).payload], [due, '{"full":true}'])
    await desk.ledger.putSchedule(entry(desk, { next_at: due + 5_000, spec: '0 4 * * *' }))
    assert.equal((await only(desk)).next_at, due + 5_000)
    assert.equal(await desk.ledger.dropSchedule('nightly'), true)
    assert.equal(await desk.ledger.dropSchedule('nightly'), false)
  })

  test('a due entry fires once over all callers, and remembers its job', async (desk) => {
    await desk.ledger.putSchedule(entry(desk))
    const row = await only(desk)
    const ledgers = home.shared
      ? [desk.ledger, await desk.neighbour(), await desk.neighbour()]
      : [desk.ledger, desk.ledger, desk.ledger]
    const fired = await Promise.all(
      ledgers.map((ledger) => ledger.fireSchedule(row, row.next_at + 1_000, { jobs: [job()] })),
    )
    assert.equal(fired.filter((one) => one !== undefined).length, 1)
    assert.equal(await desk.count('jobs'), 1)
    const after = await only(desk)
    assert.deepEqual(
      [after.next_at, after.last_at, after.last_job],
      [row.next_at + 1_000, desk.ledger.now(), fired.find(Boolean)!.id],
    )
  })

  test('an entry that was changed meanwhile does not fire by its old spec', async (desk) => {
    await desk.ledger.putSchedule(entry(desk))
    const old = await only(desk)
    await desk.ledger.putSchedule(entry(desk, { spec: '0 4 * * *', next_at: old.next_at }))
    assert.equal(await desk.ledger.fireSchedule(old, old.next_at + 1, { jobs: [job()] }), undefined)
    assert.equal(await desk.count('jobs'), 0)
  })

  test('an entry whose job cannot be written stays due', async (desk) => {
    await desk.ledger.putSchedule(entry(desk))
    const row = await only(desk)
    await assert.rejects(
      desk.ledger.fireSchedule(row, row.next_at + 1_000, { jobs: [job({ after: ['nobody'] })] }),
    )
    assert.equal((await only(desk)).next_at, row.next_at)
  })
}

function alerts(test: DeskTest): void {
  const warning = { condition: 'bad-rate', target: 'mail', severity: 'warning' as const, text: '0.3 % bad' }
  const critical = { ...warning, severity: 'critical' as const, text: '2 % bad' }

  test('an alert is sent once an hour per condition and target', async (desk) => {
    const raise = (alert = warning): Promise<boolean> => desk.ledger.raiseAlert(alert, HOUR_MS)
    assert.equal(await raise(), true)
    assert.equal(await raise(), false, 'in the same instant')
    desk.clock.pass(HOUR_MS - 1)
    assert.equal(await raise(), false)
    assert.equal(await raise({ ...warning, target: 'files' }), true, 'another target')
    desk.clock.pass(1)
    assert.equal(await raise(), true)
    const [first] = (await desk.ledger.alerts()).filter((one) => one.target === 'mail')
    assert.deepEqual([first!.count, first!.last_at - first!.first_at], [4, HOUR_MS])
  })

  test('an alert that becomes critical is sent at once', async (desk) => {
    await desk.ledger.raiseAlert(warning, HOUR_MS)
    desk.clock.pass(1)
    assert.equal(await desk.ledger.raiseAlert(critical, HOUR_MS), true)
    desk.clock.pass(1)
    assert.equal(await desk.ledger.raiseAlert(critical, HOUR_MS), false)
    const [row] = await desk.ledger.alerts()
    assert.deepEqual([row!.severity, row!.text], ['critical', '2 % bad'])
  })

  test('an alert that is cleared leaves the list, and one that comes back has a new beginning', async (desk) => {
    await desk.ledger.raiseAlert(warning, HOUR_MS)
    assert.equal(await desk.ledger.clearAlert('bad-rate', 'mail'), true)
    assert.equal(await desk.ledger.clearAlert('bad-rate', 'mail'), false)
    assert.deepEqual(await desk.ledger.alerts(), [])
    assert.equal((await desk.ledger.alerts({ cleared: true })).length, 1)
    desk.clock.pass(2 * HOUR_MS)
    assert.equal(await desk.ledger.raiseAlert(warning, HOUR_MS), true)
    assert.equal((await desk.ledger.alerts())[0]!.first_at, desk.ledger.now())
  })
}

function listings(test: DeskTest): void {
  test('jobs are listed newest first, by page, and by what is asked for', async (desk) => {
    const streamId = await desk.stream()
    const all: number[] = []
    for (let n = 0; n < 5; n++) all.push(await desk.add(n % 2 ? { streamId } : { kind: 'other' }))
    const list = async (filter: Parameters<Desk['ledger']['jobs']>[0]): Promise<number[]> =>
      (await desk.ledger.jobs(filter)).map((one) => one.id)
    assert.deepEqual(await list({}), all.toReversed())
    assert.deepEqual(await list({ limit: 2, before: all[3]! }), [all[2], all[1]])
    assert.deepEqual(await list({ stream: 'mail' }), [all[3], all[1]])
    assert.deepEqual(await list({ kind: 'other', state: 'pending' }), [all[4], all[2], all[0]])
    assert.deepEqual(await list({ state: 'done' }), [])
    assert.deepEqual(await list({ createdBefore: desk.ledger.now() }), [])
  })

  test('a job says what it waits for, who needs it and who holds it', async (desk) => {
    const first = await desk.claimed({ kind: 'fetch' })
    const second = await desk.add({ after: [first.id], onDepFailure: 'run' })
    const detail = (await desk.ledger.job(second))!
    assert.deepEqual(plain(detail.waitsFor), [
      {
        ...{ id: first.id, kind: 'fetch', state: 'claimed', wait: null, error: null, settled_at: null },
        ...{ on_failure: 'run', met: 0 },
      },
    ])
    assert.equal(detail.owner, null)
    const holder = (await desk.ledger.job(first.id))!
    assert.deepEqual(
      holder.neededBy.map((one) => one.id),
      [second],
    )
    assert.equal(holder.owner!.id, desk.owner)
    assert.equal(await desk.ledger.job(4_711), undefined)
  })

  test('numbers come back as numbers, also sums and counts', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({ counts: [{ segment, listed: 3, stored: 2, gone: 1, seal: true }] })
    await desk.add({ size: 5_000_000_000, streamId })
    const [stream] = await desk.ledger.streams()
    const { id, name, mark, ...numbers } = plain(stream!)
    assert.deepEqual(
      { ...numbers, cursor: 0 },
      {
        mark_at: 10,
        tail_at: 10,
        cursor: 0,
        moved_at: desk.ledger.now(),
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
    assert.equal((await desk.ledger.jobs())[0]!.size, 5_000_000_000)
  })
}
