/**
 * One watch for every folder of the root (Linux). Memory is by folder: a watch, a name and a number.
 *
 * Invariants:
 * - a folder has a watch if the one above it has, it takes part in the sync, and it was there when the one above it was
 *   last heard of
 * - a folder that gets its watch later, because it is new or has moved, is told once it has it: what happened in it
 *   before was heard by nobody, or under a path that is not its own any more
 */
import { type Dirent, type FSWatcher, lstatSync, readdirSync, readFileSync } from 'node:fs'
import type { Filter } from '../filter.ts'
import { OWN_FOLDER } from '../names.ts'
import { nameKey } from '../trees.ts'
import type { Root } from './root.ts'
import { errnoOf, lookAt } from './stat.ts'

export type Listener = (event: string, name: string | null) => void
/** As fs.watch. */
export type WatchCall = (
  path: string,
  options: { recursive: boolean; persistent: boolean },
  listener: Listener,
) => Pick<FSWatcher, 'close' | 'on'>

type Watched = {
  parent: Watched | undefined
  name: string
  ino: string
  watcher: Pick<FSWatcher, 'close'> | undefined
  below: Map<string, Watched> | undefined
}

type Options = {
  root: Root
  filter: Filter
  watch: WatchCall
  onChange: (folder: string[]) => void
  /** So much happened at once that some of it was not told. */
  onTooMuch: () => void
  onProblem: (error: unknown) => void
}

/** Folders that are added before other work gets its turn. */
const FOLDERS_A_TURN = 100
/** Between the making of a file and what is done to it at once. */
const NEW_MS = 2_000
/** The kernel's own limit where it cannot be read. */
const QUEUE_MAX = 16_384

export class WatchedFolders {
  readonly #options: Options
  readonly #top: Watched
  readonly #queueMax = queueMax()
  #count = 0
  #isClosed = false
  #eventsThisTurn = 0
  #adding: Promise<void> = Promise.resolve()

  constructor(options: Options) {
    this.#options = options
    const { ino } = options.root.look
    this.#top = { parent: undefined, name: '', ino, watcher: undefined, below: undefined }
  }

  get count(): number {
    return this.#count
  }

  async start(): Promise<void> {
    await this.#addBranch(this.#top, () => undefined)
  }

  close(): void {
    this.#isClosed = true
    this.#drop(this.#top)
  }

  /** The watch comes before the folder is read, so that what appears in between is told. */
  async #addBranch(first: Watched, onWatched: (folder: Watched) => void): Promise<void> {
    const stack = [first]
    for (let folder = stack.pop(), turn = 1; folder; folder = stack.pop(), turn++) {
      if (this.#isClosed || !this.#isIn(folder)) continue
      if (!this.#watch(folder)) continue
      onWatched(folder)
      for (const name of this.#foldersIn(folder)) {
        const child = this.#child(folder, name)
        if (child) stack.push(child)
      }
      if (turn % FOLDERS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #watch(folder: Watched): boolean {
    try {
      const path = this.#path(folder)
      const options = { recursive: false, persistent: false }
      const watcher = this.#options.watch(path, options, (event, name) => this.#heard(folder, event, name))
      watcher.on('error', (error) => this.#options.onProblem(error))
      folder.watcher = watcher
      this.#count += 1
      return true
    } catch (error) {
      const code = errnoOf(error)
      // Gone already, or not ours to read: the scan says so.
      if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') this.#drop(folder)
      else this.#options.onProblem(error)
      return false
    }
  }

  #heard(folder: Watched, event: string, name: string | null): void {
    if (this.#isClosed || !folder.watcher) return
    this.#countEvent()
    const names = this.#names(folder)
    if (name !== null) {
      if (folder === this.#top && nameKey(name) === OWN_FOLDER) return
      if (event === 'rename') this.#mindChild(folder, name)
      const isLeftOut =
        this.#options.filter.excluded([...names, name].join('/'), { type: 'file' }) !== undefined
      if (isLeftOut && !(event === 'rename' && this.#wasOther(folder, name))) return
    }
    this.#options.onChange(names)
  }

  /** Node does not tell when the kernel's queue ran over; but all of a full queue is heard in one turn. */
  #countEvent(): void {
    if (this.#eventsThisTurn++ === 0) {
      setImmediate(() => {
        if (this.#eventsThisTurn >= this.#queueMax) this.#options.onTooMuch()
        this.#eventsThisTurn = 0
      })
    }
  }

  /** Something appeared or went away under this name. */
  #mindChild(folder: Watched, name: string): void {
    const known = folder.below?.get(name)
    const look = lookAt(`${this.#path(folder)}/${name}`)
    const isSame = known !== undefined && look?.type === 'folder' && look.ino === known.ino
    if (isSame) return
    if (known) this.#drop(known)
    if (look?.type !== 'folder') return
    const child = this.#child(folder, name)
    // One after the other: a tree that is unpacked here is walked once.
    if (!child) return
    const tell = (one: Watched): void => this.#options.onChange(this.#names(one))
    this.#adding = this.#adding.then(() => this.#addBranch(child, tell))
  }

  /** A new file that is left out says nothing; one that is older has got this name, and is missed elsewhere. */
  #wasOther(folder: Watched, name: string): boolean {
    const stats = lstatSync(`${this.#path(folder)}/${name}`, { throwIfNoEntry: false })
    return stats !== undefined && stats.ctimeMs - stats.birthtimeMs > NEW_MS
  }

  #child(folder: Watched, name: string): Watched | undefined {
    const known = folder.below?.get(name)
    if (known) return undefined
    const path = [...this.#names(folder), name].join('/')
    if (this.#options.filter.excluded(path, { type: 'folder' }) !== undefined) return undefined
    const look = lookAt(`${this.#path(folder)}/${name}`)
    if (look?.type !== 'folder') return undefined
    const child: Watched = { parent: folder, name, ino: look.ino, watcher: undefined, below: undefined }
    folder.below ??= new Map()
    folder.below.set(name, child)
    return child
  }

  #foldersIn(folder: Watched): string[] {
    let entries: Dirent[]
    try {
      entries = readdirSync(this.#path(folder), { withFileTypes: true })
    } catch {
      return [] // gone or not readable: the scan says so
    }
    const isOwn = (name: string): boolean => folder === this.#top && nameKey(name) === OWN_FOLDER
    return entries.filter((entry) => entry.isDirectory() && !isOwn(entry.name)).map((entry) => entry.name)
  }

  #drop(folder: Watched): void {
    if (folder.parent?.below?.get(folder.name) === folder) folder.parent.below.delete(folder.name)
    const branch = [folder]
    for (const one of branch) {
      if (one.watcher) this.#count -= 1
      one.watcher?.close()
      one.watcher = undefined
      branch.push(...(one.below?.values() ?? []))
      one.below = undefined
    }
  }

  /** Not dropped since it was to be added. */
  #isIn(folder: Watched): boolean {
    let one = folder
    for (; one.parent; one = one.parent) if (one.parent.below?.get(one.name) !== one) return false
    return one === this.#top
  }

  #names(folder: Watched): string[] {
    const names: string[] = []
    for (let one = folder; one.parent; one = one.parent) names.push(one.name)
    return names.reverse()
  }

  #path(folder: Watched): string {
    return [this.#options.root.path, ...this.#names(folder)].join('/')
  }
}

function queueMax(): number {
  try {
    const text = readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')
    return Number.parseInt(text, 10) || QUEUE_MAX
  } catch {
    return QUEUE_MAX
  }
}
