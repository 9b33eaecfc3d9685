import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FakeClock } from '../../base/clock.ts'
import { formatEta } from './eta.ts'
import { type KindWords, ProgressBoard, summarize, workText } from './progress.ts'

const WORDS: Record<string, KindWords> = {
  'files.download': { verb: 'downloading', noun: 'file' },
  'files.upload': { verb: 'uploading', noun: 'file' },
  'mail.classify': { verb: 'classifying', noun: 'category' },
  'mail.fetch': { verb: 'fetching', noun: 'batch' },
  'mail.read': { verb: 'reading', noun: 'message' },
}
const words = (waiting = 0) => ({ describe: (kind: string) => WORDS[kind], waiting })

function openBoard() {
  const clock = new FakeClock()
  return { clock, board: new ProgressBoard(clock) }
}

describe('the summary', () => {
  test('says what is running, of which size, and what waits', () => {
    const { board } = openBoard()
    for (let id = 0; id < 3; id++) {
      board.start({ id, kind: 'files.download', stream: 'me', total: 7e8, unit: 'bytes' })
    }
    for (let id = 3; id < 8; id++)
      board.start({ id, kind: 'files.upload', stream: 'me', total: 6.8e7, unit: 'bytes' })
    assert.equal(board.summary(words(12)), 'downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting')
  })

  test('counts in good English', () => {
    const { board } = openBoard()
    board.start({ id: 1, kind: 'files.download', stream: null })
    board.start({ id: 2, kind: 'mail.classify', stream: null })
    board.start({ id: 3, kind: 'mail.classify', stream: null })
    board.start({ id: 4, kind: 'mail.fetch', stream: null })
    board.start({ id: 5, kind: 'mail.fetch', stream: null })
    assert.equal(
      board.summary(words(1_200)),
      'downloading 1 file, classifying 2 categories, fetching 2 batches, 1,200 waiting',
    )
  })

  test('counts what jobs are about, not the jobs', () => {
    const job = { done: 0, total: null, unit: 'items' as const }
    const running = [
      { ...job, kind: 'mail.read', things: 14 },
      { ...job, kind: 'mail.read', things: 13 },
      { ...job, kind: 'mail.classify', things: 1 },
    ]
    assert.equal(summarize(running, words(2)), 'reading 27 messages, classifying 1 category, 2 waiting')
  })

  test('names kinds without words, and sums up what is too much to say', () => {
    const { board } = openBoard()
    for (let id = 0; id < 7; id++) board.start({ id, kind: `kind-${id % 6}`, stream: null })
    assert.equal(
      board.summary(words()),
      'running 2 kind-0, running 1 kind-1, running 1 kind-2, running 1 kind-3, 2 other jobs',
    )
  })

  test('of nothing is idle', () => {
    const { board } = openBoard()
    assert.equal(board.summary(words()), 'idle')
    assert.equal(board.summary(words(3)), '3 waiting')
  })
})

test('a job is called by what it does', () => {
  const words = { verb: 'fetching', noun: 'message' }
  assert.equal(workText(words, { kind: 'mail.fetch', things: 25 }), 'Fetching 25 messages')
  assert.equal(workText(words, { kind: 'mail.fetch', things: 1 }), 'Fetching a message')
  assert.equal(workText({ verb: 'reading', noun: 'object' }, { kind: 'x', things: 0 }), 'Reading an object')
  assert.equal(workText(undefined, { kind: 'my.kind', things: 3 }), 'my.kind')
})

describe('a job on the board', () => {
  test('shows how far it got and since when', async () => {
    const { clock, board } = openBoard()
    const startedAt = clock.now()
    board.start({ id: 1, kind: 'files.download', stream: 'me', label: 'a.pdf' })
    await clock.advance(5_000)
    assert.equal(board.update(1, { done: 10, total: 40, unit: 'bytes' }), true)
    assert.deepEqual(board.running(), [
      {
        id: 1,
        kind: 'files.download',
        stream: 'me',
        label: 'a.pdf',
        done: 10,
        total: 40,
        unit: 'bytes',
        startedAt,
        lastProgressAt: startedAt + 5_000,
      },
    ])
    board.end({ id: 1, kind: 'mail.fetch' }, { items: 1 })
    assert.deepEqual(board.running(), [])
  })

  test('that reports the same number again makes no progress; a word without numbers is a sign of life', async () => {
    const { clock, board } = openBoard()
    const startedAt = clock.now()
    board.start({ id: 1, kind: 'files.download', stream: null })
    board.update(1, { done: 10 })
    await clock.advance(1_000)
    assert.equal(board.update(1, { done: 10 }), false)
    assert.equal(board.running()[0]!.lastProgressAt, startedAt)
    assert.equal(board.update(1, {}), true)
    assert.equal(board.running()[0]!.lastProgressAt, startedAt + 1_000)
  })

  test('that is unknown or reports nonsense does no harm', () => {
    const { board } = openBoard()
    assert.equal(board.update(9, { done: 1 }), false)
    board.end({ id: 9, kind: 'mail.fetch' }, { items: 1 })
    board.start({ id: 1, kind: 'files.download', stream: null, total: Number.NaN })
    board.update(1, { done: -5, total: Number.POSITIVE_INFINITY })
    assert.deepEqual([board.running()[0]!.done, board.running()[0]!.total], [0, null])
  })
})

describe('the time left', () => {
  test('goes by the bytes that running jobs report, within the budget', async () => {
    const { clock, board } = openBoard()
    board.start({ id: 1, kind: 'files.download', stream: null, unit: 'bytes' })
    for (let second = 1; second <= 30; second++) {
      await clock.advance(1_000)
      board.update(1, { done: second * 1e6 })
    }
    const question = { remaining: 6e8 }
    assert.equal(formatEta(board.eta('files.download', 'bytes', question)), 'about 10 min')
    assert.equal(
      formatEta(board.eta('files.download', 'bytes', { ...question, perSecondMax: 5e5 })),
      'about 20 min',
    )
    assert.equal(formatEta(board.eta('files.upload', 'bytes', question)), 'unknown (measuring)')
  })

  test('goes by the items that ended, each counted once', async () => {
    const { clock, board } = openBoard()
    for (let second = 0; second < 60; second++) {
      board.start({ id: second, kind: 'mail.fetch', stream: null })
      board.update(second, { done: 4, unit: 'items' })
      board.end({ id: second, kind: 'mail.fetch' }, { items: 10 })
      await clock.advance(1_000)
    }
    assert.equal(formatEta(board.eta('mail.fetch', 'items', { remaining: 6_000 })), 'about 10 min')
  })

  test('is never negative or NaN, whatever jobs report', async () => {
    const report = fc.record({
      id: fc.nat({ max: 3 }),
      done: fc.double(),
      total: fc.double(),
      unit: fc.constantFrom('bytes' as const, 'items' as const),
      afterMs: fc.nat({ max: 10_000 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(report, { maxLength: 30 }), fc.double(), async (reports, remaining) => {
        const { clock, board } = openBoard()
        for (let id = 0; id < 4; id++) board.start({ id, kind: 'mail.fetch', stream: null })
        for (const { id, afterMs, ...progress } of reports) {
          await clock.advance(afterMs)
          board.update(id, progress)
        }
        for (const unit of ['bytes', 'items'] as const) {
          const eta = board.eta('mail.fetch', unit, { remaining })
          if (eta.type === 'range')
            assert.ok(eta.lowMs >= 0 && eta.highMs >= eta.lowMs && Number.isFinite(eta.highMs))
        }
        assert.doesNotMatch(board.summary(words(3)), /NaN|Infinity|undefined/)
      }),
      { numRuns: 50 },
    )
  })
})
