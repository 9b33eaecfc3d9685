/**
 * The threads that read the index on SQLite. One answers, one question after another; a question that takes long does not
 * hold up the others: its thread is set aside with it, and another answers.
 *
 *   answering ──a question takes SLOW_MS──▶ aside ──its answer──▶ ended
 *   any ──a question takes QUESTION_MS_MAX──▶ ended, and the question refused as having taken too long
 *
 * Invariants:
 * - there are at most ASIDE_MAX threads besides the one that answers, those counted that have not yet gone
 * - the time of a question begins when its thread has started
 * - a question waits no longer than QUESTION_MS_MAX for each that is before it, and SLOW_MS while threads can be set aside
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { ThreadClient } from '../../ledger/thread-client.ts'

export const SLOW_MS = 1_000
export const QUESTION_MS_MAX = 30_000
export const ASIDE_MAX = 2

export type ReaderThread = Pick<ThreadClient, 'ask' | 'stop' | 'end'>

type Question = {
  method: string
  args: unknown
  resolve: (value: unknown) => void
  reject: (thrown: unknown) => void
}

export class ReaderThreads {
  readonly #clock: Clock
  readonly #start: () => ReaderThread
  readonly #waiting: Question[] = []
  readonly #aside = new Set<ReaderThread>()
  readonly #ready = new WeakMap<ReaderThread, Promise<unknown>>()
  /** The one that answers; its question is open while it is busy. */
  #thread: ReaderThread | undefined
  #isBusy = false
  #isStopped = false

  constructor({ clock, start }: { clock: Clock; start: () => ReaderThread }) {
    this.#clock = clock
    this.#start = start
  }

  ask<Value>(method: string, args: unknown): Promise<Value> {
    if (this.#isStopped) return Promise.reject(stopped())
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.push({ method, args, resolve: resolve as (value: unknown) => void, reject })
      this.#next()
    })
  }

  /** What waits is answered by nobody any more; what is asked already is waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const { reject } of this.#waiting.splice(0)) reject(stopped())
    await Promise.all([this.#thread, ...this.#aside].map((thread) => thread?.stop()))
  }

  #next(): void {
    if (this.#isBusy) return
    const question = this.#waiting.shift()
    if (!question) return
    this.#isBusy = true
    if (!this.#thread) {
      this.#thread = this.#start()
      // On a busy machine a thread takes seconds to start, for which no question is to blame.
      this.#ready.set(this.#thread, this.#thread.ask('ready', undefined))
    }
    void this.#put(this.#thread, question)
  }

  async #put(thread: ReaderThread, question: Question): Promise<void> {
    const { method, args, resolve, reject } = question
    try {
      await this.#ready.get(thread)
    } catch (thrown) {
      reject(thrown)
      this.#thread = undefined
      this.#isBusy = false
      this.#next()
      return
    }
    const timers: CancelTimer[] = [
      this.#clock.timer(SLOW_MS, () => this.#setAside(thread)),
      this.#clock.timer(QUESTION_MS_MAX, () => {
        reject(tookTooLong())
        // Native code is not interrupted: the thread counts until it has gone.
        this.#setAside(thread, { always: true })
        void thread.end()
      }),
    ]
    try {
      resolve(await thread.ask(method, args))
    } catch (thrown) {
      reject(thrown)
    }
    for (const cancel of timers) cancel()
    if (this.#aside.has(thread)) {
      await thread.end()
      this.#aside.delete(thread)
    } else {
      this.#isBusy = false
      this.#next()
    }
  }

  #setAside(thread: ReaderThread, { always = false } = {}): void {
    if (this.#aside.has(thread) || this.#isStopped) return
    if (this.#aside.size >= ASIDE_MAX && !always) return
    this.#aside.add(thread)
    this.#thread = undefined
    this.#isBusy = false
    this.#next()
  }
}

export function tookTooLong(cause?: unknown): TidemarkError {
  return new TidemarkError(`The search took longer than ${QUESTION_MS_MAX / 1_000} seconds and was ended.`, {
    kind: 'permanent',
    code: 'search-took-too-long',
    hint: 'Ask for rarer words, or for less: with a type, an owner or a folder.',
    cause,
  })
}

function stopped(): TidemarkError {
  return new TidemarkError('The search has been closed.', { kind: 'transient', code: 'search-thread' })
}
