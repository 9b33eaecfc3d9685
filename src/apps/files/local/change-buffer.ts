/**
 * Collects folders in which something happened, and hands them over when it is quiet, so that a program that saves in
 * ten steps is looked at once.
 *
 *   empty ──a change──▶ waiting ──2 s of quiet, or 10 s in all──▶ handed over, empty
 *
 * Beyond `FOLDERS_MAX` folders it is `everything`: a scan costs less than that many looks.
 */
import type { CancelTimer, Clock } from '../../../base/clock.ts'

/** Folders by their names from the root. */
export type Changes = 'everything' | string[][]

const QUIET_MS = 2_000
const WAIT_MS_MAX = 10_000
const FOLDERS_MAX = 100_000

export class ChangeBuffer {
  readonly #clock: Clock
  readonly #hand: (changes: Changes) => void
  readonly #onChange: () => void
  readonly #foldersMax: number
  readonly #quietMs: number
  #folders = new Set<string>()
  #isEverything = false
  #firstAt: number | undefined
  #lastAt = 0
  #cancel: CancelTimer | undefined

  constructor(options: {
    clock: Clock
    hand: (changes: Changes) => void
    /** Something is waiting, or more than before. */
    onChange?: (() => void) | undefined
    quietMs?: number | undefined
    foldersMax?: number
  }) {
    this.#quietMs = options.quietMs ?? QUIET_MS
    this.#clock = options.clock
    this.#hand = options.hand
    this.#onChange = options.onChange ?? (() => {})
    this.#foldersMax = options.foldersMax ?? FOLDERS_MAX
  }

  /** No name has a slash in it. */
  add(folder: readonly string[]): void {
    if (!this.#isEverything) {
      this.#folders.add(folder.join('/'))
      if (this.#folders.size > this.#foldersMax) this.addEverything()
    }
    this.#arm()
  }

  addEverything(): void {
    this.#isEverything = true
    this.#folders = new Set()
    this.#arm()
  }

  /** Hands over what there is, at once. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#firstAt === undefined) return
    const changes: Changes = this.#isEverything
      ? 'everything'
      : [...this.#folders].map((folder) => (folder === '' ? [] : folder.split('/')))
    this.#folders = new Set()
    this.#isEverything = false
    this.#firstAt = undefined
    this.#hand(changes)
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#folders = new Set()
    this.#firstAt = undefined
  }

  /** One timer, that looks when it fires whether it has been quiet: changes come by the thousand. */
  #arm(): void {
    const now = this.#clock.monotonicMs()
    this.#lastAt = now
    this.#firstAt ??= now
    if (!this.#cancel) this.#wait(this.#quietMs)
    this.#onChange()
  }

  #wait(ms: number): void {
    this.#cancel = this.#clock.timer(ms, () => {
      this.#cancel = undefined
      const now = this.#clock.monotonicMs()
      const leftMs = Math.min(this.#lastAt + this.#quietMs, this.#firstAt! + WAIT_MS_MAX) - now
      if (leftMs > 0) this.#wait(leftMs)
      else this.flush()
    })
  }
}
