/** The contract of the graph: who waits for whom, and what the end of a job does to those that wait. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, NewJob, OnDepFailure } from './contract.ts'
import { HOUR_MS, type LedgerFixture, type LedgerTest } from './ledger-fixture.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

/** Claims exactly the named jobs and settles them. */
async function finish(fixture: LedgerFixture, ids: readonly number[]): Promise<void> {
  const claimed = await fixture.claim()
  assert.deepEqual(claimed.map((one) => one.id).sort(byNumber), [...ids].sort(byNumber))
  await fixture.cycle({ settle: claimed.map((one) => ({ job: one, event: 'succeed' })) })
}

const byNumber = (a: number, b: number): number => a - b

async function ids(fixture: LedgerFixture, jobs: readonly NewJob[]): Promise<number[]> {
  return (await fixture.write({ jobs })).map((one) => one.id)
}

export function dependencyContract(test: LedgerTest): void {
  test('a diamond runs its top, then both sides, then its bottom', async (fixture) => {
    // Given in the wrong order on purpose.
    const [bottom, left, right, top] = await ids(fixture, [
      job({ ref: 'bottom', after: ['left', 'right'] }),
      job({ ref: 'left', after: ['top'] }),
      job({ ref: 'right', after: ['top'] }),
      job({ ref: 'top' }),
    ])
    await finish(fixture, [top!])
    await finish(fixture, [left!, right!])
    await finish(fixture, [bottom!])
  })

  test('sides of a diamond that settle in one cycle unblock its bottom once', async (fixture) => {
    const [left, right, bottom] = await ids(fixture, [
      job({ ref: 'l' }),
      job({ ref: 'r' }),
      job({ after: ['l', 'r'] }),
    ])
    const claimed = await fixture.claim()
    assert.equal(claimed.length, 2)
    const result = await fixture.cycle({
      settle: [
        { job: claimed.find((one) => one.id === left)!, event: 'succeed' },
        { job: claimed.find((one) => one.id === right)!, event: 'skip' },
      ],
      claim: fixture.claimRequest(),
    })
    assert.deepEqual(
      result.claimed.map((one) => one.id),
      [bottom],
      'claimed in the cycle that made it ready',
    )
  })

  test('a chain of a hundred runs link by link', async (fixture) => {
    const links = Array.from({ length: 100 }, (_, n) =>
      job({ ref: `${n}`, after: n === 0 ? [] : [`${n - 1}`], payload: `${n}` }),
    )
    await fixture.write({ jobs: links })
    let claimed = await fixture.claim()
    const order: string[] = []
    while (claimed.length > 0) {
      assert.equal(claimed.length, 1)
      order.push(claimed[0]!.payload)
      claimed = (
        await fixture.cycle({
          settle: [{ job: claimed[0]!, event: 'succeed' }],
          claim: fixture.claimRequest(),
        })
      ).claimed
    }
    assert.deepEqual(
      order,
      links.map((one) => one.payload),
    )
  })

  test('a failure goes down a chain of a hundred at once', async (fixture) => {
    const chain = await ids(
      fixture,
      Array.from({ length: 100 }, (_, n) => job({ ref: `${n}`, after: n === 0 ? [] : [`${n - 1}`] })),
    )
    const [first] = await fixture.claim()
    await fixture.settle(first!, 'fail')
    assert.deepEqual(new Set(await fixture.stages(...chain)), new Set(['failed']))
  })

  test('a circle of dependencies is refused, and nothing is written', async (fixture) => {
    const circle = [
      job({ ref: 'a', after: ['c'] }),
      job({ ref: 'b', after: ['a'] }),
      job({ ref: 'c', after: ['b'] }),
      job(),
    ]
    await assert.rejects(fixture.write({ jobs: circle }), { code: 'dependency-cycle' })
    await assert.rejects(fixture.write({ jobs: [job({ ref: 'a', after: ['a'] })] }), {
      code: 'dependency-cycle',
    })
    assert.equal(await fixture.count('jobs'), 0)
  })

  test('waiting for an unknown ref or an id that was never given is refused, and nothing is written', async (fixture) => {
    const known = await fixture.add()
    await assert.rejects(fixture.write({ jobs: [job(), job({ after: ['nobody'] })] }), UsageError)
    await assert.rejects(fixture.write({ jobs: [job(), job({ after: [known + 1_000_000] })] }), UsageError)
    await assert.rejects(
      fixture.write({ jobs: [job({ ref: 'a' }), job({ ref: 'a' }), job({ after: ['a'] })] }),
      UsageError,
      'a ref given twice',
    )
    assert.equal(await fixture.count('jobs'), 1)
    assert.equal(await fixture.count('job_deps'), 0)
  })

  test('refs are private to the work that gives them, also when several are written in one cycle', async (fixture) => {
    const { work } = await fixture.cycle({
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

  test('a dependency named twice counts once', async (fixture) => {
    const first = await fixture.add()
    const dependent = await fixture.add({ after: [first, first] })
    await finish(fixture, [first])
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('a job whose dependencies are settled still waits for its start time', async (fixture) => {
    const first = await fixture.add()
    const dependent = await fixture.add({ after: [first], runAt: fixture.ledger.now() + HOUR_MS })
    const [claimed] = await fixture.claim()
    const { nextDueAt } = await fixture.cycle({ settle: [{ job: claimed!, event: 'succeed' }] })
    assert.equal(nextDueAt, fixture.ledger.now() + HOUR_MS)
    assert.equal(await fixture.stage(dependent), 'time')
    fixture.clock.pass(HOUR_MS)
    await fixture.ledger.wakeDue()
    await finish(fixture, [dependent])
  })

  failures(test)
  pastDependencies(test)
  families(test)
}

function failures(test: LedgerTest): void {
  const FATES: Record<OnDepFailure, string> = { fail: 'failed', cancel: 'canceled', run: 'ready' }
  for (const [onDepFailure, fate] of Object.entries(FATES) as [OnDepFailure, string][]) {
    test(`when a dependency fails, a dependent that says ${onDepFailure} is ${fate}`, async (fixture) => {
      const first = await fixture.claimed()
      const dependent = await fixture.add({ after: [first.id], onDepFailure })
      await fixture.settle(first, 'fail')
      assert.equal(await fixture.stage(dependent), fate)
    })

    test(`when a dependency is canceled, a dependent that says ${onDepFailure} is ${fate}`, async (fixture) => {
      const [pending, running] = [
        await fixture.add({ kind: 'other' }),
        await fixture.claimed({}, { kinds: ['job'] }),
      ]
      const dependents = [
        await fixture.add({ after: [pending], onDepFailure }),
        await fixture.add({ after: [running.id], onDepFailure }),
      ]
      await fixture.ledger.cancel(pending)
      await fixture.ledger.cancel(running.id)
      assert.deepEqual(
        await fixture.stages(...dependents),
        [fate, 'deps'],
        'the running one has not stopped yet',
      )
      await fixture.settle(running, 'stop')
      assert.deepEqual(await fixture.stages(...dependents), [fate, fate])
    })

    test(`a job enqueued after one that has failed already, with ${onDepFailure}, is ${fate}`, async (fixture) => {
      const first = await fixture.claimed()
      await fixture.settle(first, 'fail')
      const dependent = await fixture.add({ after: [first.id], onDepFailure })
      assert.equal(await fixture.stage(dependent), fate)
    })
  }

  test('a job that says run goes on waiting for its other dependencies', async (fixture) => {
    const [good, bad] = [await fixture.add({ kind: 'other' }), await fixture.claimed({}, { kinds: ['job'] })]
    const dependent = await fixture.add({ after: [good, bad.id], onDepFailure: 'run' })
    await fixture.settle(bad, 'fail')
    assert.equal(await fixture.stage(dependent), 'deps')
    await finish(fixture, [good])
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('a dependency that is retried or postponed does not touch its dependents', async (fixture) => {
    const first = await fixture.claimed()
    const dependent = await fixture.add({ after: [first.id] })
    await fixture.settle(first, 'retry')
    const [again] = await fixture.claim()
    await fixture.settle(again!, 'postpone')
    assert.equal(await fixture.stage(dependent), 'deps')
  })

  test('a dependency that fails twice over, after a redo, fails its dependents again', async (fixture) => {
    const first = await fixture.claimed()
    const dependent = await fixture.add({ after: [first.id] })
    await fixture.settle(first, 'fail')
    assert.equal(await fixture.ledger.redo(first.id), 2)
    assert.deepEqual(await fixture.stages(first.id, dependent), ['ready', 'deps'])
    const [again] = await fixture.claim()
    await fixture.settle(again!, 'fail')
    assert.equal(await fixture.stage(dependent), 'failed')
  })
}

function pastDependencies(test: LedgerTest): void {
  test('a job enqueued after one that is done, skipped or pruned is ready', async (fixture) => {
    const done = await fixture.claimed()
    await fixture.settle(done, 'succeed')
    const skipped = await fixture.claimed()
    await fixture.settle(skipped, 'skip')
    const pruned = await fixture.claimed()
    await fixture.settle(pruned, 'succeed')
    fixture.clock.pass(1)
    const settledBefore = fixture.ledger.now()
    await fixture.ledger.pruneStep({ settledBefore, failedBefore: 0 }, pruned.id - 1)
    assert.equal(await fixture.ledger.job(pruned.id), undefined)
    const dependent = await fixture.add({ after: [done.id, skipped.id, pruned.id] })
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('a job enqueued after one that settles in the same cycle is ready', async (fixture) => {
    const first = await fixture.claimed()
    const { settled } = await fixture.cycle({
      settle: [{ job: first, event: 'succeed', work: { jobs: [job({ after: [first.id] })] } }],
    })
    assert.equal(settled[0]!.status, 'held')
    const [child] = settled[0]!.status === 'held' ? settled[0]!.jobs : []
    assert.equal(await fixture.stage(child!.id), 'ready')
  })
}

function families(test: LedgerTest): void {
  const children = async (fixture: LedgerFixture, parent: ClaimedJob, n: number): Promise<number[]> => {
    const result = await fixture.settle(parent, 'succeed', {
      work: {
        jobs: Array.from({ length: n }, () => job({ kind: 'fetch' })),
        followUp: job({ kind: 'last' }),
      },
    })
    assert.equal(result.status, 'held')
    return result.status === 'held' ? result.jobs.map((one) => one.id) : []
  }

  test('children know their parent, and `followUp` runs after the last of them', async (fixture) => {
    const parent = await fixture.claimed()
    const all = await children(fixture, parent, 3)
    const last = all.pop()!
    assert.equal((await fixture.row(last)).parent_id, parent.id)
    const claimed = await fixture.claim()
    assert.deepEqual(claimed.map((one) => one.id).sort(byNumber), all)
    assert.ok(claimed.every((one) => one.parentId === parent.id))
    await fixture.settle(claimed[0]!, 'succeed')
    await fixture.settle(claimed[1]!, 'skip')
    assert.equal(await fixture.stage(last), 'deps')
    await fixture.settle(claimed[2]!, 'succeed')
    assert.equal(await fixture.stage(last), 'ready')
    assert.deepEqual((await fixture.ledger.job(parent.id))!.children, { done: 2, skipped: 1, pending: 1 })
  })

  test('`followUp` without children runs at once', async (fixture) => {
    const [last] = await fixture.write({ jobs: [], followUp: job({ kind: 'last' }) })
    assert.equal(await fixture.stage(last!.id), 'ready')
  })

  test('`followUp` also waits for children that were there before, under their keys', async (fixture) => {
    const there = await fixture.claimed({ kind: 'fetch', key: 'x' })
    const written = await fixture.write({
      jobs: [job({ kind: 'fetch', key: 'x' })],
      followUp: job({ kind: 'last' }),
    })
    assert.equal(written[0]!.id, there.id)
    assert.equal(await fixture.stage(written[1]!.id), 'deps')
    await fixture.settle(there, 'succeed')
    assert.equal(await fixture.stage(written[1]!.id), 'ready')
  })

  test('whoever waits for a batch waits for both halves of its split', async (fixture) => {
    const batch = await fixture.claimed({ items: 4 })
    const dependent = await fixture.add({ kind: 'last', after: [batch.id] })
    const halves = [job({ kind: 'fetch', items: 2 }), job({ kind: 'fetch', items: 2 })]
    await fixture.settle(batch, 'skip', { splitInto: { halves, failures: 3 } })
    const parts = await fixture.claim()
    assert.deepEqual(
      parts.map((one) => [one.items, one.failures]),
      [
        [2, 3],
        [2, 3],
      ],
      'the budget spent is not given back',
    )
    await fixture.settle(parts[0]!, 'succeed')
    assert.equal(await fixture.stage(dependent), 'deps')
    await fixture.settle(parts[1]!, 'succeed')
    assert.equal(await fixture.stage(dependent), 'ready')
    assert.equal(await fixture.stage(batch.id), 'skipped')
  })

  test('whoever starts to wait for a batch that was split already waits for what is left of it', async (fixture) => {
    const batch = await fixture.claimed({ items: 4 })
    await fixture.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const [first, second] = await fixture.claim()
    await fixture.settle(first!, 'succeed')
    await fixture.settle(second!, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const dependent = await fixture.add({ kind: 'last', after: [batch.id, second!.id] })
    assert.equal((await fixture.row(dependent)).deps_left, 2)
    for (const quarter of await fixture.claim()) {
      assert.equal(await fixture.stage(dependent), 'deps')
      await fixture.settle(quarter, 'succeed')
    }
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('whoever starts to wait for a batch of which a half has failed fails too', async (fixture) => {
    const batch = await fixture.claimed()
    await fixture.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    await fixture.settle((await fixture.claim({ n: 1 }))[0]!, 'fail')
    assert.equal(await fixture.stage(await fixture.add({ kind: 'last', after: [batch.id] })), 'failed')
  })

  test('a half of a split that fails breaks those who waited for the batch', async (fixture) => {
    const batch = await fixture.claimed()
    const dependent = await fixture.add({ kind: 'last', after: [batch.id] })
    await fixture.settle(batch, 'skip', { splitInto: { halves: [job(), job()], failures: 0 } })
    const [half] = await fixture.claim({ n: 1 })
    await fixture.settle(half!, 'fail')
    assert.equal(await fixture.stage(dependent), 'failed')
  })
}
