/** A local tree without a database: for tests, and for a look at a folder that nobody keeps (a dry run). */
import type { LocalObservation } from '../store/contract.ts'
import type { SeenFolder } from '../store/seen-folders.ts'
import type { LocalRow, LocalStat } from '../trees.ts'
import { digestOfRows } from './folder-digest.ts'
import type { KnownTree } from './scan-options.ts'
import { isSameStat } from './stat.ts'

export class TreeInMemory implements KnownTree {
  readonly rows = new Map<number, LocalRow>()
  /** Whether it knows digests, of all folders. */
  hasDigests = false
  readonly #below = new Map<number | null, Set<number>>()
  readonly #byInode = new Map<string, Set<number>>()
  #nextId = 2

  constructor(rootStat: LocalStat) {
    this.#put({
      id: 1,
      parentId: null,
      name: '',
      type: 'folder',
      ...rootStat,
      hash: null,
      sha256: null,
      itemId: null,
      isMissing: false,
      unreadable: null,
    })
  }

  async root(): Promise<LocalRow> {
    return this.rows.get(1)!
  }

  async children(parentId: number): Promise<LocalRow[]> {
    return this.#rowsOf(this.#below.get(parentId))
  }

  async seen(folderId: number): Promise<SeenFolder | undefined> {
    const rows = this.#rowsOf(this.#below.get(folderId)).filter(({ isMissing }) => !isMissing)
    if (!this.hasDigests || rows.some(({ unreadable }) => unreadable !== null)) return undefined
    return { digest: digestOfRows(rows), folders: rows.filter(({ type }) => type === 'folder') }
  }

  async byInode({ dev, ino }: Pick<LocalStat, 'dev' | 'ino'>): Promise<LocalRow[]> {
    return this.#rowsOf(this.#byInode.get(`${dev}:${ino}`))
  }

  async path(id: number): Promise<string[] | undefined> {
    const names: string[] = []
    let row = this.rows.get(id)
    for (; row && row.parentId !== null; row = this.rows.get(row.parentId)) names.unshift(row.name)
    return row && names
  }

  async at(names: readonly string[]): Promise<LocalRow | undefined> {
    let row = this.rows.get(1)
    for (const name of names) row = row && this.#at(row.id, name)
    return row
  }

  async takeIds(count: number): Promise<number> {
    this.#nextId += count
    return this.#nextId - count
  }

  /** As the store does, and it refuses two rows at one place just as well. */
  see(observations: readonly LocalObservation[]): void {
    for (const one of observations) {
      if (one.seen === 'missing') this.#missing(one)
      else if (one.seen === 'changed') this.#changed(one)
      else this.#new(one)
    }
  }

  #new({ id, parentId, name, type, stat, unreadable }: Extract<LocalObservation, { seen: 'new' }>): void {
    this.#put({
      id,
      parentId,
      name,
      type,
      ...stat,
      hash: null,
      sha256: null,
      itemId: null,
      isMissing: false,
      unreadable: unreadable ?? null,
    })
  }

  #changed({ seen: _, stat, ...change }: Extract<LocalObservation, { seen: 'changed' }>): void {
    const before = this.rows.get(change.id)
    if (!before) return
    const isOther = stat && before.type === 'file' && !isSameStat(before, stat)
    this.#put({
      ...before,
      ...stat,
      ...change,
      isMissing: false,
      ...(isOther && { hash: null, sha256: null }),
    })
  }

  #missing({ id, parentId, name }: Extract<LocalObservation, { seen: 'missing' }>): void {
    const row = this.rows.get(id)
    if (!row || row.parentId !== parentId || row.name !== name) return
    const branch = [row]
    for (const one of branch) {
      this.#put({ ...one, isMissing: true })
      branch.push(...this.#rowsOf(this.#below.get(one.id)))
    }
  }

  #put(row: LocalRow): void {
    const other = row.parentId === null || row.isMissing ? undefined : this.#at(row.parentId, row.name)
    if (other && other.id !== row.id) {
      throw new Error(`two rows at ${row.name} in ${row.parentId}: ${other.id} and ${row.id}`)
    }
    const before = this.rows.get(row.id)
    if (before) {
      this.#below.get(before.parentId)!.delete(row.id)
      this.#byInode.get(`${before.dev}:${before.ino}`)!.delete(row.id)
    }
    this.rows.set(row.id, row)
    add(this.#below, row.parentId, row.id)
    add(this.#byInode, `${row.dev}:${row.ino}`, row.id)
  }

  #at(parentId: number, name: string): LocalRow | undefined {
    return this.#rowsOf(this.#below.get(parentId)).find((row) => row.name === name && !row.isMissing)
  }

  #rowsOf(ids: ReadonlySet<number> | undefined): LocalRow[] {
    return [...(ids ?? [])].map((id) => this.rows.get(id)!)
  }
}

function add<Key>(index: Map<Key, Set<number>>, key: Key, id: number): void {
  const ids = index.get(key)
  if (ids) ids.add(id)
  else index.set(key, new Set([id]))
}
