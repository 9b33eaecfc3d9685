/** The contract of what people do to jobs: cancel and try again. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { NewJob, Tx } from './contract.ts'
import { type Desk, type DeskTest, HOUR_MS } from './desk.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

export function controlContract(test: DeskTest): void {
  canceling(test)
  redoing(test)
}

function canceling(test: DeskTest): void {
  test('a canceled job that has not started never does', async (desk) => {
    const waiting = [await desk.add(), await desk.add({ runAt: desk.ledger.now() + 1_000 })]
    for (const id of waiting) assert.equal((await desk.ledger.cancel(id, 'not wanted')).outcome, 'canceled')
    desk.clock.pass(2_000)
    await desk.ledger.wakeDue()
    assert.deepEqual(await desk.claim(), [])
    const row = await desk.row(waiting[0]!)
    assert.deepEqual(
      [row.state, row.note, row.settled_at],
      ['canceled', 'not wanted', desk.ledger.now() - 2_000],
    )
  })

  test('canceled work leaves no effect, whatever its handler reports in the end', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const effects = async (tx: Tx): Promise<void> => void (await tx.run(`INSERT INTO notes VALUES ('late')`))
    for (const event of ['succeed', 'skip', 'retry', 'postpone', 'fail', 'stop'] as const) {
      const running = await desk.claimed()
      const { outcome, toStop } = await desk.ledger.cancel(running.id)
      assert.equal(outcome, 'stopping')
      assert.deepEqual(
        toStop.map((one) => ({ ...one })),
        [{ id: running.id, owner: desk.owner }],
      )
      assert.deepEqual(await desk.ledger.stopRequests(desk.owner), [running.id])
      const work = { effects, jobs: [job({ kind: 'fetch' })] }
      const result = await desk.settle(running, event, { work: event === 'stop' ? undefined : work })
      assert.equal(result.status, event === 'stop' ? 'held' : 'canceled', event)
      assert.equal(await desk.stage(running.id), 'canceled', event)
      assert.deepEqual(await desk.ledger.stopRequests(desk.owner), [])
    }
    assert.deepEqual([await desk.count('notes'), (await desk.ledger.jobs({ kind: 'fetch' })).length], [0, 0])
  })

  test('a handler that commits a part after its cancel is told, and holds the job until it stops', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const running = await desk.claimed()
    await desk.ledger.cancel(running.id)
    const effects = async (tx: Tx): Promise<void> => void (await tx.run(`INSERT INTO notes VALUES ('part')`))
    assert.deepEqual(await desk.settle(running, 'continue', { work: { effects } }), { status: 'canceled' })
    assert.equal(await desk.count('notes'), 0)
    assert.equal(await desk.stage(running.id), 'claimed')
    await desk.settle(running, 'stop', { checkpoint: '{"bytes":3}' })
    assert.equal((await desk.row(running.id)).checkpoint, '{"bytes":3}', 'a redo resumes from there')
  })

  test('a job that is being stopped when its worker dies is canceled, not run again', async (desk) => {
    const running = await desk.claimed()
    await desk.ledger.cancel(running.id)
    assert.equal((await desk.ledger.reclaim(() => true)).jobs, 1)
    assert.equal(await desk.stage(running.id), 'canceled')
  })

  test('canceling a job cancels its children and theirs, running or not', async (desk) => {
    const parent = await desk.claimed()
    const family = async (parentId: number): Promise<number[]> => [
      await desk.add({ parentId, kind: 'fetch' }),
      await desk.add({ parentId, kind: 'other' }),
    ]
    const [child, running] = await family(parent.id)
    const [grandchild] = await family(child!)
    const [claimed] = await desk.claim({ n: 1, kinds: ['other'] })
    assert.equal(claimed!.id, running)
    const done = await desk.add({ parentId: parent.id, kind: 'last' })
    await desk.settle((await desk.claim({ kinds: ['last'] }))[0]!, 'succeed')
    const { toStop } = await desk.ledger.cancel(parent.id)
    assert.deepEqual(
      toStop.map((one) => one.id).sort((a, b) => a - b),
      [parent.id, running],
    )
    assert.deepEqual(await desk.stages(parent.id, child!, running!, grandchild!, done), [
      'claimed',
      'canceled',
      'claimed',
      'canceled',
      'done',
    ])
    await desk.settle(claimed!, 'stop')
    await desk.settle(parent, 'stop')
    assert.deepEqual(await desk.stages(parent.id, running!), ['canceled', 'canceled'])
  })

  test('canceling a job reaches what came from children of it that are done', async (desk) => {
    const top = await desk.claimed()
    await desk.settle(top, 'continue', { work: { jobs: [job({ kind: 'list' })] } })
    const [middle] = await desk.claim()
    const later = job({ kind: 'fetch', runAt: desk.ledger.now() + 1_000 })
    const batch = job({ kind: 'other', items: 2 })
    await desk.settle(middle!, 'succeed', { work: { jobs: [later, batch] } })
    const [whole] = await desk.claim()
    const halves = [job({ kind: 'other' }), job({ kind: 'other' })]
    await desk.settle(whole!, 'skip', { splitInto: { halves, failures: 0 } })
    const [running] = await desk.claim({ n: 1 })
    const { toStop } = await desk.ledger.cancel(top.id)
    assert.deepEqual(
      toStop.map((one) => one.id),
      [top.id, running!.id],
    )
    const left = await desk.sql(`SELECT id FROM jobs WHERE state = 'pending'`)
    assert.deepEqual(left, [])
    assert.equal((await desk.ledger.jobs({ kind: 'fetch' }))[0]!.note, `its ancestor #${top.id} was canceled`)
  })

  test('there is nothing to cancel in a job that is done, and no job where there is none', async (desk) => {
    const done = await desk.claimed()
    await desk.settle(done, 'succeed')
    await assert.rejects(desk.ledger.cancel(done.id), UsageError)
    await assert.rejects(desk.ledger.cancel(4_711), UsageError)
    const canceled = await desk.add()
    await desk.ledger.cancel(canceled)
    assert.equal((await desk.ledger.cancel(canceled)).outcome, 'already')
  })
}

function redoing(test: DeskTest): void {
  test('a failed or canceled job that is tried again has a full budget and a new fence', async (desk) => {
    for (const event of ['fail', 'stop'] as const) {
      const first = await desk.claimed()
      await desk.settle(first, 'retry')
      const [second] = await desk.claim()
      await desk.settle(second!, event)
      assert.equal(await desk.ledger.redo(first.id), 1)
      const [third] = await desk.claim()
      assert.deepEqual([third!.id, third!.failures, third!.attempt], [first.id, 0, 3])
      await desk.settle(third!, 'succeed')
    }
  })

  test('of a stream that is hurried, what was put off after a try is ready at once', async (desk) => {
    const streamId = await desk.stream('mail')
    const later = desk.ledger.now() + HOUR_MS
    const tried = await desk.claimed({ streamId })
    await desk.settle(tried, 'postpone', { runAt: later })
    const elsewhere = await desk.claimed({ streamId: await desk.stream('other') })
    await desk.settle(elsewhere, 'postpone', { runAt: later })
    const planned = await desk.add({ streamId, runAt: later })
    assert.equal(await desk.ledger.hurry('mail'), 1)
    assert.equal(await desk.ledger.hurry('none of this name'), 0)
    assert.deepEqual(await desk.stages(tried.id, elsewhere.id, planned), ['ready', 'time', 'time'])
  })

  test('what was put off by a clock that was put back since is ready at once', async (desk) => {
    const later = desk.ledger.now() + HOUR_MS
    desk.clock.pass(HOUR_MS)
    const ahead = await desk.claimed()
    await desk.settle(ahead, 'postpone', { runAt: later + HOUR_MS })
    desk.clock.pass(-HOUR_MS)
    const waiting = await desk.claimed()
    await desk.settle(waiting, 'postpone', { runAt: later })
    const planned = await desk.add({ runAt: later })
    assert.equal(await desk.ledger.wakeAhead(), 1)
    assert.equal(await desk.ledger.wakeAhead(), 0)
    assert.deepEqual(await desk.stages(ahead.id, waiting.id, planned), ['ready', 'time', 'time'])
  })

  test('a look for what a clock that was put back has put off costs nothing while there is none', async (desk) => {
    const later = (hours: number): number => desk.ledger.now() + hours * HOUR_MS
    await desk.write({ jobs: [job({ runAt: later(5) }), job({ runAt: later(6) })] })
    await desk.settle(await desk.claimed(), 'postpone', { runAt: later(5) })
    const asked = await statementsOf(desk, () => desk.ledger.wakeAhead())
    assert.deepEqual(
      asked.filter((sql) => /jobs/.test(sql)),
      [],
    )
    desk.clock.pass(-2 * HOUR_MS)
    const before = await desk.ledger.counters({ sinceMinute: 0 })
    assert.equal(await desk.ledger.wakeAhead(), 1)
    assert.deepEqual(await desk.ledger.counters({ sinceMinute: 0 }), before)
    assert.deepEqual(
      (await statementsOf(desk, () => desk.ledger.wakeAhead())).filter((sql) => /jobs/.test(sql)),
      [],
      'and nothing again after it was found',
    )
  })

  test('only failed and canceled jobs can be tried again', async (desk) => {
    const running = await desk.claimed()
    await assert.rejects(desk.ledger.redo(running.id), UsageError)
    await desk.settle(running, 'succeed')
    await assert.rejects(desk.ledger.redo(running.id), UsageError)
    await assert.rejects(desk.ledger.redo(4_711), UsageError)
  })

  test('trying a failed job again brings back all that failed because of it', async (desk) => {
    const root = await desk.claimed()
    const [left, right, bottom, beside] = (
      await desk.write({
        jobs: [
          job({ ref: 'left', after: [root.id] }),
          job({ ref: 'right', after: [root.id, 'left'] }),
          job({ after: ['left', 'right', root.id] }),
          job({ after: [root.id], onDepFailure: 'run' }),
        ],
      })
    ).map((one) => one.id) as [number, number, number, number]
    await desk.settle(root, 'fail')
    assert.deepEqual(await desk.stages(left, right, bottom, beside), ['failed', 'failed', 'failed', 'ready'])
    assert.equal(await desk.ledger.redo(root.id), 4)
    assert.deepEqual(await desk.stages(root.id, left, right, bottom), ['ready', 'deps', 'deps', 'deps'])
    assert.deepEqual(await drain(desk), [root.id, beside, left, right, bottom])
  })

  test('trying a failed job again brings back those it canceled, but not those someone canceled by hand', async (desk) => {
    const root = await desk.claimed()
    const after = [root.id]
    const [swept, byHand] = [
      await desk.add({ after, onDepFailure: 'cancel' }),
      await desk.add({ after, onDepFailure: 'cancel' }),
    ]
    await desk.ledger.cancel(byHand)
    await desk.settle(root, 'fail')
    assert.equal(await desk.stage(swept), 'canceled')
    assert.equal(await desk.ledger.redo(root.id), 2)
    assert.deepEqual(await desk.stages(root.id, swept, byHand), ['ready', 'deps', 'canceled'])
    assert.deepEqual(await drain(desk), [root.id, swept])
  })

  test('a canceled dependent whose key or segment has moved on stays canceled, and the rest is tried again', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const root = await desk.claimed()
    const more = { after: [root.id], onDepFailure: 'cancel' as const }
    const keyed = await desk.add({ ...more, key: 'a' })
    const inSegment = await desk.add({ ...more, streamId, segment })
    await desk.settle(root, 'fail')
    await desk.write({ counts: [{ segment, seal: true }], jobs: [job({ key: 'a' })] })
    assert.equal(await desk.ledger.redo(root.id), 1)
    assert.deepEqual(await desk.stages(root.id, keyed, inSegment), ['ready', 'canceled', 'canceled'])
  })

  test('a job that is tried again waits for the dependencies that are still open, and no others', async (desk) => {
    const [done, open] = [await desk.claimed({ kind: 'fetch' }), await desk.add({ kind: 'other' })]
    const id = await desk.add({ after: [done.id, open] })
    await desk.ledger.cancel(id)
    await desk.settle(done, 'succeed')
    await desk.ledger.redo(id)
    assert.equal(await desk.stage(id), 'deps')
    assert.deepEqual(await drain(desk), [open, id])
  })

  test('a job is not tried again before the jobs that it waits for', async (desk) => {
    const first = await desk.claimed()
    const dependent = await desk.add({ kind: 'last', after: [first.id] })
    await desk.settle(first, 'fail')
    await assert.rejects(desk.ledger.redo(dependent), (error: UsageError) => {
      assert.match(error.message, new RegExp(`waits for job #${first.id}, which is failed`))
      return error.hint?.includes(`#${first.id}`) ?? false
    })
    assert.equal(await desk.stage(dependent), 'failed', 'nothing was changed')
    assert.equal(await desk.ledger.redo(first.id), 2)
    assert.deepEqual(await desk.stages(first.id, dependent), ['ready', 'deps'])
  })

  test('a dependent of two failed jobs comes back when both have been tried again', async (desk) => {
    const [one, two] = [await desk.add(), await desk.add()]
    const dependent = await desk.add({ kind: 'last', after: [one, two] })
    for (const failing of await desk.claim()) await desk.settle(failing, 'fail')
    assert.equal(await desk.ledger.redo(one), 1)
    assert.equal(await desk.stage(dependent), 'failed')
    assert.equal(await desk.ledger.redo(two), 2)
    assert.equal(await desk.stage(dependent), 'deps')
  })

  test('a job that is tried again does not wait for a dependency that was pruned', async (desk) => {
    const root = await desk.claimed()
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const dependent = await desk.add({ after: [root.id], streamId, segment })
    await desk.settle(root, 'fail')
    desk.clock.pass(1)
    const now = desk.ledger.now()
    assert.equal((await desk.ledger.pruneStep({ settledBefore: now, failedBefore: now }, 0)).deleted, 1)
    await desk.ledger.redo(dependent)
    assert.deepEqual(await drain(desk), [dependent])
  })

  test('a canceled job cannot be tried again while another holds its key', async (desk) => {
    const old = await desk.add({ key: 'a' })
    await desk.ledger.cancel(old)
    const fresh = await desk.add({ key: 'a' })
    await assert.rejects(desk.ledger.redo(old), new RegExp(`#${fresh}`))
    await desk.ledger.cancel(fresh)
    assert.equal(await desk.ledger.redo(old), 1)
  })

  test('a replaced job cannot be tried again behind the back of its stopping predecessor', async (desk) => {
    const running = await desk.claimed({ key: 'a' })
    const [fresh] = await desk.write({ jobs: [job({ key: 'a', onKeyTaken: 'replace' })] })
    await desk.ledger.cancel(fresh!.id)
    await desk.ledger.redo(fresh!.id)
    assert.equal(await desk.stage(fresh!.id), 'deps')
    await desk.settle(running, 'stop')
    assert.deepEqual(await drain(desk), [fresh!.id])
  })
}

/** Runs whatever is ready until nothing is; returns the order. */
async function drain(desk: Desk): Promise<number[]> {
  const order: number[] = []
  for (;;) {
    const claimed = await desk.claim()
    if (claimed.length === 0) return order
    order.push(...claimed.map((one) => one.id).sort((a, b) => a - b))
    await desk.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
  }
}

/** The statements that `fn` has the ledger's database run in transactions. */
async function statementsOf(desk: Desk, fn: () => Promise<unknown>): Promise<string[]> {
  const { driver } = desk.ledger
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
