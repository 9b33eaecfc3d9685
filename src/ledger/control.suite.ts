/** The contract of what people do to jobs: cancel and try again. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { NewJob, Tx } from './contract.ts'
import { HOUR_MS, type LedgerFixture, type LedgerTest } from './ledger-fixture.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

export function controlContract(test: LedgerTest): void {
  canceling(test)
  redoing(test)
}

function canceling(test: LedgerTest): void {
  test('a canceled job that has not started never does', async (fixture) => {
    const waiting = [await fixture.add(), await fixture.add({ runAt: fixture.ledger.now() + 1_000 })]
    for (const id of waiting)
      assert.equal((await fixture.ledger.cancel(id, 'not wanted')).outcome, 'canceled')
    fixture.clock.pass(2_000)
    await fixture.ledger.wakeDue()
    assert.deepEqual(await fixture.claim(), [])
    const row = await fixture.row(waiting[0]!)
    assert.deepEqual(
      [row.state, row.note, row.settled_at],
      ['canceled', 'not wanted', fixture.ledger.now() - 2_000],
    )
  })

  test('canceled work leaves no effect, whatever its handler reports in the end', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const effects = async (tx: Tx): Promise<void> => void (await tx.run(`INSERT INTO notes VALUES ('late')`))
    for (const event of ['succeed', 'skip', 'retry', 'postpone', 'fail', 'stop'] as const) {
      const running = await fixture.claimed()
      const { outcome, toStop } = await fixture.ledger.cancel(running.id)
      assert.equal(outcome, 'stopping')
      assert.deepEqual(
        toStop.map((one) => ({ ...one })),
        [{ id: running.id, owner: fixture.owner }],
      )
      assert.deepEqual(await fixture.ledger.stopRequests(fixture.owner), [running.id])
      const work = { effects, jobs: [job({ kind: 'fetch' })] }
      const result = await fixture.settle(running, event, { work: event === 'stop' ? undefined : work })
      assert.equal(result.status, event === 'stop' ? 'held' : 'canceled', event)
      assert.equal(await fixture.stage(running.id), 'canceled', event)
      assert.deepEqual(await fixture.ledger.stopRequests(fixture.owner), [])
    }
    assert.deepEqual(
      [await fixture.count('notes'), (await fixture.ledger.jobs({ kind: 'fetch' })).length],
      [0, 0],
    )
  })

  test('a handler that commits a part after its cancel is told, and holds the job until it stops', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const running = await fixture.claimed()
    await fixture.ledger.cancel(running.id)
    const effects = async (tx: Tx): Promise<void> => void (await tx.run(`INSERT INTO notes VALUES ('part')`))
    assert.deepEqual(await fixture.settle(running, 'continue', { work: { effects } }), { status: 'canceled' })
    assert.equal(await fixture.count('notes'), 0)
    assert.equal(await fixture.stage(running.id), 'claimed')
    await fixture.settle(running, 'stop', { checkpoint: '{"bytes":3}' })
    assert.equal((await fixture.row(running.id)).checkpoint, '{"bytes":3}', 'a redo resumes from there')
  })

  test('a job that is being stopped when its worker dies is canceled, not run again', async (fixture) => {
    const running = await fixture.claimed()
    await fixture.ledger.cancel(running.id)
    assert.equal((await fixture.ledger.reclaim(() => true)).jobs, 1)
    assert.equal(await fixture.stage(running.id), 'canceled')
  })

  test('canceling a job cancels its children and theirs, running or not', async (fixture) => {
    const parent = await fixture.claimed()
    const family = async (parentId: number): Promise<number[]> => [
      await fixture.add({ parentId, kind: 'fetch' }),
      await fixture.add({ parentId, kind: 'other' }),
    ]
    const [child, running] = await family(parent.id)
    const [grandchild] = await family(child!)
    const [claimed] = await fixture.claim({ n: 1, kinds: ['other'] })
    assert.equal(claimed!.id, running)
    const done = await fixture.add({ parentId: parent.id, kind: 'last' })
    await fixture.settle((await fixture.claim({ kinds: ['last'] }))[0]!, 'succeed')
    const { toStop } = await fixture.ledger.cancel(parent.id)
    assert.deepEqual(
      toStop.map((one) => one.id).sort((a, b) => a - b),
      [parent.id, running],
    )
    assert.deepEqual(await fixture.stages(parent.id, child!, running!, grandchild!, done), [
      'claimed',
      'canceled',
      'claimed',
      'canceled',
      'done',
    ])
    await fixture.settle(claimed!, 'stop')
    await fixture.settle(parent, 'stop')
    assert.deepEqual(await fixture.stages(parent.id, running!), ['canceled', 'canceled'])
  })

  test('canceling a job reaches what came from children of it that are done', async (fixture) => {
    const top = await fixture.claimed()
    await fixture.settle(top, 'continue', { work: { jobs: [job({ kind: 'list' })] } })
    const [middle] = await fixture.claim()
    const later = job({ kind: 'fetch', runAt: fixture.ledger.now() + 1_000 })
    const batch = job({ kind: 'other', items: 2 })
    await fixture.settle(middle!, 'succeed', { work: { jobs: [later, batch] } })
    const [whole] = await fixture.claim()
    const halves = [job({ kind: 'other' }), job({ kind: 'other' })]
    await fixture.settle(whole!, 'skip', { splitInto: { halves, failures: 0 } })
    const [running] = await fixture.claim({ n: 1 })
    const { toStop } = await fixture.ledger.cancel(top.id)
    assert.deepEqual(
      toStop.map((one) => one.id),
      [top.id, running!.id],
    )
    const left = await fixture.sql(`SELECT id FROM jobs WHERE state = 'pending'`)
    assert.deepEqual(left, [])
    assert.equal(
      (await fixture.ledger.jobs({ kind: 'fetch' }))[0]!.note,
      `its ancestor #${top.id} was canceled`,
    )
  })

  test('there is nothing to cancel in a job that is done, and no job where there is none', async (fixture) => {
    const done = await fixture.claimed()
    await fixture.settle(done, 'succeed')
    await assert.rejects(fixture.ledger.cancel(done.id), UsageError)
    await assert.rejects(fixture.ledger.cancel(4_711), UsageError)
    const canceled = await fixture.add()
    await fixture.ledger.cancel(canceled)
    assert.equal((await fixture.ledger.cancel(canceled)).outcome, 'already')
  })
}

function redoing(test: LedgerTest): void {
  test('a failed or canceled job that is tried again has a full budget and a new fence', async (fixture) => {
    for (const event of ['fail', 'stop'] as const) {
      const first = await fixture.claimed()
      await fixture.settle(first, 'retry')
      const [second] = await fixture.claim()
      await fixture.settle(second!, event)
      assert.equal(await fixture.ledger.redo(first.id), 1)
      const [third] = await fixture.claim()
      assert.deepEqual([third!.id, third!.failures, third!.attempt], [first.id, 0, 3])
      await fixture.settle(third!, 'succeed')
    }
  })

  test('of a stream that is hurried, what was put off after a try is ready at once', async (fixture) => {
    const streamId = await fixture.stream('mail')
    const later = fixture.ledger.now() + HOUR_MS
    const tried = await fixture.claimed({ streamId })
    await fixture.settle(tried, 'postpone', { runAt: later })
    const elsewhere = await fixture.claimed({ streamId: await fixture.stream('other') })
    await fixture.settle(elsewhere, 'postpone', { runAt: later })
    const planned = await fixture.add({ streamId, runAt: later })
    assert.equal(await fixture.ledger.wakeStream('mail'), 1)
    assert.equal(await fixture.ledger.wakeStream('none of this name'), 0)
    assert.deepEqual(await fixture.stages(tried.id, elsewhere.id, planned), ['ready', 'time', 'time'])
  })

  test('what was put off by a clock that was put back since is ready at once', async (fixture) => {
    const later = fixture.ledger.now() + HOUR_MS
    fixture.clock.pass(HOUR_MS)
    const ahead = await fixture.claimed()
    await fixture.settle(ahead, 'postpone', { runAt: later + HOUR_MS })
    fixture.clock.pass(-HOUR_MS)
    const waiting = await fixture.claimed()
    await fixture.settle(waiting, 'postpone', { runAt: later })
    const planned = await fixture.add({ runAt: later })
    assert.equal(await fixture.ledger.wakeAhead(), 1)
    assert.equal(await fixture.ledger.wakeAhead(), 0)
    assert.deepEqual(await fixture.stages(ahead.id, waiting.id, planned), ['ready', 'time', 'time'])
  })

  test('a new job that was to wait for a moment waits for no more than that when the clock is put back', async (fixture) => {
    fixture.clock.pass(24 * HOUR_MS)
    const then = fixture.ledger.now()
    const parent = await fixture.claimed()
    const soon = await fixture.add({ runAt: then + HOUR_MS / 2 })
    const dated = await fixture.add({ runAt: then + 2 * HOUR_MS })
    await fixture.settle(parent, 'succeed')
    fixture.clock.pass(-24 * HOUR_MS)
    assert.equal(await fixture.ledger.wakeAhead(), 0)
    assert.deepEqual(await fixture.stages(soon, dated), ['time', 'time'])
    fixture.clock.pass(HOUR_MS / 2)
    assert.equal((await fixture.ledger.wakeDue()).nextDueAt, then + 2 * HOUR_MS)
    assert.deepEqual(await fixture.stages(soon, dated), ['ready', 'time'])
  })

  test('a look for what a clock that was put back has put off costs nothing while there is none', async (fixture) => {
    const later = (hours: number): number => fixture.ledger.now() + hours * HOUR_MS
    await fixture.write({ jobs: [job({ runAt: later(5) }), job({ runAt: later(6) })] })
    await fixture.settle(await fixture.claimed(), 'postpone', { runAt: later(5) })
    const asked = await statementsOf(fixture, () => fixture.ledger.wakeAhead())
    assert.deepEqual(
      asked.filter((sql) => /jobs/.test(sql)),
      [],
    )
    fixture.clock.pass(-2 * HOUR_MS)
    const before = await fixture.ledger.counters({ sinceMinute: 0 })
    assert.equal(await fixture.ledger.wakeAhead(), 1)
    assert.deepEqual(await fixture.ledger.counters({ sinceMinute: 0 }), before)
    assert.deepEqual(
      (await statementsOf(fixture, () => fixture.ledger.wakeAhead())).filter((sql) => /jobs/.test(sql)),
      [],
      'and nothing again after it was found',
    )
  })

  test('only failed and canceled jobs can be tried again', async (fixture) => {
    const running = await fixture.claimed()
    await assert.rejects(fixture.ledger.redo(running.id), UsageError)
    await fixture.settle(running, 'succeed')
    await assert.rejects(fixture.ledger.redo(running.id), UsageError)
    await assert.rejects(fixture.ledger.redo(4_711), UsageError)
  })

  test('trying a failed job again brings back all that failed because of it', async (fixture) => {
    const root = await fixture.claimed()
    const [left, right, bottom, beside] = (
      await fixture.write({
        jobs: [
          job({ ref: 'left', after: [root.id] }),
          job({ ref: 'right', after: [root.id, 'left'] }),
          job({ after: ['left', 'right', root.id] }),
          job({ after: [root.id], onDepFailure: 'run' }),
        ],
      })
    ).map((one) => one.id) as [number, number, number, number]
    await fixture.settle(root, 'fail')
    assert.deepEqual(await fixture.stages(left, right, bottom, beside), [
      'failed',
      'failed',
      'failed',
      'ready',
    ])
    assert.equal(await fixture.ledger.redo(root.id), 4)
    assert.deepEqual(await fixture.stages(root.id, left, right, bottom), ['ready', 'deps', 'deps', 'deps'])
    assert.deepEqual(await drain(fixture), [root.id, beside, left, right, bottom])
  })

  test('trying a failed job again brings back those it canceled, but not those someone canceled by hand', async (fixture) => {
    const root = await fixture.claimed()
    const after = [root.id]
    const [swept, byHand] = [
      await fixture.add({ after, onDepFailure: 'cancel' }),
      await fixture.add({ after, onDepFailure: 'cancel' }),
    ]
    await fixture.ledger.cancel(byHand)
    await fixture.settle(root, 'fail')
    assert.equal(await fixture.stage(swept), 'canceled')
    assert.equal(await fixture.ledger.redo(root.id), 2)
    assert.deepEqual(await fixture.stages(root.id, swept, byHand), ['ready', 'deps', 'canceled'])
    assert.deepEqual(await drain(fixture), [root.id, swept])
  })

  test('a canceled dependent whose key or segment has moved on stays canceled, and the rest is tried again', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const root = await fixture.claimed()
    const more = { after: [root.id], onDepFailure: 'cancel' as const }
    const keyed = await fixture.add({ ...more, key: 'a' })
    const inSegment = await fixture.add({ ...more, streamId, segment })
    await fixture.settle(root, 'fail')
    await fixture.write({ counts: [{ segment, seal: true }], jobs: [job({ key: 'a' })] })
    assert.equal(await fixture.ledger.redo(root.id), 1)
    assert.deepEqual(await fixture.stages(root.id, keyed, inSegment), ['ready', 'canceled', 'canceled'])
  })

  test('a job that is tried again waits for the dependencies that are still open, and no others', async (fixture) => {
    const [done, open] = [await fixture.claimed({ kind: 'fetch' }), await fixture.add({ kind: 'other' })]
    const id = await fixture.add({ after: [done.id, open] })
    await fixture.ledger.cancel(id)
    await fixture.settle(done, 'succeed')
    await fixture.ledger.redo(id)
    assert.equal(await fixture.stage(id), 'deps')
    assert.deepEqual(await drain(fixture), [open, id])
  })

  test('a job is not tried again before the jobs that it waits for', async (fixture) => {
    const first = await fixture.claimed()
    const dependent = await fixture.add({ kind: 'last', after: [first.id] })
    await fixture.settle(first, 'fail')
    await assert.rejects(fixture.ledger.redo(dependent), (error: UsageError) => {
      assert.match(error.message, new RegExp(`waits for job #${first.id}, which is failed`))
      return error.hint?.includes(`#${first.id}`) ?? false
    })
    assert.equal(await fixture.stage(dependent), 'failed', 'nothing was changed')
    assert.equal(await fixture.ledger.redo(first.id), 2)
    assert.deepEqual(await fixture.stages(first.id, dependent), ['ready', 'deps'])
  })

  test('a dependent of two failed jobs comes back when both have been tried again', async (fixture) => {
    const [one, two] = [await fixture.add(), await fixture.add()]
    const dependent = await fixture.add({ kind: 'last', after: [one, two] })
    for (const failing of await fixture.claim()) await fixture.settle(failing, 'fail')
    assert.equal(await fixture.ledger.redo(one), 1)
    assert.equal(await fixture.stage(dependent), 'failed')
    assert.equal(await fixture.ledger.redo(two), 2)
    assert.equal(await fixture.stage(dependent), 'deps')
  })

  test('a job that is tried again does not wait for a dependency that was pruned', async (fixture) => {
    const root = await fixture.claimed()
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const dependent = await fixture.add({ after: [root.id], streamId, segment })
    await fixture.settle(root, 'fail')
    fixture.clock.pass(1)
    const now = fixture.ledger.now()
    assert.equal((await fixture.ledger.pruneStep({ settledBefore: now, failedBefore: now }, 0)).deleted, 1)
    await fixture.ledger.redo(dependent)
    assert.deepEqual(await drain(fixture), [dependent])
  })

  test('a canceled job cannot be tried again while another holds its key', async (fixture) => {
    const old = await fixture.add({ key: 'a' })
    await fixture.ledger.cancel(old)
    const fresh = await fixture.add({ key: 'a' })
    await assert.rejects(fixture.ledger.redo(old), new RegExp(`#${fresh}`))
    await fixture.ledger.cancel(fresh)
    assert.equal(await fixture.ledger.redo(old), 1)
  })

  test('a replaced job cannot be tried again behind the back of its stopping predecessor', async (fixture) => {
    const running = await fixture.claimed({ key: 'a' })
    const [fresh] = await fixture.write({ jobs: [job({ key: 'a', onKeyTaken: 'replace' })] })
    await fixture.ledger.cancel(fresh!.id)
    await fixture.ledger.redo(fresh!.id)
    assert.equal(await fixture.stage(fresh!.id), 'deps')
    await fixture.settle(running, 'stop')
    assert.deepEqual(await drain(fixture), [fresh!.id])
  })
}

/** Runs whatever is ready until nothing is; returns the order. */
async function drain(fixture: LedgerFixture): Promise<number[]> {
  const order: number[] = []
  for (;;) {
    const claimed = await fixture.claim()
    if (claimed.length === 0) return order
    order.push(...claimed.map((one) => one.id).sort((a, b) => a - b))
    await fixture.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
  }
}

/** The statements that `fn` has the ledger's database run in transactions. */
async function statementsOf(fixture: LedgerFixture, fn: () => Promise<unknown>): Promise<string[]> {
  const { driver } = fixture.ledger
  const asked: string[] = []
  const transaction = driver.transaction.bind(driver)
  driver.transaction = (inner) =>
    transaction((tx) =>
      inner(
        new Proxy(tx, {
          get: (target, name) => {
            const value = Reflect.get(target, name) as unknown
            if (typeof value !== 'function') return value
            return (...args: unknown[]) => {
              if (typeof args[0] === 'string') asked.push(args[0])
              return (value as (...args: unknown[]) => unknown).apply(target, args)
            }
          },
        }),
      ),
    )
  try {
    await fn()
  } finally {
    driver.transaction = transaction
  }
  return asked
}
