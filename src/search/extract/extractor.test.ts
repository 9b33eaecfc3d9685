import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type Clock, FakeClock, systemClock } from '../../base/clock.ts'
import { DEFAULT_EXTRACT_LIMITS, FORMATS, SKIP_CODES } from './contract.ts'
import { measureExtractRate } from './extract-rate.ts'
import { STUCK_BUFFERS_MB } from './extract-thread-stuck.suite.ts'
import { IDLE_MS_MAX, TextExtractor, type TextExtractorOptions } from './extractor.ts'

const STUCK = new URL('./extract-thread-stuck.suite.ts', import.meta.url)

/** However slow the machine is. */
const NEVER_MS = 3_600_000

function stuck(t: TestContext, clock: Clock, options: Partial<TextExtractorOptions> = {}): TextExtractor {
  const extractor = new TextExtractor({ clock, script: STUCK, ...options })
  t.after(() => extractor.close())
  return extractor
}

const named = (name: string) => ({ name, bytes: new Uint8Array([1]) })
const answered = (name: string) => ({ kind: 'skipped', code: 'empty', reason: name })
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('what is told about it', () => {
  test('names every format, every code and every limit', () => {
    const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8')
    const limits = Object.keys(DEFAULT_EXTRACT_LIMITS)
    for (const name of [...FORMATS, ...SKIP_CODES, ...limits]) assert.ok(readme.includes(`\`${name}\``), name)
  })

  test('as its rate counts all that was read', async (t) => {
    const extractor = new TextExtractor({ clock: systemClock, threadsMax: 2 })
    t.after(() => extractor.close())
    const documents = ['one', 'two', '', 'three'].map((text, at) => ({
      name: `${at}.txt`,
      bytes: Buffer.from(text),
    }))
    const rate = await measureExtractRate({ extractor, documents, atATime: 2, clock: new FakeClock() })
    assert.deepEqual(rate, {
      documents: 4,
      skipped: 1,
      chunks: 3,
      chars: 11,
      ms: 0,
      documentsPerSecond: 0,
      chunksPerSecond: 0,
    })
  })
})

describe('a document in a thread of its own', () => {
  test('is given as parts or as chunks, from bytes or from a file', async (t) => {
    const extractor = new TextExtractor({ clock: systemClock })
    const folder = mkdtempSync(join(tmpdir(), 'extract-'))
    t.after(async () => {
      await extractor.close()
      rmSync(folder, { recursive: true })
    })
    const content = Buffer.from('# Head\nsome text\n')
    const file = join(folder, 'any')
    writeFileSync(file, content)
    const place = { kind: 'lines', first: 1, last: 2 }
    const text = { text: '# Head\nsome text', headings: ['Head'], place }
    const document = {
      kind: 'text',
      format: 'markdown',
      title: 'Head',
      language: undefined,
      isTruncated: false,
    }
    assert.deepEqual(await extractor.extract({ bytes: content, name: 'a.md' }), {
      ...document,
      parts: [text],
    })
    assert.deepEqual(await extractor.extractChunks({ file, name: 'a.md' }), {
      ...document,
      chunks: [{ n: 0, ...text }],
    })
    await assert.rejects(
      extractor.extract({ file: join(folder, 'none'), name: 'a.md' }),
      (error: { kind?: string; code?: string }) =>
        error.kind === 'transient' && error.code === 'extract-unreadable',
    )
    assert.equal(extractor.threads, 1)
  })

  test('that takes too long is ended, and those behind it are read', async (t) => {
    const clock = new FakeClock()
    const extractor = stuck(t, clock)
    assert.deepEqual(await extractor.extract(named('first')), answered('first'))
    const endless = extractor.extract(named('endless'))
    const behind = extractor.extract(named('behind'))
    // This thread goes on meanwhile.
    await turns(10)
    await clock.advance(extractor.limits.timeMs)
    assert.deepEqual(await endless, {
      kind: 'skipped',
      code: 'timeout',
      reason: 'reading it takes more than 30 seconds',
    })
    assert.deepEqual(await behind, answered('behind'))
    assert.equal(extractor.threads, 1)
  })

  test('that kills the thread is skipped, and the next has a new one', async (t) => {
    const extractor = stuck(t, systemClock)
    for (const name of ['exit', 'throw']) {
      const extraction = await extractor.extract(named(name))
      assert.equal(extraction.kind === 'skipped' && extraction.code, 'crashed')
      assert.deepEqual(await extractor.extract(named('next')), answered('next'))
    }
  })

  test('that takes too much memory is skipped, be it of the heap or outside of it', async (t) => {
    const extractor = stuck(t, systemClock, {
      heapMbMax: 32,
      buffersMbMax: STUCK_BUFFERS_MB / 2,
      limits: { timeMs: NEVER_MS },
    })
    for (const name of ['heap', 'buffers']) {
      const extraction = await extractor.extract(named(name))
      assert.equal(extraction.kind === 'skipped' && extraction.code, 'out-of-memory', name)
    }
    assert.deepEqual(await extractor.extract(named('next')), answered('next'))
  })

  test('that is aborted ends its thread, or never gets one', async (t) => {
    const extractor = stuck(t, new FakeClock())
    const running = new AbortController()
    const waiting = new AbortController()
    const endless = extractor.extract(named('endless'), { signal: running.signal })
    const never = extractor.extract(named('never'), { signal: waiting.signal })
    const behind = extractor.extract(named('behind'))
    await turns(10)
    waiting.abort(new Error('not any more'))
    await assert.rejects(never, /not any more/)
    running.abort(new Error('enough'))
    await assert.rejects(endless, /enough/)
    assert.deepEqual(await behind, answered('behind'))
    await assert.rejects(extractor.extract(named('late'), { signal: running.signal }), /enough/)
  })

  test('waits where as many are read as there are threads, and idle threads end', async (t) => {
    const clock = new FakeClock()
    const extractor = stuck(t, clock, { threadsMax: 2 })
    const names = Array.from({ length: 20 }, (_, at) => `d${at}`)
    const all = await Promise.all(names.map((name) => extractor.extract(named(name))))
    assert.deepEqual(all, names.map(answered))
    assert.equal(extractor.threads, 2)
    await clock.advance(IDLE_MS_MAX)
    assert.equal(extractor.threads, 0)
    assert.deepEqual(await extractor.extract(named('again')), answered('again'))
  })

  test('is no longer read once the extractor is closed, and nothing is said about it', async (t) => {
    const extractor = stuck(t, new FakeClock())
    const endless = extractor.extract(named('endless'))
    const waiting = extractor.extract(named('waiting'))
    const both = Promise.allSettled([endless, waiting])
    await turns(10)
    await extractor.close()
    const isClosed = ({ code }: { code?: string }): boolean => code === 'extract-closed'
    for (const one of await both) assert.ok(one.status === 'rejected' && isClosed(one.reason))
    await assert.rejects(extractor.extract(named('late')), isClosed)
  })
})
