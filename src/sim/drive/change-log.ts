/**
 * The changes of one user or of one shared drive.
 *
 * Invariants:
 * - A thing is in the log once, at its last change; what a change says is read when it is asked for.
 * - A token is a position: all that changed at it or later is still to come. Tokens never end.
 * - Each log counts from its own beginning, so that a token of one means nothing to another.
 */
export type Change = { position: number; atMs: number; kind: 'file' | 'drive'; id: string }

export type ChangePage = { changes: Change[]; next: number; isLast: boolean }

export class ChangeLog {
  readonly #first: number
  readonly #changes: (Change | undefined)[] = []
  readonly #latest = new Map<string, number>()

  constructor(first: number) {
    this.#first = first
  }

  /** The position of the change that comes next. */
  get next(): number {
    return this.#first + this.#changes.length
  }

  has(id: string): boolean {
    return this.#latest.has(id)
  }

  add(kind: Change['kind'], id: string, atMs: number): void {
    const before = this.#latest.get(id)
    if (before !== undefined) this.#changes[before - this.#first] = undefined
    const position = this.next
    this.#latest.set(id, position)
    this.#changes.push({ position, atMs, kind, id })
  }

  /** Undefined for a token that this log never gave. */
  page(token: string, size: number): ChangePage | undefined {
    if (!/^\d{1,15}$/.test(token)) return undefined
    const from = Number(token)
    if (from < this.#first || from > this.next) return undefined
    const changes: Change[] = []
    let at = from - this.#first
    for (; at < this.#changes.length && changes.length < size; at++) {
      const change = this.#changes[at]
      if (change) changes.push(change)
    }
    while (at < this.#changes.length && this.#changes[at] === undefined) at += 1
    return { changes, next: this.#first + at, isLast: at >= this.#changes.length }
  }
}
