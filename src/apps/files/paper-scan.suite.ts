/**
 * A look at the folder on paper, one folder a step, as local/scan.ts does it on a disk: rows before the listing, files
 * by their place first, folders by what they are first, and what is missing at the very end.
 */
import { type Arrival, type Entry, type FolderTask, Places } from './local/scan-places.ts'
import { isSameStat, isSameThing } from './local/stat.ts'
import type { PaperFile, PaperFolder } from './paper-sides.suite.ts'
import type { LocalObservation } from './store/contract.ts'
import type { FileStore } from './store/file-store.ts'
import { type LocalRow, ROOT_ID } from './trees.ts'

const IDS = 500

export class PaperScan {
  readonly #store: FileStore
  readonly #pair: string
  readonly #folder: PaperFolder
  readonly #stack: FolderTask[] = []
  readonly #places: Places
  #nextId = 0

  private constructor(store: FileStore, pair: string, folder: PaperFolder) {
    this.#store = store
    this.#pair = pair
    this.#folder = folder
    this.#places = new Places({ takeId: () => this.#nextId++, goInto: (task) => this.#stack.push(task) })
  }

  /** Of everything, or of one folder that is where its row says. */
  static async begin(
    store: FileStore,
    pair: string,
    folder: PaperFolder,
    only?: PaperFile,
  ): Promise<PaperScan> {
    const scan = new PaperScan(store, pair, folder)
    scan.#nextId = await store.takeLocalIds(pair, IDS)
    const names = only ? folder.namesOf(only.id) : []
    const row = await store.localAt(pair, names)
    const isKnown = only && row && isSameThing(row, folder.stat(only))
    const at = isKnown ? only : folder.things.get(folder.root)!
    scan.#stack.push({
      id: isKnown ? row.id : ROOT_ID,
      names: isKnown ? names : [],
      path: '',
      stat: folder.stat(at),
      unreadable: null,
      isNew: false,
      isDeep: only === undefined,
      isBelowLink: false,
    })
    return scan
  }

  /** Looks at one more folder; what it saw where that was the last one. */
  async step(): Promise<LocalObservation[] | undefined> {
    const task = this.#stack.pop()
    if (task) {
      await this.#read(task)
      return undefined
    }
    if (this.#places.letIn()) return undefined
    this.#places.settle({
      isBack: (names) => this.#folder.resolve(names) !== undefined,
      isWhole: true,
    })
    return this.#places.out
  }

  async #read(task: FolderTask): Promise<void> {
    const rows = task.isNew ? [] : await this.#store.localChildren(this.#pair, task.id)
    const self = this.#folder.resolve(task.names)
    if (self?.type !== 'folder' || !isSameThing(this.#folder.stat(self), task.stat)) return
    const here = new Map<string, LocalRow>()
    for (const row of rows) if (!row.isMissing && !this.#places.isClaimed(row.id)) here.set(row.name, row)
    const accounted = new Set<string>()
    const strangers: Entry[] = []
    for (const thing of this.#folder.children(self.id)) {
      const entry = {
        name: thing.name,
        type: thing.type,
        stat: this.#folder.stat(thing),
        path: '',
        isLink: false,
      }
      if (this.#isKnown(task, here.get(entry.name), entry)) accounted.add(entry.name)
      else strangers.push(entry)
    }
    const occupants = new Map(rows.filter((row) => !row.isMissing).map((row) => [row.name, row]))
    for (const entry of strangers) {
      const moved = await this.#movedRow(task, entry, { rows, accounted })
      const row = moved ?? (occupants.has(entry.name) ? undefined : this.#formerRow(rows, entry))
      if (row) this.#places.claim(row)
      const arrival: Arrival = { folder: task, entry, row, unreadable: null, hides: null }
      this.#places.arrive(arrival, occupants.get(entry.name))
    }
    for (const row of here.values()) if (!accounted.has(row.name)) this.#places.notThere(row, task)
  }

  #isKnown(task: FolderTask, row: LocalRow | undefined, entry: Entry): boolean {
    if (row?.type !== entry.type) return false
    if (entry.type === 'file') {
      if (!isSameStat(row, entry.stat))
        this.#places.out.push({ seen: 'changed', id: row.id, stat: entry.stat })
      return true
    }
    if (!isSameThing(row, entry.stat)) return false
    const names = [...task.names, entry.name]
    if (task.isDeep) {
      this.#stack.push({
        id: row.id,
        names,
        path: '',
        stat: entry.stat,
        unreadable: null,
        isNew: false,
        isDeep: true,
        isBelowLink: false,
      })
    }
    return true
  }

  async #movedRow(
    task: FolderTask,
    entry: Entry,
    { rows, accounted }: { rows: readonly LocalRow[]; accounted: ReadonlySet<string> },
  ): Promise<LocalRow | undefined> {
    const found = await this.#store.localByInode(this.#pair, entry.stat)
    const candidates = [...rows.filter((row) => row.ino === entry.stat.ino), ...found]
    candidates.sort((one, other) => Number(one.isMissing) - Number(other.isMissing))
    for (const row of candidates) {
      if (row.type !== entry.type || this.#places.isClaimed(row.id) || !isSameThing(row, entry.stat)) continue
      const hasLeft =
        row.parentId === task.id ? row.isMissing || !accounted.has(row.name) : await this.#hasLeft(row)
      if (hasLeft) return row
    }
    return undefined
  }

  async #hasLeft(row: LocalRow): Promise<boolean> {
    const names = await this.#store.localPath(this.#pair, row.id)
    const thing = names && this.#folder.resolve(names)
    if (!thing) return true
    return row.type === 'file' ? thing.type !== 'file' : !isSameThing(this.#folder.stat(thing), row)
  }

  #formerRow(rows: readonly LocalRow[], entry: Entry): LocalRow | undefined {
    return rows.findLast(
      (row) =>
        row.isMissing &&
        row.name === entry.name &&
        row.type === entry.type &&
        !this.#places.isClaimed(row.id),
    )
  }
}
