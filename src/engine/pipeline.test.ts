/**
 * How jobs flow through an engine that has many: two cycles at a time on PostgreSQL, so that this process prepares one
 * batch while the server writes the other, and claims that grow with the pace.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../scripts/test-database.ts'
import { FakeClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import type { ClaimedJob, CycleResult } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { Claiming } from './claiming.ts'
import { JOIN_MIN } from './committer.ts'
import type { Controls } from './controls.ts'
import { createEngine } from './engine.ts'
import type { PartialOutcome, RunContext } from './job-kind.ts'
import { defineJob } from './kinds.ts'
import { Window } from './window.ts'

const JOBS = 2_000
const PARTS = 1_500
/** Enough for a second cycle. */
const BURST = JOIN_MIN + 44
const NOTE = `INSERT INTO notes(part) VALUES (?)`
const noop = defineJob({ kind: 'test.noop', payload: z.object({ n: z.number() }), run: () => undefined })

type Seen = { settle: number; claimed: number; room: number; besideIt: number }

/** The cycles of a ledger from here on. */
function watchedCycles(ledger: Ledger): Seen[] {
  const seen: Seen[] = []
  let open = 0
  const cycle = ledger.cycle.bind(ledger)
  ledger.cycle = async (asked) => {
    const one = {
      settle: asked.settle?.length ?? 0,
      room: asked.claim?.room.interactive ?? 0,
      claimed: 0,
      besideIt: open,
    }
    seen.push(one)
    open += 1
    try {
      const result = await cycle(asked)
      one.claimed = result.claimed.length
      return result
    } finally {
      open -= 1
    }
  }
  return seen
}

/** A drain by an engine whose pace is known, and the cycles that it took. */
async function drainedCycles(pace: { perSecond: number; commitMs: number }): Promise<Seen[]> {
  const database = await freshDatabase()
  const ledger = await openLedger(database.url)
  const engine = await createEngine({ ledger, jobs: [noop], workers: 10 })
  await engine.enqueueMany(
    noop,
    Array.from({ length: JOBS }, (_, n) => ({ n })),
  )
  const seen = watchedCycles(ledger)
  engine.window.pace(pace)
  await engine.start()
  await engine.drained()
  await engine.stop()
  assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
  await ledger.close()
  await database.drop()
  assert.equal(
    seen.reduce((sum, { settle }) => sum + settle, 0),
    JOBS,
  )
  return seen
}

function noteOf(part: number): PartialOutcome {
  return { checkpoint: { part }, effects: async (tx) => void (await tx.run(NOTE, [part])) }
}

/**
 * A job whose first parts are held in their cycle until a second one, with the ends of BURST other jobs, is committed.
 * Returns the parts as they were written, the job's checkpoint, and how many outcomes the second cycle had.
 */
async function whileInFlight(
  run: (job: RunContext<unknown>, inFlight: Promise<void>) => Promise<void>,
): Promise<{ parts: number[]; checkpoint: unknown; besides: number[] }> {
  const database = await freshDatabase()
  const ledger = await openLedger(database.url)
  await ledger.migrateApp('test', [[`CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, part BIGINT NOT NULL)`]])
  const allBegun = Promise.withResolvers<void>()
  const inFlight = Promise.withResolvers<void>()
  const besideIt = Promise.withResolvers<void>()
  let begun = 0
  const beside = defineJob({
    kind: 'test.beside',
    payload: z.object({ n: z.number() }),
    run: async () => {
      begun += 1
      if (begun === BURST) allBegun.resolve()
      await inFlight.promise
    },
  })
  const parted = defineJob({
    kind: 'test.parted',
    payload: z.object({}),
    run: async (job) => {
      await allBegun.promise
      await run(job, inFlight.promise)
    },
  })
  const besides: number[] = []
  let isFirst = true
  const cycle = ledger.cycle.bind(ledger)
  ledger.cycle = async (asked) => {
    const ends = asked.settle?.filter(({ event }) => event === 'succeed').length ?? 0
    if (isFirst && asked.settle?.some(({ event }) => event === 'continue')) {
      isFirst = false
      inFlight.resolve()
      await besideIt.promise
    }
    const result = await cycle(asked)
    if (ends > 1) {
      besides.push(asked.settle!.length)
      besideIt.resolve()
    }
    return result
  }
  const engine = await createEngine({ ledger, jobs: [beside, parted], workers: 2 * BURST })
  const { id } = await engine.enqueue(parted, {})
  await engine.enqueueMany(
    beside,
    Array.from({ length: BURST }, (_, n) => ({ n })),
  )
  await engine.start()
  await engine.drained()
  await engine.stop()
  const notes = await ledger.driver.read((tx) =>
    tx.all<{ part: number }>(`SELECT part FROM notes ORDER BY id`),
  )
  const row = await ledger.driver.read((tx) =>
    tx.get<{ checkpoint: string }>(`SELECT checkpoint FROM jobs WHERE id = ?`, [id]),
  )
  await ledger.close()
  await database.drop()
  return { parts: notes.map(({ part }) => part), checkpoint: JSON.parse(row!.checkpoint), besides }
}

describe('cycles on PostgreSQL', () => {
  test('jobs that end together are committed by two cycles at once, half by each', async () => {
    const [first, second, third] = await drainedCycles({ perSecond: 30_000, commitMs: 5 })
    assert.deepEqual(first, { settle: 0, room: 512, claimed: 512, besideIt: 0 })
    assert.deepEqual([second?.settle, third?.settle], [256, 256])
    assert.equal(third?.besideIt, 1, 'the second half waited for the first')
  })

  test('parts of jobs are committed by one cycle, in their order, however many there are', async () => {
    const database = await freshDatabase()
    const ledger = await openLedger(database.url)
    const parted = defineJob({
      kind: 'test.parted',
      payload: z.object({ n: z.number() }),
      run: ({ commit }) => {
        for (let part = 0; part < PARTS; part++)
          void commit({ effects: async (tx) => void (await tx.run(NOTE, [part])) })
      },
    })
    await ledger.migrateApp('test', [[`CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, part BIGINT NOT NULL)`]])
    const engine = await createEngine({ ledger, jobs: [parted], workers: 10 })
    await engine.enqueue(parted, { n: 1 })
    const seen = watchedCycles(ledger)
    await engine.start()
    await engine.drained()
    await engine.stop()
    assert.deepEqual(
      seen.filter(({ settle }) => settle > 1).map(({ settle }) => settle),
      [PARTS],
    )
    const notes = await ledger.driver.read((tx) =>
      tx.all<{ part: number }>(`SELECT part FROM notes ORDER BY id`),
    )
    assert.deepEqual(
      notes.map(({ part }) => part),
      Array.from({ length: PARTS }, (_, part) => part),
    )
    await ledger.close()
    await database.drop()
  })

  test('parts that come while an earlier one of their job is in flight are written after it, and others beside it', async () => {
    const { parts, checkpoint, besides } = await whileInFlight(({ commit }, inFlight) => {
      for (let part = 0; part < BURST; part++) void commit(noteOf(part))
      return inFlight.then(() => {
        for (let part = BURST; part < 2 * BURST; part++) void commit(noteOf(part))
      })
    })
    assert.deepEqual(
      parts,
      Array.from({ length: 2 * BURST }, (_, part) => part),
    )
    assert.deepEqual(checkpoint, { part: 2 * BURST - 1 })
    assert.deepEqual(besides, [BURST], 'the ends of other jobs waited, or had parts among them')
  })

  test('a job that fails while its parts are in flight is tried again from the last of them', async () => {
    const { parts, checkpoint, besides } = await whileInFlight(async ({ commit, attempt }, inFlight) => {
      if (attempt > 1) return
      for (let part = 0; part < BURST; part++) commit(noteOf(part)).catch(() => {})
      await inFlight
      throw new TidemarkError('away for a moment', { kind: 'transient', retryAfterMs: 1 })
    })
    assert.deepEqual(
      parts,
      Array.from({ length: BURST }, (_, part) => part),
    )
    assert.deepEqual(checkpoint, { part: BURST - 1 })
    assert.deepEqual(besides, [BURST])
  })

  test('a claim takes half of what there is room for, and leaves the other half to the cycle beside it', async () => {
    const [first] = await drainedCycles({ perSecond: 60_000, commitMs: 5 })
    assert.deepEqual(first, { settle: 0, room: 600, claimed: 600, besideIt: 0 })
  })
})

describe('handlers that end where they began', () => {
  test('do not stand on each other: the hundredth has as much of the stack as the first', async () => {
    const depths: number[] = []
    const deep = defineJob({
      kind: 'test.deep',
      payload: z.object({ n: z.number() }),
      run: () => {
        depths.push(stackDepth())
        return undefined
      },
    })
    const engine = await createEngine({ ledger: 'sqlite::memory:', jobs: [deep], workers: 10 })
    await engine.enqueueMany(
      deep,
      Array.from({ length: 300 }, (_, n) => ({ n })),
    )
    await engine.start()
    await engine.drained()
    await engine.stop()
    assert.equal(depths.length, 300)
    assert.ok(Math.max(...depths) - Math.min(...depths) < 20, `${Math.max(...depths)} calls deep`)
  })
})

function stackDepth(): number {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = Number.POSITIVE_INFINITY
  const depth = new Error('here').stack!.split('\n').length
  Error.stackTraceLimit = stackTraceLimit
  return depth
}

describe('the pace of an engine that has just begun', () => {
  test('is that of its first commits: it does not take a dozen of them to claim more', async () => {
    const clock = new FakeClock()
    await clock.advance(3_600_000)
    const window = new Window({ workers: 10 })
    // Nothing is claimed here, so that nobody asks what is open.
    const controls = {} as Controls
    const claiming = new Claiming({ clock, window, controls, kinds: new Set(), cyclesMax: 2 })
    await clock.advance(25)
    claiming.learn(NOTHING, { settled: 16, ms: 25, claim: undefined })
    assert.equal(window.target, 160, 'what ten commits like the first would work off')
    await clock.advance(5)
    claiming.learn(NOTHING, { settled: 128, ms: 25, claim: undefined })
    assert.equal(window.target, 1_280, 'what ten commits like the last would work off')
  })

  test('is no higher while jobs are left to start, so that nothing is claimed that would wait', async () => {
    const clock = new FakeClock()
    const window = new Window({ workers: 10 })
    const controls = {} as Controls
    const claiming = new Claiming({ clock, window, controls, kinds: new Set(), cyclesMax: 2 })
    window.add([WAITING])
    await clock.advance(5)
    claiming.learn(NOTHING, { settled: 128, ms: 5, claim: undefined })
    assert.equal(window.target, 40)
  })
})

const WAITING: ClaimedJob = {
  id: 1,
  kind: 'test.noop',
  key: null,
  streamId: 0,
  segmentId: null,
  parentId: null,
  lane: 'bulk',
  priority: 0,
  payload: '{}',
  bytes: 2,
  size: null,
  items: 1,
  attempt: 1,
  failures: 0,
  checkpoint: null,
  badId: null,
  createdAt: 0,
}

const NOTHING: CycleResult = {
  settled: [],
  work: [],
  claimed: [],
  backlog: { interactive: false, bulk: false },
  becameReady: 0,
  nextDueAt: null,
  marks: [],
  toStop: [],
}
