/**
 * Reads documents in threads of its own, one document per thread at a time. Whoever wrote a document decides what
 * reading it costs: the main thread has no part in it, and a thread that takes too long or too much is ended and
 * replaced by the next document.
 *
 *   none ──document──▶ busy ──answer──▶ idle ──document──▶ busy
 *   idle ──IDLE_MS_MAX──▶ none
 *   busy ──too long, too much memory, crash, abort──▶ none
 *
 * Invariants: at most `threadsMax` threads; each document is answered once, by its text or by why it is skipped;
 * documents are taken in the order in which they came. A rejection says nothing about the document: it was aborted,
 * its file cannot be read, or the extractor was closed.
 */
import module from 'node:module'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { Semaphore } from '../../ledger/semaphore.ts'
import type { Chunk } from '../chunk.ts'
import {
  DEFAULT_EXTRACT_LIMITS,
  type ExtractedText,
  type ExtractInput,
  type Extraction,
  type ExtractLimits,
  type SkipCode,
  type Skipped,
} from './contract.ts'

/** A document's text, cut for the index. */
export type ChunkedDocument = Omit<ExtractedText, 'parts'> & { chunks: Chunk[] }

export type TextExtractorOptions = {
  clock: Clock
  /** Each takes a core while it reads, and up to `heapMbMax` and `buffersMbMax` of memory together. */
  threadsMax?: number
  heapMbMax?: number
  /** Bytes outside of a thread's heap, which the platform does not limit: what is inflated, and the document itself. */
  buffersMbMax?: number
  limits?: Partial<ExtractLimits>
  /** The thread; another one in tests. */
  script?: URL
}

const HEAP_MB_MAX = 512
const BUFFERS_MB_MAX = 512
const MEMORY_LOOK_MS = 100
const END_MS_MAX = 2_000
export const IDLE_MS_MAX = 60_000
/** Documents that wait for a thread; whoever asks for more does not know how to wait. */
export const WAITING_MAX = 10_000

export type ThreadRequest = { wants: 'parts' | 'chunks'; input: ExtractInput; limits: ExtractLimits }
export type ThreadAnswer = { done: Extraction | ChunkedDocument } | { failed: string }

/** `keep` keeps it from being ended for want of work. */
type Thread = { worker: Worker; keep?: () => void }

export class TextExtractor {
  readonly #clock: Clock
  readonly #limits: ExtractLimits
  readonly #heapMbMax: number
  readonly #buffersMbMax: number
  readonly #script: URL
  readonly #threads = new Set<Thread>()
  readonly #idle: Thread[] = []
  readonly #places: Semaphore
  #waiting = 0
  #isClosed = false

  constructor(options: TextExtractorOptions) {
    this.#clock = options.clock
    this.#places = new Semaphore(options.threadsMax ?? 1)
    this.#limits = { ...DEFAULT_EXTRACT_LIMITS, ...options.limits }
    this.#heapMbMax = options.heapMbMax ?? HEAP_MB_MAX
    this.#buffersMbMax = options.buffersMbMax ?? BUFFERS_MB_MAX
    this.#script = options.script ?? new URL('./extract-thread.ts', import.meta.url)
  }

  get limits(): ExtractLimits {
    return this.#limits
  }

  /** How many threads there are, for those who watch memory. */
  get threads(): number {
    return this.#threads.size
  }

  /** The text in parts. */
  async extract(input: ExtractInput, options: { signal?: AbortSignal } = {}): Promise<Extraction> {
    return (await this.#read({ wants: 'parts', input, limits: this.#limits }, options.signal)) as Extraction
  }

  /** The text in chunks, cut in the thread. */
  async extractChunks(
    input: ExtractInput,
    options: { signal?: AbortSignal } = {},
  ): Promise<ChunkedDocument | Skipped> {
    return (await this.#read({ wants: 'chunks', input, limits: this.#limits }, options.signal)) as
      | ChunkedDocument
      | Skipped
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#places.refuseWaiting(closedError())
    await Promise.all([...this.#threads].map((thread) => this.#end(thread)))
  }

  async #read(
    request: ThreadRequest,
    signal: AbortSignal | undefined,
  ): Promise<Extraction | ChunkedDocument> {
    await this.#acquire(signal)
    try {
      signal?.throwIfAborted()
      if (this.#isClosed) throw closedError()
      const thread = this.#idle.pop() ?? this.#start()
      thread.keep?.()
      return await this.#run(thread, request, signal)
    } finally {
      this.#places.release()
    }
  }

  async #acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.#isClosed) throw closedError()
    if (this.#waiting >= WAITING_MAX) {
      throw new TidemarkError(`more than ${formatCount(WAITING_MAX)} documents wait to be read`, {
        kind: 'transient',
        code: 'extract-busy',
      })
    }
    this.#waiting += 1
    const place = this.#places.acquire()
    const aborted = abortOf(signal)
    try {
      await Promise.race([place, aborted.promise])
    } catch (thrown) {
      // Whoever has gone hands the place on when it comes.
      place.then(
        () => this.#places.release(),
        () => {},
      )
      throw thrown
    } finally {
      aborted.forget()
      this.#waiting -= 1
    }
  }

  async #run(
    thread: Thread,
    request: ThreadRequest,
    signal: AbortSignal | undefined,
  ): Promise<Extraction | ChunkedDocument> {
    const { worker } = thread
    worker.ref()
    const ended = Promise.withResolvers<ThreadAnswer | Skipped>()
    const skip = (code: SkipCode, reason: string): void => ended.resolve({ kind: 'skipped', code, reason })
    const onError = (error: Error & { code?: string }): void => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') skip('out-of-memory', MEMORY_REASON)
      else skip('crashed', CRASH_REASON)
    }
    const onExit = (): void => (this.#isClosed ? ended.reject(closedError()) : skip('crashed', CRASH_REASON))
    worker.once('message', ended.resolve).once('error', onError).once('exit', onExit)
    const { timeMs } = request.limits
    const stopTimer = this.#clock.timer(timeMs, () => skip('timeout', timeReason(timeMs)), {
      keepAlive: true,
    })
    const stopWatch = this.#watchBuffers(worker, () => skip('out-of-memory', MEMORY_REASON))
    const aborted = abortOf(signal)
    let answer: ThreadAnswer | Skipped | undefined
    try {
      worker.postMessage(request)
      answer = await Promise.race([ended.promise, aborted.promise])
    } finally {
      stopTimer()
      stopWatch()
      aborted.forget()
      worker.off('message', ended.resolve).off('error', onError).off('exit', onExit)
      // What was decided here, and not in the thread, ends the thread.
      if (answer === undefined || 'kind' in answer) await this.#endSoon(thread)
      else this.#rest(thread)
    }
    if ('kind' in answer) return answer
    if ('failed' in answer) {
      throw new TidemarkError(`the document ${request.input.name} cannot be read: ${answer.failed}`, {
        kind: 'transient',
        code: 'extract-unreadable',
      })
    }
    return answer.done
  }

  /** The platform limits a thread's heap; what lies outside of it is looked at from here. */
  #watchBuffers(worker: Worker, onTooMuch: () => void): () => void {
    let isOver = false
    let cancel = (): void => {}
    const look = async (): Promise<void> => {
      // A thread that has just ended has no statistics.
      const statistics = await worker.getHeapStatistics().catch(() => undefined)
      if (isOver || statistics === undefined) return
      if (statistics.external_memory > this.#buffersMbMax * 1024 * 1024) onTooMuch()
      else wait()
    }
    const wait = (): void => {
      cancel = this.#clock.timer(MEMORY_LOOK_MS, () => void look())
    }
    wait()
    return () => {
      isOver = true
      cancel()
    }
  }

  #start(): Thread {
    const worker = new Worker(new URL('../../ledger/thread-entry.js', import.meta.url), {
      workerData: { script: this.#script.href, compileCache: module.getCompileCacheDir() },
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMbMax },
      // What libraries say about a document is for nobody.
      stdout: true,
      stderr: true,
    })
    worker.stdout.resume()
    worker.stderr.resume()
    const thread: Thread = { worker }
    this.#threads.add(thread)
    // What ends a thread also makes it exit.
    worker.on('error', () => {})
    worker.once('exit', () => this.#forget(thread))
    return thread
  }

  #rest(thread: Thread): void {
    thread.worker.unref()
    if (this.#isClosed || !this.#threads.has(thread)) return
    this.#idle.push(thread)
    thread.keep = this.#clock.timer(IDLE_MS_MAX, () => void this.#end(thread))
  }

  #forget(thread: Thread): void {
    thread.keep?.()
    this.#threads.delete(thread)
    const at = this.#idle.indexOf(thread)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  /** A thread within a call of the platform cannot be ended before that returns: nobody waits for it for long. */
  async #endSoon(thread: Thread): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#clock.timer(END_MS_MAX, resolve, { keepAlive: true })
    await Promise.race([promise, this.#end(thread)])
    cancel()
  }

  async #end(thread: Thread): Promise<void> {
    this.#forget(thread)
    await thread.worker.terminate()
  }
}

const MEMORY_REASON = 'reading it takes too much memory'
const CRASH_REASON = 'the program that reads it came to an unexpected end'

function timeReason(timeMs: number): string {
  return `reading it takes more than ${Math.round(timeMs / 1_000)} seconds`
}

function closedError(): TidemarkError {
  return new TidemarkError('documents are no longer read: the extractor is closed', {
    kind: 'transient',
    code: 'extract-closed',
  })
}

/** Rejects when the signal aborts. */
function abortOf(signal: AbortSignal | undefined): { promise: Promise<never>; forget: () => void } {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const onAbort = (): void => reject(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  return { promise, forget: () => signal?.removeEventListener('abort', onAbort) }
}
