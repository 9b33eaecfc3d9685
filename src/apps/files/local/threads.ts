/**
 * Threads that wait for the disk in our place: they read small files and hash any.
 *
 *   idle ──a question──▶ running ──all answered──▶ waiting, and holds up no exit
 *   running ──it dies──▶ idle: what it had is refused as transient
 *   any ──stop──▶ stopped
 *
 * A thread works at all its questions by turns, so a small file does not wait until a huge one is done.
 */
import module from 'node:module'
import { Worker } from 'node:worker_threads'
import { TidemarkError } from '../../../base/errors.ts'
import type { LocalStat } from '../trees.ts'
import type { FilePlace } from './folder.ts'
import type { Hashed, ReadWhole } from './hash.ts'

export type Ask = { what: 'hash' | 'read' | 'pass'; place: FilePlace; expect: LocalStat }
export type Value = Hashed | ReadWhole | { outcome: 'past' }
export type Message = { number: number; ask: Ask } | { stop: number }
export type Answer =
  | { number: number; value: Value }
  | { number: number; error: { message: string; code?: string | undefined } }

type Waiting = { resolve: (value: Value) => void; reject: (error: unknown) => void }

const HEAP_MB_MAX = 64
const YOUNG_MB_MAX = 4

/** Asks the thread that has the fewest questions open. */
export class DiskThreads {
  readonly #threads: DiskThread[]
  #isStopped = false

  constructor({ threads }: { threads: number }) {
    this.#threads = Array.from({ length: Math.max(1, threads) }, () => new DiskThread())
  }

  /** Rejects as soon as the signal aborts. */
  hash(place: FilePlace, expect: LocalStat, signal?: AbortSignal): Promise<Hashed> {
    return this.#ask({ what: 'hash', place, expect }, signal) as Promise<Hashed>
  }

  /** All of a small file, and its hash: one question instead of a handful of calls. */
  read(place: FilePlace, expect: LocalStat, signal?: AbortSignal): Promise<ReadWhole> {
    return this.#ask({ what: 'read', place, expect }, signal) as Promise<ReadWhole>
  }

  /** Before a file is read elsewhere: until the tick is over in which it was last written (stamp.ts). */
  async pass(place: FilePlace, expect: LocalStat, signal?: AbortSignal): Promise<void> {
    await this.#ask({ what: 'pass', place, expect }, signal)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#threads.map((thread) => thread.stop()))
  }

  #ask(ask: Ask, signal?: AbortSignal): Promise<Value> {
    if (this.#isStopped) return Promise.reject(died('were stopped'))
    if (signal?.aborted) return Promise.reject(signal.reason)
    let thread = this.#threads[0]!
    for (const one of this.#threads) if (one.openCount < thread.openCount) thread = one
    return thread.ask(ask, signal)
  }
}

class DiskThread {
  readonly #open = new Map<number, Waiting>()
  #worker: Worker | undefined
  #number = 0

  get openCount(): number {
    return this.#open.size
  }

  ask(ask: Ask, signal: AbortSignal | undefined): Promise<Value> {
    const worker = this.#worker ?? this.#start()
    const number = ++this.#number
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        worker.postMessage({ stop: number } satisfies Message)
        this.#close(number)
        reject(signal?.reason)
      }
      const settled = (): void => signal?.removeEventListener('abort', onAbort)
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#open.set(number, {
        resolve(value) {
          settled()
          resolve(value)
        },
        reject(error) {
          settled()
          reject(error)
        },
      })
      worker.ref()
      worker.postMessage({ number, ask } satisfies Message)
    })
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const script = new URL('./disk-thread.ts', import.meta.url)
    const worker = new Worker(new URL('../../../ledger/thread-entry.js', import.meta.url), {
      workerData: { script: script.href, compileCache: module.getCompileCacheDir() },
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

  #close(number: number): Waiting | undefined {
    const waiting = this.#open.get(number)
    this.#open.delete(number)
    if (this.#open.size === 0) this.#worker?.unref()
    return waiting
  }

  #answered(answer: Answer): void {
    const waiting = this.#close(answer.number)
    if ('value' in answer) waiting?.resolve(answer.value)
    else waiting?.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }))
  }

  #ended(cause: unknown): void {
    this.#worker = undefined
    const lost = [...this.#open.values()]
    this.#open.clear()
    for (const { reject } of lost) reject(died('ended', cause))
  }
}

function died(how: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`The threads that read files ${how}.`, {
    kind: 'transient',
    code: 'disk-thread',
    hint: 'What they were doing is tried again.',
    cause,
  })
}
