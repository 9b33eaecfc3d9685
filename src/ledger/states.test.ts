import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, Row } from './contract.ts'
import { type Home, memoryHome, postgresHome } from './home.suite.ts'
import { type LedgerFixture, plain, withLedger } from './ledger-fixture.suite.ts'
import {
  JOB_EVENTS,
  JOB_STATES,
  JOB_TRANSITIONS,
  type JobEvent,
  type JobState,
  SEGMENT_EVENTS,
  SEGMENT_STATES,
  SEGMENT_TRANSITIONS,
  SETTLED,
  type SegmentEvent,
  type SegmentState,
  type Settling,
  STAGES,
  stageOf,
} from './states.ts'

/** A job that was really brought into its state, with the lease it has, had, or would have had. */
type Target = { id: number; lease: ClaimedJob; dependency?: ClaimedJob }

const DUE_MS = 1_000

/** How a job gets into each state; a pending one waits for what the event is about. */
const BRING: Record<JobState, (fixture: LedgerFixture, event: JobEvent) => Promise<Target>> = {
  pending: async (fixture, event) => {
    if (event === 'fall-due')
      return neverClaimed(fixture, await fixture.add({ runAt: fixture.ledger.now() + DUE_MS }))
    if (!isAboutDependency(event)) return neverClaimed(fixture, await fixture.add())
    const dependency = await fixture.claimed({ kind: 'fetch' })
    const onDepFailure = event === 'cancel-dep' ? 'cancel' : 'fail'
    const id = await fixture.add({ after: [dependency.id], onDepFailure })
    return { ...neverClaimed(fixture, id), dependency }
  },
  claimed: async (fixture) => held(await fixture.claimed()),
  done: (fixture) => settled(fixture, 'succeed'),
  failed: (fixture) => settled(fixture, 'fail'),
  canceled: (fixture) => settled(fixture, 'stop'),
  skipped: (fixture) => settled(fixture, 'skip'),
}

const held = (lease: ClaimedJob): Target => ({ id: lease.id, lease })

async function settled(fixture: LedgerFixture, event: Settling): Promise<Target> {
  const lease = await fixture.claimed()
  assert.equal((await fixture.settle(lease, event)).status, 'held')
  return held(lease)
}

function neverClaimed(fixture: LedgerFixture, id: number): Target {
  const lease = {
    id,
    kind: 'job',
    key: null,
    streamId: 0,
    segmentId: null,
    parentId: null,
    lane: 'interactive' as const,
    priority: 0,
    payload: '{}',
    bytes: 2,
    size: null,
    items: 1,
    attempt: 0,
    failures: 0,
    checkpoint: null,
    badId: null,
  }
  return held({ ...lease, createdAt: fixture.ledger.now() })
}

function isAboutDependency(event: JobEvent): boolean {
  return event === 'unblock' || event === 'fail-dep' || event === 'cancel-dep'
}

/** What only a fault could bring about: a job beyond pending that the event still reaches. */
async function expose(fixture: LedgerFixture, target: Target, event: JobEvent): Promise<void> {
  if (event === 'fall-due') {
    await fixture.force(`UPDATE jobs SET run_at = ? WHERE id = ?`, [fixture.ledger.now() + DUE_MS, target.id])
  }
  if (!isAboutDependency(event)) return
  target.dependency = await fixture.claimed({ kind: 'fetch' })
  const onFailure = event === 'cancel-dep' ? 'cancel' : 'fail'
  await fixture.force(`INSERT INTO job_deps(dep_id, job_id, on_failure) VALUES (?, ?, ?)`, [
    target.dependency.id,
    target.id,
    onFailure,
  ])
}

type Apply = (fixture: LedgerFixture, target: Target) => Promise<'taken' | 'refused' | undefined>

const report =
  (event: Settling): Apply =>
  async (fixture, { lease }) =>
    (await fixture.settle(lease, event, { checkpoint: '{}' })).status === 'held' ? 'taken' : 'refused'

/** The compiler completes this: an event without a way to bring it about does not compile. */
const APPLY: Record<JobEvent, Apply> = {
  unblock: async (fixture, { dependency }) => void (await fixture.settle(dependency!, 'succeed')),
  'fall-due': async (fixture) => {
    fixture.clock.pass(DUE_MS)
    await fixture.ledger.wakeDue()
    return undefined
  },
  claim: async (fixture, { id }) =>
    (await fixture.claim()).some((claimed) => claimed.id === id) ? 'taken' : 'refused',
  continue: report('continue'),
  succeed: report('succeed'),
  skip: report('skip'),
  retry: report('retry'),
  postpone: report('postpone'),
  fail: report('fail'),
  stop: report('stop'),
  cancel: (fixture, { id }) =>
    unlessRefused(fixture.ledger.cancel(id).then((result) => result.outcome !== 'already')),
  redo: (fixture, { id }) => unlessRefused(fixture.ledger.redo(id).then(() => true)),
  reclaim: async (fixture) => void (await fixture.ledger.reclaim((worker) => worker.id === fixture.owner)),
  'fail-dep': async (fixture, { dependency }) => void (await fixture.settle(dependency!, 'fail')),
  'cancel-dep': async (fixture, { dependency }) => void (await fixture.settle(dependency!, 'fail')),
}

async function unlessRefused(attempt: Promise<boolean>): Promise<'taken' | 'refused'> {
  try {
    return (await attempt) ? 'taken' : 'refused'
  } catch (thrown) {
    assert.ok(thrown instanceof UsageError, String(thrown))
    return 'refused'
  }
}

async function rawJob(fixture: LedgerFixture, id: number): Promise<Row> {
  return plain((await fixture.sql(`SELECT * FROM jobs WHERE id = ?`, [id]))[0]!)
}

function jobCells(home: Home): void {
  const ledgerTest = withLedger(home)
  for (const state of JOB_STATES) {
    for (const event of JOB_EVENTS) {
      const expected = JOB_TRANSITIONS[state][event]
      ledgerTest(`job: ${state} + ${event} → ${expected}`, async (fixture) => {
        const target = await BRING[state](fixture, event)
        if (state !== 'pending') await expose(fixture, target, event)
        const before = await rawJob(fixture, target.id)
        assert.equal(before.state, state)
        const answer = await APPLY[event](fixture, target)
        const after = await rawJob(fixture, target.id)
        if (expected === 'refused') assert.deepEqual(after, before)
        else {
          assert.equal(after.state, expected)
          assert.notDeepEqual(after, before, 'the event left no trace')
        }
        if (answer) assert.equal(answer, expected === 'refused' ? 'refused' : 'taken')
      })
    }
  }
}

/** A segment of two items, one of them bad, that was really brought into its state. */
type Segment = { id: number; streamId: number; open?: ClaimedJob }

async function bringSegment(fixture: LedgerFixture, state: SegmentState): Promise<Segment> {
  const streamId = await fixture.stream()
  const id = await fixture.segment(streamId, 0, 10)
  const batch = await fixture.claimed({ streamId, segment: id })
  const bad = [{ item: 'x', reason: 'malformed', errorKind: 'permanent' as const, payload: '{}' }]
  await fixture.settle(batch, 'succeed', { bad, work: { counts: [{ segment: id, listed: 2 }] } })
  if (state === 'settled') {
    await fixture.write({ counts: [{ segment: id, stored: 1, seal: true }] })
    return { id, streamId }
  }
  const open = await fixture.claimed({ streamId, segment: id })
  if (state === 'sealed') await fixture.write({ counts: [{ segment: id, seal: true }] })
  return { id, streamId, open }
}

const APPLY_TO_SEGMENT: Record<SegmentEvent, (fixture: LedgerFixture, segment: Segment) => Promise<unknown>> =
  {
    list: (fixture, { id }) => fixture.write({ counts: [{ segment: id, listed: 1 }] }),
    count: (fixture, { id }) => fixture.write({ counts: [{ segment: id, gone: 1 }] }),
    'add-job': (fixture, { id, streamId }) =>
      fixture.write({ jobs: [{ kind: 'job', payload: '{}', streamId, segment: id }] }),
    split: (fixture, { id }) => fixture.write({ splits: [{ segmentId: id, at: 5 }] }),
    seal: (fixture, { id }) => fixture.write({ counts: [{ segment: id, seal: true }] }),
    // Not asked for but due: the last job ends and every item is accounted for.
    settle: async (fixture, { id, open }) => {
      if (!open) return fixture.write({ counts: [{ segment: id }] })
      return fixture.settle(open, 'succeed', { work: { counts: [{ segment: id, stored: 1 }] } })
    },
    mend: async (fixture) => {
      assert.equal(await fixture.ledger.retryBad(), 1)
      const [retry] = await fixture.claim()
      return fixture.settle(retry!, 'succeed')
    },
  }

function segmentCells(home: Home): void {
  const ledgerTest = withLedger(home)
  for (const state of SEGMENT_STATES) {
    for (const event of SEGMENT_EVENTS) {
      const expected = SEGMENT_TRANSITIONS[state][event]
      ledgerTest(`segment: ${state} + ${event} → ${expected}`, async (fixture) => {
        const segment = await bringSegment(fixture, state)
        const before = plain(await fixture.segmentRow(segment.id))
        assert.equal(before.state, state)
        fixture.clock.pass(1)
        const attempt = APPLY_TO_SEGMENT[event](fixture, segment)
        // Settling is nobody's request: where it is not due, the counts change and the state does not.
        if (expected === 'refused' && event !== 'settle')
          await assert.rejects(attempt, { code: 'segment-refused' })
        else await attempt
        const after = plain(await fixture.segmentRow(segment.id))
        assert.equal(after.state, expected === 'refused' ? state : expected)
        if (expected === 'refused' && (event !== 'settle' || state === 'settled'))
          assert.deepEqual(after, before)
        if (expected !== 'refused') assert.notDeepEqual(after, before)
        assert.equal((await fixture.mark(segment.streamId)).mark_at, after.state === 'settled' ? 10 : 0)
      })
    }
  }
}

for (const home of [memoryHome(), postgresHome()]) {
  describe(`every state × every event on ${home.name}`, () => {
    after(() => home.remove())
    jobCells(home)
    segmentCells(home)
  })
}

describe('the tables of states', () => {
  test('nothing leaves a job that is done or skipped', () => {
    for (const state of ['done', 'skipped'] as const) {
      assert.deepEqual(new Set(Object.values(JOB_TRANSITIONS[state])), new Set(['refused']))
    }
  })

  test('only a claimed job takes what a worker reports', () => {
    const reports = ['continue', 'succeed', 'skip', 'retry', 'postpone', 'fail', 'stop', 'reclaim'] as const
    for (const state of JOB_STATES) {
      for (const event of reports) {
        assert.equal(JOB_TRANSITIONS[state][event] === 'refused', state !== 'claimed', `${state} + ${event}`)
      }
    }
  })

  test('a failed job is not settled: it may be tried again', () => {
    assert.deepEqual(
      JOB_STATES.filter((state) => SETTLED.has(state)),
      ['done', 'canceled', 'skipped'],
    )
  })

  test('every state has its stage, and pending is told apart by what it waits for', () => {
    const stages = JOB_STATES.map((state) => stageOf(state, null))
    assert.deepEqual(stages, ['ready', 'claimed', 'done', 'failed', 'canceled', 'skipped'])
    assert.deepEqual([stageOf('pending', 'deps'), stageOf('pending', 'time')], ['deps', 'time'])
    assert.deepEqual([...new Set([...stages, 'deps', 'time'])].sort(), [...STAGES].sort())
  })
})
