/**
 * Tells of wrong tokens and sign-ins: the first at once, and then once a minute how many more there were, so that
 * whoever guesses cannot fill the log. What was tried is never told.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'

const QUIET_MS = 60_000

export type WrongSecret = {
  what: 'token' | 'sign-in'
  /** The address of the client. */
  from: string
  path: string
  /** How many there were, with this one, since the last time this was told. */
  count: number
}

export class RefusalLog {
  readonly #clock: Clock
  readonly #tell: (wrong: WrongSecret) => void
  #last: Omit<WrongSecret, 'count'> | undefined
  #count = 0
  #cancel: CancelTimer | undefined

  constructor({ clock, tell }: { clock: Clock; tell: (wrong: WrongSecret) => void }) {
    this.#clock = clock
    this.#tell = tell
  }

  note(wrong: Omit<WrongSecret, 'count'>): void {
    this.#last = wrong
    this.#count += 1
    if (!this.#cancel) this.#flush()
  }

  close(): void {
    this.#cancel?.()
  }

  #flush(): void {
    this.#cancel = undefined
    if (!this.#last || this.#count === 0) return
    const wrong = { ...this.#last, count: this.#count }
    this.#count = 0
    this.#cancel = this.#clock.timer(QUIET_MS, () => this.#flush())
    this.#tell(wrong)
  }
}
