/**
 * What delta is made of: the order of all changes of a drive, of which only the last of each item counts.
 *
 * Invariants:
 * - An entry is live as long as its item has not changed again; dead entries are dropped when they are many.
 * - Whoever has read to the end of the log and removes what is under a deleted folder has the drive as it is.
 *   An item that was deleted with a folder above it has a row of its own only if it had changed before, since
 *   only then a reader may believe it elsewhere.
 */
import { ancestorsOf, type Item, isWithin } from './item.ts'

export type DeltaRow = {
  item: Item
  isDeleted: boolean
  /** An earlier occurrence, out of date: the last one wins. */
  isStale?: boolean
}

export type DeltaPage = {
  rows: DeltaRow[]
  /** How far this page has read. */
  cursor: DeltaCursor
  isLast: boolean
}

export type DeltaCursor = {
  /** The last entry that was read. */
  seq: number
  /** The first listing of everything began at this entry; what was deleted until then is not mentioned. */
  fullUntil?: number
}

export type DeltaRequest = {
  cursor: DeltaCursor
  rowsMax: number
  /** Only of this folder and what is in it; what was moved out of it is deleted there. */
  within?: Item
  /** Later changes are not visible yet. */
  untilMs?: number
}

type Entry = { seq: number; item: Item; atMs: number }

const COMPACT_FROM = 10_000

export class ChangeLog {
  #entries: Entry[] = []
  #dead = 0
  #seq = 0

  get seq(): number {
    return this.#seq
  }

  /** A new item, or one that has changed again. */
  note(item: Item, atMs: number): void {
    if (item.seq > 0) this.#dead += 1
    this.#seq += 1
    item.seq = this.#seq
    this.#entries.push({ seq: this.#seq, item, atMs })
    if (this.#entries.length > COMPACT_FROM && this.#dead > this.#entries.length / 2) this.#compact()
  }

  page({ cursor, rowsMax, untilMs, within }: DeltaRequest): DeltaPage {
    const rows: DeltaRow[] = []
    const listed = new Set<Item>()
    const isFull = cursor.fullUntil !== undefined
    let { seq } = cursor
    let at = this.#after(seq)
    for (; at < this.#entries.length; at++) {
      const entry = this.#entries[at]!
      if (untilMs !== undefined && entry.atMs > untilMs) break
      if (!isShown(entry, cursor, within)) {
        seq = entry.seq
        continue
      }
      const { item } = entry
      const isDeleted = item.deleted !== 'no' || !isInside(item, within)
      // In a listing of everything the folders come anyway, unless they are too new to be seen. Those that would come
      // later come first nevertheless: clients pass over what lies in a folder that they do not know.
      const hasCome = (one: Item): boolean => isFull && untilMs === undefined && one.seq < entry.seq
      const above = ancestorsOf(item).filter(
        (one) => one.deleted === 'no' && !listed.has(one) && !hasCome(one) && isInside(one, within),
      )
      if (rows.length > 0 && rows.length + above.length + 1 > rowsMax) break
      for (const one of above.reverse()) {
        listed.add(one)
        rows.push({ item: one, isDeleted: false })
      }
      if (!listed.has(item)) rows.push({ item, isDeleted })
      listed.add(item)
      seq = entry.seq
      if (rows.length >= rowsMax) {
        at += 1
        break
      }
    }
    const isLast = !this.#isMoreAfter(at, { cursor, untilMs, within })
    const next: DeltaCursor = { seq }
    if (cursor.fullUntil !== undefined && !isLast) next.fullUntil = cursor.fullUntil
    return { rows, cursor: next, isLast }
  }

  /** A page that ends exactly with the last change is the last one. */
  #isMoreAfter(
    from: number,
    {
      cursor,
      untilMs,
      within,
    }: { cursor: DeltaCursor; untilMs: number | undefined; within: Item | undefined },
  ): boolean {
    for (let at = from; at < this.#entries.length; at++) {
      const entry = this.#entries[at]!
      if (untilMs !== undefined && entry.atMs > untilMs) return false
      if (isShown(entry, cursor, within)) return true
    }
    return false
  }

  /** The position of the first entry after a sequence number. */
  #after(seq: number): number {
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#entries[middle]!.seq <= seq) low = middle + 1
      else high = middle
    }
    return low
  }

  #compact(): void {
    this.#entries = this.#entries.filter(({ seq, item }) => item.seq === seq)
    this.#dead = 0
  }
}

function isShown({ seq, item }: Entry, { fullUntil }: DeltaCursor, within: Item | undefined): boolean {
  if (item.seq !== seq) return false
  const isHere = isInside(item, within)
  if (!isHere && !item.left?.has(within!)) return false
  return !((item.deleted !== 'no' || !isHere) && fullUntil !== undefined && seq <= fullUntil)
}

function isInside(item: Item, within: Item | undefined): boolean {
  return within === undefined || isWithin(item, within)
}
