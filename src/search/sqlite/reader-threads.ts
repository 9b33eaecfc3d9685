/**
 * The threads that read the index on SQLite. One answers, one question after another; a question that takes long does not
 * hold up the others: its thread is set aside with it, and another answers.
 *
 *   answering ──a question takes SLOW_MS, and there is a place──▶ aside ──its answer──▶ ended ──gone──▶ a place is free
 *   any ──a question takes QUESTION_MS_MAX──▶ ended, and the question refused as having taken too long
 *
 * Native code is not interrupted: a thread that is ended goes only when its statement is over, and has its place until
 * then. Where all places are taken and the one that answers is ended too, nobody answers until one of them has gone: what
 * waits, and what is asked meanwhile, is refused with that reason.
 *
 * Invariants:
 * - there are at most ASIDE_MAX threads besides the one that answers, those counted that have not yet gone
 * - the time of a question begins when its thread has started
 * - a question waits no longer than QUESTION_MS_MAX for each that is before it, and SLOW_MS while there are places
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

/** A question that a thread has; `isEnded`: it was refused, and its thread is to go. */
type Open = { thread: ReaderThread; isSlow: boolean; isEnded: boolean }

export class ReaderThreads {
  readonly #clock: Clock
  readonly #start: () => ReaderThread
  readonly #waiting: Question[] = []
  readonly #aside = new Set<ReaderThread>()
  readonly #ready = new WeakMap<ReaderThread, Promise<unknown>>()
  /** The one that answers; its question is open while it is busy. */
  #thread: ReaderThread | undefined
  #isBusy = false
  /** What it has been asked, from when it has started. */
  #open: Open | undefined
  #isStopped = false

  constructor({ clock, start }: { clock: Clock; start: () => ReaderThread }) {
    this.#clock = clock
    this.#start = start
  }

  ask<Value>(method: string, args: unknown): Promise<Value> {
    if (this.#isStopped) return Promise.reject(stopped())
    if (this.#open?.isEnded) return Promise.reject(allTaken())
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
    const open: Open = { thread, isSlow: false, isEnded: false }
    this.#open = open
    const timers: CancelTimer[] = [
      this.#clock.timer(SLOW_MS, () => {
        open.isSlow = true
        this.#setAside()
      }),
      this.#clock.timer(QUESTION_MS_MAX, () => {
        reject(tookTooLong())
        open.isEnded = true
        void thread.end()
        if (this.#open === open) for (const waiting of this.#waiting.splice(0)) waiting.reject(allTaken())
      }),
    ]
    try {
      resolve(await thread.ask(method, args))
    } catch (thrown) {
      reject(thrown)
    }
    for (const cancel of timers) cancel()
    if (this.#aside.has(thread) || open.isEnded) await thread.end()
    if (this.#aside.delete(thread)) {
      this.#setAside()
      return
    }
    if (open.isEnded) this.#thread = undefined
    this.#open = undefined
    this.#isBusy = false
    this.#next()
  }

  /** The one that answers, where it is slow and there is a place; otherwise when one becomes free. */
  #setAside(): void {
    if (!this.#open?.isSlow || this.#aside.size >= ASIDE_MAX || this.#isStopped) return
    this.#aside.add(this.#open.thread)
    this.#open = undefined
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

function allTaken(): TidemarkError {
  return new TidemarkError(
    'Other searches have taken too long, and nothing is searched until they have ended.',
    {
      kind: 'transient',
      code: 'search-busy',
      hint: 'Try again in a while.',
    },
  )
}

function stopped(): TidemarkError {
  return new TidemarkError('The search has been closed.', { kind: 'transient', code: 'search-thread' })
}
