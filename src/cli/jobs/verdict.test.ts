import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noCounts } from './stats.ts'
import { judge, type VerdictInput } from './verdict.ts'

type Change = Partial<Omit<VerdictInput, 'jobs'>> & { jobs?: Partial<VerdictInput['jobs']> }

function verdictOf(change: Change): [code: number, text: string] {
  const { exitCode, text } = judge({
    badItems: { count: 0, atLeast: false },
    unbalanced: 0,
    openSegments: 0,
    enginesLive: 0,
    pauses: 0,
    needs: [],
    startCommand: undefined,
    ...change,
    jobs: { ...noCounts(), ...change.jobs },
  })
  return [exitCode, text]
}

const bad = { count: 3, atLeast: false }

const conflict = 'OneDrive: 1 conflict to decide.'

const cases: [what: string, change: Change, code: number, text: string][] = [
  ['nothing at all is settled', {}, 0, 'All settled.'],
  [
    'what waits for a person is not settled',
    { needs: [conflict] },
    3,
    `${conflict} Everything else is settled.`,
  ],
  [
    'what waits for a person is named first, whatever else is going on',
    {
      needs: [conflict, 'Docs: 30 deletions at once: waiting for your yes.'],
      jobs: { claimed: 2 },
      enginesLive: 1,
    },
    3,
    `${conflict} And 1 more. 2 claimed.`,
  ],
  [
    'what waits for a person is named beside what failed',
    { needs: [conflict], jobs: { failed: 1 } },
    1,
    `1 job failed: see tidemark jobs list --state failed, try again with tidemark jobs retry --all-failed. ${conflict}`,
  ],
  [
    'done, skipped and canceled jobs are settled',
    { jobs: { done: 5, skipped: 1, canceled: 1 } },
    0,
    'All settled.',
  ],
  [
    'pending work is no failure',
    { jobs: { ready: 1_200, time: 34 }, startCommand: 'tidemark serve' },
    0,
    '1,234 jobs waiting, no engine is running: start one with tidemark serve',
  ],
  [
    'work that goes on is no failure',
    { jobs: { deps: 1, claimed: 2 }, enginesLive: 1 },
    0,
    '1 job waiting, 2 claimed.',
  ],
  ['pauses are told', { jobs: { ready: 1 }, enginesLive: 1, pauses: 1 }, 0, '1 job waiting. 1 pause holds.'],
  [
    'bad items count while work goes on',
    { jobs: { ready: 1 }, enginesLive: 1, badItems: bad },
    0,
    '1 job waiting, 3 bad items.',
  ],
  [
    'bad items alone end with 3',
    { badItems: bad },
    3,
    'All settled, but for 3 bad items: see tidemark bad list, try again with tidemark bad retry --all',
  ],
  [
    'very many bad items are not counted to the last',
    { badItems: { count: 20_000, atLeast: true } },
    3,
    'All settled, but for at least 20,000 bad items: see tidemark bad list, try again with tidemark bad retry --all',
  ],
  [
    'failed jobs end with 1, whatever else there is',
    { jobs: { failed: 1, ready: 2 }, enginesLive: 1, badItems: bad },
    1,
    '1 job failed: see tidemark jobs list --state failed, try again with tidemark jobs retry --all-failed. Besides, 2 jobs waiting, 3 bad items.',
  ],
  [
    'counts that do not agree end with 1',
    { unbalanced: 1 },
    1,
    'The counts of 1 segment do not agree: nothing is complete beyond them.',
  ],
  [
    'a segment that is still open is not settled',
    { openSegments: 2 },
    0,
    'No job waits, but 2 segments are still open; no engine is running.',
  ],
]

for (const [what, change, code, text] of cases) {
  test(what, () => {
    assert.deepEqual(verdictOf(change), [code, text])
  })
}
