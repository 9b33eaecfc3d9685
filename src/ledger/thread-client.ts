/**
 * The main thread's side of a conversation with a thread: of the mail archive, of searches.
 *
 *   idle ──first question──▶ running ──the thread dies──▶ idle (what it had is refused as transient)
 *   any ──stop, end──▶ stopped
 *
 * A thread keeps the process alive only while a question is open.
 */
import module from 'node:module'
import { type Transferable, Worker } from 'node:worker_threads'
import { TidemarkError } from '../base/errors.ts'
import { type Reply, unpackError } from './thread-service.ts'

/** Storing mail with one writer takes a process of 206 MB in all; with 48 MB here, as V8 would have it, 253 MB. */
const YOUNG_MB_MAX = 8

export type ThreadOptions = {
  script: URL
  /** For messages to people: "the archive's writer". */
  name: string
  /** For programs, when it dies. */
  code: string
  data: object
  /** Of the thread's JavaScript heap; the bytes of messages are not in it. */
  heapMbMax: number
}

type Waiting = { resolve: (value: unknown) => void; reject: (error: unknown) => void }

export class ThreadClient {
  readonly #options: ThreadOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #number = 0
  #deaths = 0
  #isStopped = false

  constructor(options: ThreadOptions) {
    this.#options = options
  }

  /** How often the thread has died. */
  get deaths(): number {
    return this.#deaths
  }

  ask<Value>(method: string, args: unknown, transfer: readonly Transferable[] = []): Promise<Value> {
    if (this.#isStopped) return Promise.reject(this.#died('has been stopped'))
    const worker = this.#worker ?? this.#start()
    const number = ++this.#number
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.set(number, { resolve: resolve as (value: unknown) => void, reject })
      worker.ref()
      worker.postMessage({ number, method, args }, transfer)
    })
  }

  /** Lets it finish what it was asked, close its files and end. */
  async stop(): Promise<void> {
    const worker = this.#worker
    if (!worker || this.#isStopped) {
      this.#isStopped = true
      return
    }
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const closed = this.ask('close', undefined).catch(() => undefined) // it may have died: then it is closed
    this.#isStopped = true
    await closed
    await ended
  }

  /** Without waiting for what it is doing, which is refused. Native code is not interrupted: it has gone when that ends. */
  async end(): Promise<void> {
    this.#isStopped = true
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const { script, data, heapMbMax } = this.#options
    const entry = new URL('./thread-entry.js', import.meta.url)
    const worker = new Worker(entry, {
      workerData: { ...data, script: script.href, compileCache: module.getCompileCacheDir() },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX, maxOldGenerationSizeMb: heapMbMax },
    })
    let cause: unknown
    worker.on('message', (reply: Reply) => this.#answered(worker, reply))
    worker.on('error', (error) => {
      cause = error
    })
    worker.on('exit', () => this.#ended(worker, cause))
    this.#worker = worker
    return worker
  }

  #answered(worker: Worker, reply: Reply): void {
    const waiting = this.#waiting.get(reply.number)
    this.#waiting.delete(reply.number)
    // While it ends, its end is waited for.
    if (this.#waiting.size === 0 && !this.#isStopped) worker.unref()
    if ('error' in reply) waiting?.reject(unpackError(reply.error))
    else waiting?.resolve(reply.value)
  }

  #ended(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    const lost = [...this.#waiting.values()]
    this.#waiting.clear()
    if (this.#isStopped && lost.length === 0) return
    this.#deaths += 1
    const why = cause instanceof Error ? `ended: ${cause.message}` : 'ended unexpectedly'
    for (const { reject } of lost) reject(this.#died(why, cause))
  }

  #died(why: string, cause?: unknown): TidemarkError {
    return new TidemarkError(`${this.#options.name} ${why}.`, {
      kind: 'transient',
      code: this.#options.code,
      hint: 'What it was doing is tried again.',
      cause,
    })
  }
}
