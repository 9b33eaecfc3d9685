/**
 * Collects the folders in which something happened, and hands them over when it is quiet: a program that saves a file in
 * ten steps causes one look.
 *
 *   empty ──a change──▶ waiting ──2 s of quiet, or 10 s in all──▶ handed over, empty
 */
import type { CancelTimer, Clock } from '../../../base/clock.ts'

/** Folders by their names from the root. */
export type Changes = 'everything' | string[][]

const QUIET_MS = 2_000
const WAIT_MS_MAX = 10_000
const FOLDERS_MAX = 100_000

/** A set of folders. Beyond `foldersMax` of them it is `everything`: a scan costs less than that many looks. */
export class ChangedFolders {
  readonly #foldersMax: number
  #paths = new Set<string>()
  #isEverything = false

  constructor(foldersMax = FOLDERS_MAX) {
    this.#foldersMax = foldersMax
  }

  get isEmpty(): boolean {
    return this.#paths.size === 0 && !this.#isEverything
  }

  /** No name has a slash in it. */
  add(changes: 'everything' | readonly (readonly string[])[]): void {
    if (changes === 'everything') this.#isEverything = true
    else if (!this.#isEverything) for (const names of changes) this.#paths.add(names.join('/'))
    if (this.#paths.size > this.#foldersMax) this.#isEverything = true
    if (this.#isEverything) this.#paths = new Set()
  }

  /** Gives all of it away, and is empty then. */
  take(): Changes {
    const changes: Changes = this.#isEverything
      ? 'everything'
      : [...this.#paths].map((path) => (path === '' ? [] : path.split('/')))
    this.#paths = new Set()
    this.#isEverything = false
    return changes
  }
}

export class ChangeBuffer {
  readonly #clock: Clock
  readonly #hand: (changes: Changes) => void
  readonly #onChange: () => void
  readonly #quietMs: number
  readonly #changed: ChangedFolders
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
    this.#changed = new ChangedFolders(options.foldersMax)
  }

  add(folder: readonly string[]): void {
    this.#changed.add([folder])
    this.#arm()
  }

  addEverything(): void {
    this.#changed.add('everything')
    this.#arm()
  }

  /** Hands over what there is, at once. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#firstAt === undefined) return
    this.#firstAt = undefined
    this.#hand(this.#changed.take())
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#changed.take()
    this.#firstAt = undefined
  }

  /** There is one timer, which checks when it fires whether it has been quiet: changes come by the thousand. */
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
