/**
 * Threads that wait for the disk in our place: one that lists folders, and `checkers` that hash files.
 *
 *   idle ──a question──▶ running ──no question for a while (unref)──▶ still there, but holds up no exit
 *   running ──it dies──▶ idle: what it had is refused as transient
 *   any ──stop──▶ stopped
 *
 * Measured, as multiples of the time that reading alone takes, against chunks read asynchronously on the main thread:
 * see `hash.ts`.
 */
import module from 'node:module'
import { Worker } from 'node:worker_threads'
import { TidemarkError } from '../../../errors.ts'
import type { LocalStat } from '../trees.ts'
import type { Hashed } from './content-hash.ts'
import type { Listing } from './listing.ts'

export type Ask = { what: 'list'; path: string } | { what: 'hash'; path: string; expect: LocalStat }
export type Question = { number: number; slot: number; ask: Ask }
export type Answer =
  | { number: number; value: Listing | Hashed }
  | { number: number; error: { message: string; code?: string | undefined } }

type Waiting = {
  question: Question
  resolve: (value: Listing | Hashed) => void
  reject: (error: unknown) => void
}

/** Small files: a thread has its next questions before it asks for them. */
const AHEAD_MAX = 8
const HEAP_MB_MAX = 64
const YOUNG_MB_MAX = 4

class DiskThread {
  readonly #stops: SharedArrayBuffer
  readonly #open = new Map<number, Waiting>()
  #worker: Worker | undefined

  constructor(stops: SharedArrayBuffer) {
    this.#stops = stops
  }

  get openCount(): number {
    return this.#open.size
  }

  ask(waiting: Waiting): void {
    const worker = this.#worker ?? this.#start()
    this.#open.set(waiting.question.number, waiting)
    worker.ref()
    worker.postMessage(waiting.question)
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const script = new URL('./disk-thread.ts', import.meta.url)
    const worker = new Worker(new URL('../../../ledger/thread-entry.js', import.meta.url), {
      workerData: { stops: this.#stops, script: script.href, compileCache: module.getCompileCacheDir() },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX, maxOldGenerationSizeMb: HEAP_MB_MAX },
    })
    let cause: unknown
    worker.on('message', (answer: Answer) => this.#answered(answer))
    worker.on('error', (error) => {
      cause = error
    })
    worker.on('exit', () => this.#ended(cause))
    this.#worker = worker
    return worker
  }

  #answered(answer: Answer): void {
    const waiting = this.#open.get(answer.number)
    this.#open.delete(answer.number)
    if (this.#open.size === 0) this.#worker?.unref()
    if (!waiting) return
    if ('value' in answer) waiting.resolve(answer.value)
    else waiting.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }))
  }

  #ended(cause: unknown): void {
    this.#worker = undefined
    const lost = [...this.#open.values()]
    this.#open.clear()
    for (const { reject } of lost) {
      reject(
        new TidemarkError('The thread that reads files ended.', {
          ...{ kind: 'transient', code: 'disk-thread', hint: 'What it was doing is tried again.', cause },
        }),
      )
    }
  }
}

/** Hands questions to the thread that has the fewest. */
export class DiskThreads {
  readonly #threads: DiskThread[]
  readonly #stops: Int32Array
  readonly #queue: Waiting[] = []
  #number = 0
  #isStopped = false

  constructor({ threads }: { threads: number }) {
    const stops = new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT)
    this.#stops = new Int32Array(stops)
    this.#threads = Array.from({ length: threads }, () => new DiskThread(stops))
  }

  list(path: string): Promise<Listing> {
    return this.#ask({ what: 'list', path }) as Promise<Listing>
  }

  /** Rejects as soon as the signal aborts, and has the thread stop. */
  async hash(path: string, expect: LocalStat, signal?: AbortSignal): Promise<Hashed> {
    return (await this.#ask({ what: 'hash', path, expect }, signal)) as Hashed
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const { reject } of this.#queue.splice(0)) reject(stopped())
    await Promise.all(this.#threads.map((thread) => thread.stop()))
  }

  #ask(ask: Ask, signal?: AbortSignal): Promise<Listing | Hashed> {
    if (this.#isStopped) return Promise.reject(stopped())
    if (signal?.aborted) return Promise.reject(signal.reason)
    this.#number = (this.#number + 1) | 0
    const question: Question = { number: this.#number, slot: -1, ask }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#abandon(question)
        reject(signal?.reason)
      }
      const done =
        <Value>(settle: (value: Value) => void) =>
        (value: Value): void => {
          signal?.removeEventListener('abort', onAbort)
          settle(value)
          this.#handOut()
        }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#queue.push({ question, resolve: done(resolve), reject: done(reject) })
      this.#handOut()
    })
  }

  /** A thread that has begun it is told to stop; one that has not will not begin. */
  #abandon(question: Question): void {
    const index = this.#queue.findIndex((waiting) => waiting.question === question)
    if (index >= 0) this.#queue.splice(index, 1)
    else if (question.slot >= 0) Atomics.store(this.#stops, question.slot, question.number)
  }

  #handOut(): void {
    while (this.#queue.length > 0 && !this.#isStopped) {
      const slot = leastBusy(this.#threads)
      const thread = this.#threads[slot]!
      if (thread.openCount >= AHEAD_MAX) return
      const waiting = this.#queue.shift()!
      waiting.question.slot = slot
      thread.ask(waiting)
    }
  }
}

function leastBusy(threads: readonly DiskThread[]): number {
  let least = 0
  for (const [index, thread] of threads.entries()) {
    if (thread.openCount < threads[least]!.openCount) least = index
  }
  return least
}

function stopped(): TidemarkError {
  return new TidemarkError('The threads that read files were stopped.', {
    kind: 'transient',
    code: 'disk-thread',
  })
}
