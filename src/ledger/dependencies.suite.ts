/** The contract of the graph: who waits for whom, and what the end of a job does to those that wait. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, NewJob, OnDepFailure } from './contract.ts'
import { type Desk, type DeskTest, HOUR_MS } from './desk.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

/** Claims exactly the named jobs and settles them. */
async function finish(desk: Desk, ids: readonly number[]): Promise<void> {
  const claimed = await desk.claim()
  assert.deepEqual(claimed.map((one) => one.id).sort(byNumber), [...ids].sort(byNumber))
  await desk.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
}

const byNumber = (a: number, b: number): number => a - b

async function ids(desk: Desk, jobs: readonly NewJob[]): Promise<number[]> {
  return (await desk.write({ jobs })).map((one) => one.id)
}

export function dependencyContract(test: DeskTest): void {
  test('a diamond runs its top, then both sides, then its bottom', async (desk) => {
    // Given in the wrong order on purpose.
    const [bottom, left, right, top] = await ids(desk, [
      job({ ref: 'bottom', after: ['left', 'right'] }),
      job({ ref: 'left', after: ['top'] }),
      job({ ref: 'right', after: ['top'] }),
      job({ ref: 'top' }),
    ])
    await finish(desk, [top!])
    await finish(desk, [left!, right!])
    await finish(desk, [bottom!])
  })

  test('sides of a diamond that settle in one cycle unblock its bottom once', async (desk) => {
    const [left, right, bottom] = await ids(desk, [
      job({ ref: 'l' }),
      job({ ref: 'r' }),
      job({ after: ['l', 'r'] }),
    ])
    const claimed = await desk.claim()
    assert.equal(claimed.length, 2)
    const result = await desk.cycle({
      settle: [
        { job: claimed.find((one) => one.id === left)!, event: 'succeed' },
        { job: claimed.find((one) => one.id === right)!, event: 'skip' },
      ],
      claim: desk.claimRequest(),
    })
    assert.deepEqual(
      result.claimed.map((one) => one.id),
      [bottom],
      'claimed in the cycle that made it ready',
    )
  })

  test('a chain of a hundred runs link by link', async (desk) => {
    const links = Array.from({ length: 100 }, (_, n) =>
      job({ ref: `${n}`, after: n === 0 ? [] : [`${n - 1}`], payload: `${n}` }),
    )
    await desk.write({ jobs: links })
    let claimed = await desk.claim()
    const order: string[] = []
    while (claimed.length > 0) {
      assert.equal(claimed.length, 1)
      order.push(claimed[0]!.payload)
      claimed = (
        await desk.cycle({ settle: [{ job: claimed[0]!, event: 'succeed' }], claim: desk.claimRequest() })
      ).claimed
    }
    assert.deepEqual(
      order,
      links.map((one) => one.payload),
    )
  })

  test('a failure goes down a chain of a hundred at once', async (desk) => {
    const chain = await ids(
      desk,
      Array.from({ length: 100 }, (_, n) => job({ ref: `${n}`, after: n === 0 ? [] : [`${n - 1}`] })),
    )
    const [first] = await desk.claim()
    await desk.settle(first!, 'fail')
    assert.deepEqual(new Set(await desk.stages(...chain)), new Set(['failed']))
  })

  test('a circle of dependencies is refused, and nothing is written', async (desk) => {
    const circle = [
      job({ ref: 'a', after: ['c'] }),
      job({ ref: 'b', after: ['a'] }),
      job({ ref: 'c', after: ['b'] }),
      job(),
    ]
    await assert.rejects(desk.write({ jobs: circle }), { code: 'dependency-cycle' })
    await assert.rejects(desk.write({ jobs: [job({ ref: 'a', after: ['a'] })] }), {
      code: 'dependency-cycle',
    })
    assert.equal(await desk.count('jobs'), 0)
  })

  test('waiting for an unknown ref or an id that was never given is refused, and nothing is written', async (desk) => {
    const known = await desk.add()
    await assert.rejects(desk.write({ jobs: [job(), job({ after: ['nobody'] })] }), UsageError)
    await assert.rejects(desk.write({ jobs: [job(), job({ after: [known + 1_000_000] })] }), UsageError)
    await assert.rejects(
      desk.write({ jobs: [job({ ref: 'a' }), job({ ref: 'a' }), job({ after: ['a'] })] }),
      UsageError,
      'a ref given twice',
    )
    assert.equal(await desk.count('jobs'), 1)
    assert.equal(await desk.count('job_deps'), 0)
  })

  test('refs are private to the work that gives them, also when several are written in one cycle', async (desk) => {
    const { work } = await desk.cycle({
      work: [
        { jobs: [job({ ref: 'a' })] },
        { jobs: [job({ after: ['a'] })] },
        { jobs: [job({ ref: 'a' }), job({ after: ['a'] })] },
      ],
    })
    assert.deepEqual(
      work.map((one) => one.status),
      ['held', 'error', 'held'],
    )
  })

  test('a dependency named twice counts once', async (desk) => {
    const first = await desk.add()
    const dependent = await desk.add({ after: [first, first] })
    await finish(desk, [first])
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('a job whose dependencies are settled still waits for its start time', async (desk) => {
    const first = await desk.add()
    const dependent = await desk.add({ after: [first], runAt: desk.ledger.now() + HOUR_MS })
    const [claimed] = await desk.claim()
    const { nextDueAt } = await desk.cycle({ settle: [{ job: claimed!, event: 'succeed' }] })
    assert.equal(nextDueAt, desk.ledger.now() + HOUR_MS)
    assert.equal(await desk.stage(dependent), 'time')
    desk.clock.pass(HOUR_MS)
    await desk.ledger.wakeDue()
    await finish(desk, [dependent])
  })

  failures(test)
  pastDependencies(test)
  families(test)
}

function failures(test: DeskTest): void {
  const FATES: Record<OnDepFailure, string> = { fail: 'failed', cancel: 'canceled', run: 'ready' }
  for (const [onDepFailure, fate] of Object.entries(FATES) as [OnDepFailure, string][]) {
    test(`when a dependency fails, a dependent that says ${onDepFailure} is ${fate}`, async (desk) => {
      const first = await desk.claimed()
      const dependent = await desk.add({ after: [first.id], onDepFailure })
      await desk.settle(first, 'fail')
      assert.equal(await desk.stage(dependent), fate)
    })

    test(`when a dependency is canceled, a dependent that says ${onDepFailure} is ${fate}`, async (desk) => {
      const [pending, running] = [
        await desk.add({ kind: 'other' }),
        await desk.claimed({}, { kinds: ['job'] }),
      ]
      const dependents = [
        await desk.add({ after: [pending], onDepFailure }),
        await desk.add({ after: [running.id], onDepFailure }),
      ]
      await desk.ledger.cancel(pending)
      await desk.ledger.cancel(running.id)
      assert.deepEqual(
        await desk.stages(...dependents),
        [fate, 'deps'],
        'the running one has not stopped yet',
      )
      await desk.settle(running, 'stop')
      assert.deepEqual(await desk.stages(...dependents), [fate, fate])
    })

    test(`a job enqueued after one that has failed already, with ${onDepFailure}, is ${fate}`, async (desk) => {
      const first = await desk.claimed()
      await desk.settle(first, 'fail')
      const dependent = await desk.add({ after: [first.id], onDepFailure })
      assert.equal(await desk.stage(dependent), fate)
    })
  }

  test('a job that says run goes on waiting for its other dependencies', async (desk) => {
    const [good, bad] = [await desk.add({ kind: 'other' }), await desk.claimed({}, { kinds: ['job'] })]
    const dependent = await desk.add({ after: [good, bad.id], onDepFailure: 'run' })
    await desk.settle(bad, 'fail')
    assert.equal(await desk.stage(dependent), 'deps')
    await finish(desk, [good])
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('a dependency that is retried or postponed does not touch its dependents', async (desk) => {
    const first = await desk.claimed()
    const dependent = await desk.add({ after: [first.id] })
    await desk.settle(first, 'retry')
    const [again] = await desk.claim()
    await desk.settle(again!, 'postpone')
    assert.equal(await desk.stage(dependent), 'deps')
  })

  test('a dependency that fails twice over, after a redo, fails its dependents again', async (desk) => {
    const first = await desk.claimed()
    const dependent = await desk.add({ after: [first.id] })
    await desk.settle(first, 'fail')
    assert.equal(await desk.ledger.redo(first.id), 2)
    assert.deepEqual(await desk.stages(first.id, dependent), ['ready', 'deps'])
    const [again] = await desk.claim()
    await desk.settle(again!, 'fail')
    assert.equal(await desk.stage(dependent), 'failed')
  })
}

function pastDependencies(test: DeskTest): void {
  test('a job enqueued after one that is done, skipped or pruned is ready', async (desk) => {
    const done = await desk.claimed()
    await desk.settle(done, 'succeed')
    const skipped = await desk.claimed()
    await desk.settle(skipped, 'skip')
    const pruned = await desk.claimed()
    await desk.settle(pruned, 'succeed')
    desk.clock.pass(1)
    const settledBefore = desk.ledger.now()
    await desk.ledger.pruneStep({ settledBefore, failedBefore: 0 }, pruned.id - 1)
    assert.equal(await desk.ledger.job(pruned.id), undefined)
    const dependent = await desk.add({ after: [done.id, skipped.id, pruned.id] })
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('a job enqueued after one that settles in the same cycle is ready', async (desk) => {
    const first = await desk.claimed()
    const { settled } = await desk.cycle({
      settle: [{ job: first, event: 'succeed', work: { jobs: [job({ after: [first.id] })] } }],
    })
    assert.equal(settled[0]!.status, 'held')
    const [child] = settled[0]!.status === 'held' ? settled[0]!.jobs : []
    assert.equal(await desk.stage(child!.id), 'ready')
  })
}

function families(test: DeskTest): void {
  const children = async (desk: Desk, parent: ClaimedJob, n: number): Promise<number[]> => {
    const result = await desk.settle(parent, 'succeed', {
      work: {
        jobs: Array.from({ length: n }, () => job({ kind: 'fetch' })),
        followUp: job({ kind: 'last' }),
      },
    })
    assert.equal(result.status, 'held')
    return result.status === 'held' ? result.jobs.map((one) => one.id) : []
  }

  test('children know their parent, and `followUp` runs after the last of them', async (desk) => {
    const parent = await desk.claimed()
    const all = await children(desk, parent, 3)
    const last = all.pop()!
    assert.equal((await desk.row(last)).parent_id, parent.id)
    const claimed = await desk.claim()
    assert.deepEqual(claimed.map((one) => one.id).sort(byNumber), all)
    assert.ok(claimed.every((one) => one.parentId === parent.id))
    await desk.settle(claimed[0]!, 'succeed')
    await desk.settle(claimed[1]!, 'skip')
    assert.equal(await desk.stage(last), 'deps')
    await desk.settle(claimed[2]!, 'succeed')
    assert.equal(await desk.stage(last), 'ready')
    assert.deepEqual((await desk.ledger.job(parent.id))!.children, { done: 2, skipped: 1, pending: 1 })
  })

  test('`followUp` without children runs at once', async (desk) => {
    const [last] = await desk.write({ jobs: [], followUp: job({ kind: 'last' }) })
    assert.equal(await desk.stage(last!.id), 'ready')
  })

  test('`followUp` also waits for children that were there before, under their keys', async (desk) => {
    const there = await desk.claimed({ kind: 'fetch', key: 'x' })
    const written = await desk.write({
      jobs: [job({ kind: 'fetch', key: 'x' })],
      followUp: job({ kind: 'last' }),
    })
    assert.equal(written[0]!.id, there.id)
    assert.equal(await desk.stage(written[1]!.id), 'deps')
    await desk.settle(there, 'succeed')
    assert.equal(await desk.stage(written[1]!.id), 'ready')
  })

  test('whoever waits for a batch waits for both halves of its split', async (desk) => {
    const batch = await desk.claimed({ items: 4 })
    const dependent = await desk.add({ kind: 'last', after: [batch.id] })
    const halves = [job({ kind: 'fetch', items: 2 }), job({ kind: 'fetch', items: 2 })]
    await desk.settle(batch, 'skip', { splitInto: { halves, failures: 3 } })
    const parts = await desk.claim()
    assert.deepEqual(
      parts.map((one) => [one.items, one.failures]),
      [
        [2, 3],
        [2, 3],
      ],
      'the budget spent is not given back',
    )
    await desk.settle(parts[0]!, 'succeed')
    assert.equal(await desk.stage(dependent), 'deps')
    await desk.settle(parts[1]!, 'succeed')
    assert.equal(await desk.stage(dependent), 'ready')
    assert.equal(await desk.stage(batch.id), 'skipped')
  })

  test('whoever starts to wait for a batch that was split already waits for what is left of it', async (desk) => {
    const batch = await desk.claimed({ items: 4 })
    await desk.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const [first, second] = await desk.claim()
    await desk.settle(first!, 'succeed')
    await desk.settle(second!, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const dependent = await desk.add({ kind: 'last', after: [batch.id, second!.id] })
    assert.equal((await desk.row(dependent)).deps_left, 2)
    for (const quarter of await desk.claim()) {
      assert.equal(await desk.stage(dependent), 'deps')
      await desk.settle(quarter, 'succeed')
    }
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('whoever starts to wait for a batch of which a half has failed fails too', async (desk) => {
    const batch = await desk.claimed()
    await desk.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    await desk.settle((await desk.claim({ n: 1 }))[0]!, 'fail')
    assert.equal(await desk.stage(await desk.add({ kind: 'last', after: [batch.id] })), 'failed')
  })

  test('a half of a split that fails breaks those who waited for the batch', async (desk) => {
    const batch = await desk.claimed()
    const dependent = await desk.add({ kind: 'last', after: [batch.id] })
    await desk.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const [half] = await desk.claim({ n: 1 })
    await desk.settle(half!, 'fail')
    assert.equal(await desk.stage(dependent), 'failed')
  })
}
