import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JobRow } from '../../ledger/contract.ts'
import type { DependencyRow, JobDetail } from '../../ledger/queries.ts'
import type { ListedEngine } from './engines.ts'
import { type Explaining, explainJob } from './job-explanation.ts'

const NOW = Date.UTC(2026, 5, 1, 12, 0, 0)

const job: JobRow = {
  id: 42,
  kind: 'mail.fetch',
  key: null,
  stream: null,
  segment_id: null,
  parent_id: null,
  lane: 'bulk',
  priority: 0,
  state: 'pending',
  wait: null,
  run_at: null,
  deps_left: 0,
  payload: '{}',
  size: null,
  items: 1,
  attempt: 0,
  failures: 0,
  owner: null,
  cancel_requested: 0,
  checkpoint: null,
  progress: null,
  error: null,
  note: null,
  note_code: null,
  created_at: NOW - 60_000,
  claimed_at: null,
  settled_at: null,
}

const engine: ListedEngine = {
  id: 3,
  host: 'anna/boot/1',
  pid: 77,
  pidStart: '1',
  pid_start: '1',
  name: 'tidemark',
  state: 'live',
  started_at: NOW - 3_600_000,
  heartbeat_at: NOW - 1_000,
  lease_until: NOW + 20_000,
  liveness: 'live',
}

function explain(change: {
  job?: Partial<JobRow>
  detail?: Partial<JobDetail>
  engines?: ListedEngine[]
  reader?: Explaining['reader']
}): string {
  const detail: JobDetail = {
    job: { ...job, ...change.job },
    waitsFor: [],
    neededBy: [],
    children: {},
    errors: [],
    owner: null,
    pausedBy: [],
    ...change.detail,
  }
  const input: Explaining = {
    detail,
    engines: change.engines ?? [engine],
    now: NOW,
    ...(change.reader ? { reader: change.reader } : {}),
  }
  return explainJob(input).join('\n')
}

const NOTHING = { wait: null, error: null, settled_at: null }

function dependency(id: number, change: Partial<DependencyRow> = {}): DependencyRow {
  return { id, kind: 'mail.list', state: 'claimed', ...NOTHING, on_failure: 'fail', met: 0, ...change }
}

describe('what a job waits for', () => {
  const waiting = { wait: 'deps' as const, deps_left: 1 }

  test('many dependencies are counted, the first ones named, the met ones left out', () => {
    const waitsFor = [dependency(9, { met: 1 }), ...[10, 11, 12, 13, 14].map((id) => dependency(id))]
    const text = explain({ job: { wait: 'deps', deps_left: 5 }, detail: { waitsFor } })
    assert.match(
      text,
      /^It waits for job #10 \(mail\.list, claimed\), job #11 .*, job #12 \(mail\.list, claimed\) and 2 more\.$/m,
    )
    assert.doesNotMatch(text, /#9/)
  })

  test('what the failure of a dependency would do is said', () => {
    const one = (on_failure: string): string =>
      explain({ job: waiting, detail: { waitsFor: [dependency(10, { on_failure })] } })
    assert.match(one('fail'), /If that one fails, this job fails too\./)
    assert.match(one('cancel'), /If that one fails, this job is canceled too\./)
    assert.match(one('run'), /If that one fails, this job runs anyway\./)
  })

  test('a dependency that failed has to be tried again itself', () => {
    const text = explain({ job: waiting, detail: { waitsFor: [dependency(10, { state: 'failed' })] } })
    assert.match(text, /Job #10 failed\. It comes back when job #10 is tried again: tidemark jobs retry 10/)
  })

  test('a dependency that was pruned never comes', () => {
    const text = explain({
      job: waiting,
      detail: { waitsFor: [dependency(10, { kind: null, state: null })] },
    })
    assert.match(text, /It waits for job #10 \(pruned\)\.\nWhat it waits for is no longer in the ledger/)
  })

  test('a start time that has passed needs an engine', () => {
    const text = explain({ job: { wait: 'time', run_at: NOW - 5_000 }, engines: [] })
    assert.match(
      text,
      /It was to start at .* \(5 s ago\), and starts when an engine looks\.\nNo engine is running\./,
    )
  })

  test('since when a job is ready is said only where it is recorded', () => {
    assert.match(
      explain({ job: { created_at: NOW - 180_000 } }),
      /It has been ready since .* \(3 min ago\)\./,
    )
    const waitsFor = [dependency(9, { met: 1, state: 'done', settled_at: NOW - 60_000 })]
    assert.match(explain({ detail: { waitsFor } }), /It has been ready since .* \(1 min ago\)\./)
    assert.match(explain({ job: { attempt: 1 } }), /It is ready; since when is not recorded/)
  })

  test('every pause is named, with how to end it', () => {
    const pausedBy = [
      { scope: 'all', target: '', code: 'by-hand', reason: 'night' },
      { scope: 'stream', target: "ann's", code: 'sign-in', reason: 'sign-in needed.' },
    ]
    const text = explain({ detail: { pausedBy } })
    assert.match(text, /Everything is paused: night\. Go on with: tidemark resume --all/)
    assert.match(
      text,
      /Its stream ann's is paused: sign-in needed\. Go on with: tidemark resume --stream 'ann'\\''s'/,
    )
    assert.doesNotMatch(text, /takes the job/)
  })
})

describe('who holds a job', () => {
  const owner = {
    id: 3,
    host: 'anna/boot/1',
    pid: 77,
    name: 'tidemark',
    state: 'live',
    lease_until: NOW + 20_000,
  }
  const claimed = { state: 'claimed' as const, owner: 3, claimed_at: NOW - 30_000, attempt: 1 }

  test('a live worker is named with its lease', () => {
    const text = explain({ job: claimed, detail: { owner } })
    assert.match(
      text,
      /^It is held by worker #3 \(tidemark on anna, pid 77\) since .* \(30 s ago\), until .* \(in 20 s\) unless/,
    )
  })

  test('a worker whose lease ran out has been silent', () => {
    const silent = { ...engine, liveness: 'silent' as const }
    const text = explain({
      job: claimed,
      detail: { owner: { ...owner, lease_until: NOW - 5_000 } },
      engines: [silent],
    })
    assert.match(text, /which has been silent; its lease ran out at .* \(5 s ago\)\.\nThe next engine/)
    assert.match(text, /No engine is running\./)
  })

  test('a worker that nobody knows any more is told as such', () => {
    assert.match(explain({ job: claimed }), /Worker #3 has held it since .*, but nothing else is known/)
  })
})

describe('what failed before', () => {
  const errors = [
    { attempt: 2, at: NOW - 1_000, kind: 'transient', code: null, message: 'connection reset.' },
  ]

  test('failures are counted against the budget, with the last error', () => {
    const text = explain({
      job: { wait: 'time', run_at: NOW + 4_000, attempt: 2, failures: 2, error: '{}' },
      detail: { errors },
    })
    assert.match(text, /It starts at .* \(in 4 s\), after an error\./)
    assert.match(text, /It failed 2 of 5 times \(5 unless its kind says otherwise\)\./)
    assert.match(text, /Its last error was at .*, in attempt 2: transient: connection reset\.$/)
  })

  test('a canceled job says why, and how to start it after all', () => {
    const text = explain({ job: { state: 'canceled', note: 'canceled by hand', settled_at: NOW } })
    assert.match(
      text,
      /^It was canceled at .*: canceled by hand\.\nStart it after all: tidemark jobs retry 42$/,
    )
  })
})

test('a page is told no commands: it has buttons', () => {
  const reader = 'page' as const
  const pausedBy = [{ scope: 'all', target: '', code: 'by-hand', reason: 'holidays' }]
  const failed = { state: 'failed' as const, error: '{"kind":"permanent","message":"no"}', settled_at: NOW }
  for (const text of [
    explain({ reader, job: failed }),
    explain({ reader, job: { ...failed, state: 'canceled' } }),
    explain({ reader, detail: { pausedBy } }),
    explain({ reader, job: failed, detail: { waitsFor: [dependency(10, { state: 'failed' })] } }),
  ]) {
    assert.doesNotMatch(text, /tidemark /)
  }
})
