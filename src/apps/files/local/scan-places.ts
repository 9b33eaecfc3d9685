/**
 * Who is where, in the course of one scan: collects what was seen, in an order in which the local tree can take it.
 *
 * The tree has one row a place. So what comes to a place whose row is still there waits (`waiting`) until that row has
 * moved on, or until everything else has been looked at and it is clear that it has not. A circle of names is broken
 * by a name that no file can have.
 *
 * Invariants:
 * - a row is claimed at most once, and what is claimed is not missing
 * - a folder is seen before what is in it
 * - no folder is called missing before everything was looked at: all that it holds goes missing with it
 * - what has something that cannot be synced in its place, or has become that itself, is not missing: it is `aside`
 */
import type { LocalObservation } from '../store/contract.ts'
import { ASIDE, type FileType, isAside, type LocalRow, type LocalStat } from '../trees.ts'
import { isSameThing } from './stat.ts'

const IDS_MIN = 16

/** A folder to read. */
export type FolderTask = {
  id: number
  names: readonly string[]
  /** Where it is on the disk: not the same where a link was followed. */
  path: string
  stat: LocalStat
  unreadable: string | null
  /** It has no rows yet. */
  isNew: boolean
  /** Folders in it that are as they were are read, too. */
  isDeep: boolean
  isBelowLink: boolean
}

export type Entry = {
  name: string
  type: FileType | 'other'
  stat: LocalStat
  path: string
  isLink: boolean
}

/** Something at a place; `row` where it is known from elsewhere. */
export type Arrival = {
  folder: FolderTask
  entry: Entry
  row: LocalRow | undefined
  unreadable: string | null
  /** It cannot be synced: why nothing is known of what had its place. */
  hides: string | null
}
type Waiting = Arrival & { blocker: LocalRow }
type Missing = {
  row: LocalRow
  parentId: number
  name: string
  names: readonly string[]
  isReplaced: boolean
}

export class Places {
  readonly #takeId: () => number
  readonly #goInto: (task: FolderTask) => void
  readonly #claimed = new Set<number>()
  /** Folders that had them. */
  readonly #claimedIn = new Set<number | null>()
  /** Rows whose new place has been told. */
  readonly #movedOn = new Set<number>()
  readonly #missing = new Map<number, Missing>()
  /** Rows of which nothing is known, and why. */
  readonly #aside = new Map<number, { row: LocalRow; reason: string }>()
  /** What takes no part, by its identity: who is not at his place may have become that. */
  readonly #leftOut = new Map<string, { stat: LocalStat; reason: string }>()
  /** Folders that are gone, and held something that is left out now. */
  readonly #emptied = new Set<number>()
  /** Why it is not sure of anything missing that it was deleted. */
  #doubt: string | undefined
  #waiting: Waiting[] = []
  out: LocalObservation[] = []

  constructor(options: { takeId: () => number; goInto: (task: FolderTask) => void }) {
    this.#takeId = options.takeId
    this.#goInto = options.goInto
  }

  isClaimed(id: number): boolean {
    return this.#claimed.has(id)
  }

  /** Whether one of the rows of this folder is claimed. */
  hasClaimedIn(folderId: number): boolean {
    return this.#claimedIn.has(folderId)
  }

  claim(row: LocalRow): void {
    this.#claimed.add(row.id)
    this.#claimedIn.add(row.parentId)
    this.#missing.delete(row.id)
    this.#aside.delete(row.id)
  }

  /** Something that cannot be synced is at its place. */
  aside(row: LocalRow, reason: string): void {
    if (this.#claimed.has(row.id)) return
    this.#missing.delete(row.id)
    this.#aside.set(row.id, { row, reason })
  }

  /** Seen under a name that takes no part. */
  leftOut(stat: LocalStat, reason: string): void {
    this.#leftOut.set(`${stat.dev}:${stat.ino}`, { stat, reason })
  }

  /** Why a row that is not at its place takes no part, if that is so. */
  leftOutAs(row: LocalRow): string | undefined {
    const found = this.#leftOut.get(`${row.dev}:${row.ino}`)
    return found && isSameThing(found.stat, row) ? found.reason : undefined
  }

  /** Something that was in this folder is not deleted, but left out: so the folder is not to be deleted either. */
  emptied({ id }: LocalRow): void {
    this.#emptied.add(id)
  }

  /** Not everything was looked at where it may be: it is missing, but somebody is to say whether it was deleted. */
  doubtMissing(reason: string): void {
    this.#doubt = reason
  }

  /** Its place was looked at, and it is not there. */
  notThere(row: LocalRow, folder: FolderTask): void {
    if (this.#claimed.has(row.id)) return
    const { name } = row
    this.#missing.set(row.id, {
      row,
      parentId: folder.id,
      name,
      names: [...folder.names, name],
      isReplaced: isNowhere(row),
    })
  }

  /** `occupant`: the row that has this place in the tree. */
  arrive(arrival: Arrival, occupant: LocalRow | undefined): void {
    if (occupant && !this.#movedOn.has(occupant.id)) this.#waiting.push({ ...arrival, blocker: occupant })
    else this.#place(arrival)
  }

  /** Rows that are not at their place and, when everything was looked at, nowhere else. */
  get gone(): readonly LocalRow[] {
    const replaced = this.#waiting.filter(
      ({ blocker, hides }) => hides === null && !this.#claimed.has(blocker.id),
    )
    const rows = [...this.#missing.values(), ...replaced.map(({ blocker }) => ({ row: blocker }))]
    return [...new Map(rows.map(({ row }) => [row.id, row])).values()]
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Lets in what can be let in; true if there is something new to read or to try. */
  letIn(): boolean {
    if (this.#waiting.length === 0) return false
    const before = this.#waiting
    this.#waiting = []
    let isMoving = false
    for (const one of before) {
      if (this.#tryOne(one)) isMoving = true
      else this.#waiting.push(one)
    }
    return isMoving || this.#breakCircle()
  }

  #tryOne(one: Waiting): boolean {
    const { blocker, entry } = one
    if (this.#movedOn.has(blocker.id)) {
      this.#place(one)
      return true
    }
    if (this.#claimed.has(blocker.id) || one.hides !== null) return false
    if (blocker.type !== 'folder') {
      this.#gone(blocker, one.folder)
      this.#place(one)
      return true
    }
    // Another folder at the same path, and the one that was there is nowhere else: it goes on as that one.
    if (entry.type !== 'folder' || one.row) return false
    this.claim(blocker)
    this.#movedOn.add(blocker.id)
    this.out.push({ seen: 'changed', id: blocker.id, stat: entry.stat, ...unreadableOf(one, blocker) })
    this.#walk(one, blocker.id, { isNew: false })
    return true
  }

  /** A folder that waits comes in: who has its place gets a name that no file can have, until it is known better. */
  #breakCircle(): boolean {
    const index = this.#waiting.findIndex(
      ({ entry, blocker, hides }) =>
        (entry.type === 'folder' && hides === null) || this.#claimed.has(blocker.id),
    )
    const one = this.#waiting[index]
    if (!one) return false
    this.#waiting.splice(index, 1)
    const { blocker } = one
    const name = nowhereName(blocker)
    this.out.push({ seen: 'changed', id: blocker.id, name })
    this.#movedOn.add(blocker.id)
    const missing = this.#missing.get(blocker.id)
    if (missing) this.#missing.set(blocker.id, { ...missing, name, isReplaced: true })
    this.#place(one)
    return true
  }

  #place(arrival: Arrival): void {
    const { folder, entry, row } = arrival
    if (row) {
      this.#movedOn.add(row.id)
      this.out.push({
        seen: 'changed',
        id: row.id,
        parentId: folder.id,
        name: entry.name,
        stat: entry.stat,
        ...unreadableOf(arrival, row),
      })
      this.#walk(arrival, row.id, { isNew: false })
      return
    }
    const id = this.#takeId()
    this.out.push({
      seen: 'new',
      id,
      parentId: folder.id,
      name: entry.name,
      type: entry.type,
      stat: entry.stat,
      ...(arrival.unreadable !== null && { unreadable: arrival.unreadable }),
    })
    this.#walk(arrival, id, { isNew: true })
  }

  #walk({ folder, entry, row, unreadable }: Arrival, id: number, { isNew }: { isNew: boolean }): void {
    if (entry.type !== 'folder' || unreadable !== null) return
    this.#goInto({
      id,
      names: [...folder.names, entry.name],
      path: entry.path,
      stat: entry.stat,
      unreadable: row?.unreadable ?? null,
      isNew,
      isDeep: true,
      isBelowLink: folder.isBelowLink || entry.isLink,
    })
  }

  #gone(row: LocalRow, folder: FolderTask): void {
    this.#missing.delete(row.id)
    this.#movedOn.add(row.id)
    this.out.push({ seen: 'missing', id: row.id, parentId: folder.id, name: row.name })
  }

  /**
   * Everything that was asked for has been looked at; `isWhole`: the whole root. `isBack` says of a place whether
   * something is there by now: then it is left for the next look.
   */
  settle({ isBack, isWhole }: { isBack: (names: readonly string[]) => boolean; isWhole: boolean }): void {
    // Only files are left that wait for a folder which is gone, and what hides who had its place.
    for (const one of this.#waiting) {
      if (one.hides !== null && !this.#claimed.has(one.blocker.id)) {
        this.aside(one.blocker, one.hides)
        continue
      }
      this.#tellDoubt(one.blocker)
      this.#gone(one.blocker, one.folder)
      this.#place(one)
    }
    this.#waiting = []
    for (const missing of this.#missing.values()) this.#settleMissing(missing, { isBack, isWhole })
    this.#missing.clear()
    for (const { row, reason } of this.#aside.values()) {
      if (row.isMissing || row.unreadable !== reason)
        this.out.push({ seen: 'changed', id: row.id, unreadable: reason })
    }
    this.#aside.clear()
  }

  #settleMissing(
    { row, parentId, name, names, isReplaced }: Missing,
    { isBack, isWhole }: { isBack: (names: readonly string[]) => boolean; isWhole: boolean },
  ): void {
    const reason = this.#whyKept(row)
    if (!isReplaced && reason !== undefined) this.#aside.set(row.id, { row, reason })
    // Where it has become something that takes no part, only a look at everything finds that.
    else if (isAside(row) && !isWhole) return
    else if (isReplaced || !isBack(names)) {
      this.#tellDoubt(row)
      this.out.push({ seen: 'missing', id: row.id, parentId, name })
    }
  }

  #whyKept(row: LocalRow): string | undefined {
    return this.leftOutAs(row) ?? (this.#emptied.has(row.id) ? ASIDE.emptied : undefined)
  }

  /** Before it is told as missing: what is missing for a reason is deleted in OneDrive only after a yes. */
  #tellDoubt(row: LocalRow): void {
    const unreadable = this.#whyKept(row) ?? this.#doubt
    if (unreadable !== undefined && row.unreadable === null)
      this.out.push({ seen: 'changed', id: row.id, unreadable })
  }
}

/** Ids for rows that are not written yet: asked for in advance, as `Places` does not wait. */
export class RowIds {
  readonly #tree: { takeIds(count: number): Promise<number> }
  #ranges: { next: number; end: number }[] = []

  constructor(tree: { takeIds(count: number): Promise<number> }) {
    this.#tree = tree
  }

  async reserve(count: number): Promise<void> {
    const left = this.#ranges.reduce((sum, { next, end }) => sum + end - next, 0)
    if (left >= count) return
    const taken = Math.max(count - left, IDS_MIN)
    const next = await this.#tree.takeIds(taken)
    this.#ranges.push({ next, end: next + taken })
  }

  take(): number {
    const range = this.#ranges[0]
    if (!range) throw new RangeError('ids must be reserved before they are given')
    const id = range.next++
    if (range.next === range.end) this.#ranges = this.#ranges.slice(1)
    return id
  }
}

function unreadableOf({ unreadable }: Arrival, row: LocalRow): { unreadable?: string | null } {
  return row.unreadable === unreadable ? {} : { unreadable }
}

/** Of a row that had to make room, and of which it is not known yet where it went. */
function nowhereName({ name, id }: LocalRow): string {
  return `${name}/${id}`
}

/** A scan that stopped half-way leaves such a row. No file has a slash in its name. */
export function isNowhere({ name }: Pick<LocalRow, 'name'>): boolean {
  return name.includes('/')
}

export function toTask(
  row: LocalRow,
  place: Pick<FolderTask, 'names' | 'path' | 'stat' | 'isDeep'>,
): FolderTask {
  return {
    id: row.id,
    unreadable: row.unreadable,
    isNew: false,
    isBelowLink: false,
    names: place.names,
    path: place.path,
    stat: place.stat,
    isDeep: place.isDeep,
  }
}
