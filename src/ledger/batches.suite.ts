/** The contract of jobs that are enqueued together: they end up as if each had come alone, in that order. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, EnqueueResult, NewJob, OnDepFailure } from './contract.ts'
import type { LedgerFixture, LedgerTest } from './ledger-fixture.suite.ts'
import type { Settling } from './states.ts'

/** The first three are taken: by a job that is pending, one that is claimed, one that has failed. */
const KEYS = ['pending', 'claimed', 'failed', 'free', 'also free'] as const
const RUNS = 40

/** `after`: places among the jobs that were there before. `afterWish`: among the wishes, of those before this one. */
type Wish = {
  key: string | null
  replace: boolean
  after: number[]
  afterWish: number[]
  onDepFailure: OnDepFailure
}

const ON_DEP_FAILURE = fc.constantFrom<OnDepFailure[]>('fail', 'cancel', 'run')
/** Not after the claimed one: who waits for a job and takes its key is another story. */
const WISH: fc.Arbitrary<Wish> = fc.record({
  key: fc.option(fc.constantFrom(...KEYS), { nil: null }),
  replace: fc.boolean(),
  after: fc.array(fc.constantFrom(0, 1, 3, 4), { maxLength: 2 }),
  afterWish: fc.constant([]),
  onDepFailure: ON_DEP_FAILURE,
})
/** What waits for others of the call comes after all that do not. */
const LATE_WISH: fc.Arbitrary<Wish> = fc.record({
  key: fc.constant(null),
  replace: fc.boolean(),
  after: fc.constant([]),
  afterWish: fc.array(fc.nat(9), { minLength: 1, maxLength: 3 }),
  onDepFailure: ON_DEP_FAILURE,
})
const WISHES: fc.Arbitrary<Wish[]> = fc
  .tuple(fc.array(WISH, { minLength: 1, maxLength: 8 }), fc.array(LATE_WISH, { maxLength: 1 }))
  .map(([first, late]) => [...first, ...late])

export function batchContract(test: LedgerTest): void {
  test('jobs of one call end up as if each had been enqueued alone', async (fixture) => {
    const names = (of: string): string[] => Array.from({ length: RUNS }, (_, n) => `${of} ${n}`)
    const made = await worlds(fixture, [...names('together'), ...names('alone')])
    let run = 0
    const property = fc.asyncProperty(WISHES, async (wishes) => {
      const [together, alone] = [made[run]!, made[RUNS + run]!]
      run += 1
      const results = await refusable(() => enqueueTogether(fixture, together, wishes))
      const expected = await refusable(() => enqueueAlone(fixture, alone, wishes))
      assert.equal(results === 'refused', expected === 'refused', 'refused together or alone')
      if (results === 'refused' || expected === 'refused') return
      const [seen, wanted] = await Promise.all([
        picture(fixture, together, results),
        picture(fixture, alone, expected),
      ])
      assert.deepEqual(seen, wanted)
    })
    await fc.assert(property, { numRuns: RUNS, seed: 11, endOnFailure: true })
    assert.equal(run, RUNS)
  })

  test('a key given many times in one call: the last replacement has it, the others never run', async (fixture) => {
    const jobs = Array.from({ length: 5 }, (_, n): NewJob => {
      return { kind: 'job', payload: `${n}`, key: 'a', onKeyTaken: n % 2 === 0 ? 'replace' : 'ignore' }
    })
    const added = await fixture.write({ jobs })
    assert.deepEqual(
      added.map((one) => one.outcome),
      ['added', 'ignored', 'replaced', 'ignored', 'replaced'],
    )
    assert.deepEqual(
      (await fixture.claim()).map((one) => one.payload),
      ['4'],
    )
  })

  test('one job after two thousand waits for each of them, and ends with the first that fails', async (fixture) => {
    const children = Array.from({ length: 2_000 }, (): NewJob => ({ kind: 'fetch', payload: '{}' }))
    const last: NewJob = { kind: 'last', payload: '{}', onDepFailure: 'fail' }
    for (const event of ['succeed', 'fail'] as const) {
      const added = await fixture.write({ jobs: children, followUp: last })
      const id = added.at(-1)!.id
      const claimed = await fixture.claim({ kinds: ['fetch'], n: 3_000 })
      assert.equal(claimed.length, children.length)
      const rest = claimed.slice(1).map((one) => ({ job: one, event: 'succeed' as const }))
      await fixture.cycle({ settle: rest })
      assert.equal(await fixture.stage(id), 'deps')
      await fixture.settle(claimed[0]!, event)
      assert.equal(await fixture.stage(id), event === 'succeed' ? 'ready' : 'failed')
    }
  })
}

type World = { kind: string; ids: number[] }

/** Jobs in every state that an enqueue can meet, of each kind. All at once: on a server each step is a round trip. */
async function worlds(fixture: LedgerFixture, kinds: readonly string[]): Promise<World[]> {
  const add = async (key: string | null): Promise<number[]> => {
    const added = await fixture.write({ jobs: kinds.map((kind) => ({ kind, payload: '{}', key })) })
    return added.map(({ id }) => id)
  }
  const claim = async (): Promise<ClaimedJob[]> => {
    const claimed = await fixture.claim({ kinds })
    assert.equal(claimed.length, kinds.length)
    return claimed
  }
  const settle = async (event: Settling): Promise<void> => {
    await fixture.cycle({ settle: (await claim()).map((job) => ({ job, event })) })
  }
  const failed = await add('failed')
  await settle('fail')
  const done = await add(null)
  await settle('succeed')
  const claimed = await add('claimed')
  await claim()
  const [pending, free] = [await add('pending'), await add(null)]
  const all = [failed, done, claimed, pending, free]
  return kinds.map((kind, at) => ({ kind, ids: all.map((ids) => ids[at]!) }))
}

function jobOf({ kind, ids }: World, wish: Wish, after: (number | string)[]): NewJob {
  const { key, replace, onDepFailure } = wish
  return {
    kind,
    payload: '{}',
    key,
    onKeyTaken: replace ? 'replace' : 'ignore',
    onDepFailure,
    after: [...wish.after.map((place) => ids[place]!), ...after],
  }
}

function enqueueTogether(
  fixture: LedgerFixture,
  into: World,
  wishes: readonly Wish[],
): Promise<EnqueueResult[]> {
  const jobs = wishes.map((wish, at) => ({
    ...jobOf(
      into,
      wish,
      wish.afterWish.filter((other) => other < at).map((other) => `wish ${other}`),
    ),
    ref: `wish ${at}`,
  }))
  return fixture.write({ jobs })
}

async function enqueueAlone(
  fixture: LedgerFixture,
  into: World,
  wishes: readonly Wish[],
): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = []
  for (const [at, wish] of wishes.entries()) {
    const after = wish.afterWish.filter((other) => other < at).map((other) => results[other]!.id)
    const [result] = await fixture.write({ jobs: [jobOf(into, wish, after)] })
    results.push(result!)
  }
  return results
}

async function refusable<T>(fn: () => Promise<T>): Promise<T | 'refused'> {
  try {
    return await fn()
  } catch (thrown) {
    if (thrown instanceof UsageError) return 'refused'
    throw thrown
  }
}

type Edge = { dep_id: number; job_id: number; on_failure: string; met: number }

/** Everything but the ids themselves: jobs and edges by their places. */
async function picture(
  fixture: LedgerFixture,
  { kind }: World,
  results: readonly EnqueueResult[],
): Promise<unknown> {
  const jobs = await fixture.sql<{ id: number }>(
    `SELECT id, key, state, wait, deps_left, cancel_requested, note, attempt FROM jobs WHERE kind = ? ORDER BY id`,
    [kind],
  )
  const place = new Map(jobs.map((job, at) => [job.id, at]))
  const edges = await fixture.sql<Edge>(
    `SELECT d.dep_id, d.job_id, d.on_failure, d.met FROM job_deps d JOIN jobs j ON j.id = d.job_id WHERE j.kind = ?`,
    [kind],
  )
  return {
    jobs: jobs.map(({ id: _, ...rest }) => ({ ...rest })),
    edges: edges
      .map(
        (edge) => `${place.get(edge.job_id)} after ${place.get(edge.dep_id)} ${edge.on_failure} ${edge.met}`,
      )
      .sort(),
    results: results.map(({ id, outcome }) => `${place.get(id)} ${outcome}`),
  }
}
