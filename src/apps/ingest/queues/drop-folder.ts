/**
 * A folder into which people and programs put files: each is announced in the inbox once it is complete.
 *
 *   unseen ──look──▶ growing ──same size and time in a look `settleMs` later──▶ announced ──changed──▶ growing
 *
 * Invariants:
 * - a file is announced only after its size and time of change stayed as they were over two looks
 * - once for each (path, size, time of change, inode), by whatever process and after whatever end of it: the
 *   announcement and the row that says so are one transaction
 * - a look that could not see all of the tree forgets nothing
 * - links, and names that say that a file is not finished, are left alone
 */
import { type FSWatcher, watch } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { CancelTimer, Clock } from '../../../base/clock.ts'
import { fileUri, fileVersion } from '../../../cloud/local-files/client.ts'
import type { Drop, InboxTables, NewMessage } from '../store/inbox.ts'

export type DropFolderOptions = {
  folder: string
  pipeline: string
  inbox: InboxTables
  clock: Clock
  /** Between two looks when nothing is heard. */
  scanMs?: number
  /** Between the two looks that a file must stay the same for. */
  settleMs?: number
  /** By the path below the folder, with a slash behind a folder: what is not announced. */
  leavesOut?: (path: string) => boolean
  /** A look failed; the next one is made as usual. */
  onError: (error: unknown) => void
}

export type Look = {
  /** Files that a listing would show. */
  files: number
  announced: number
  /** Seen for the first time, or changed since: the next look decides. */
  growing: number
}

type Seen = { version: string; sinceMs: number }
type Found = Drop & { sizeBytes: number }

const SCAN_MS = 30_000
const SETTLE_MS = 2_000
/** What is heard of comes in bursts. */
const HEARD_MS = 250
const DEPTH_MAX = 64

/** By the path below the folder. */
export function isUnfinishedName(path: string): boolean {
  return path.split('/').some((name) => name.startsWith('.')) || /\.(?:part|tmp)$/i.test(path)
}

export class DropFolder {
  readonly #options: DropFolderOptions
  readonly #root: string
  #seen = new Map<string, Seen>()
  #watcher: FSWatcher | undefined
  #cancel: CancelTimer = () => undefined
  #dueMs = Number.POSITIVE_INFINITY
  #looking: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(options: DropFolderOptions) {
    this.#options = options
    this.#root = resolve(options.folder)
  }

  /** Looks at once and from then on. */
  start(): void {
    try {
      this.#watcher = watch(this.#root, { recursive: true, persistent: false }, () => this.#within(HEARD_MS))
      // Too many folders, a network drive: looks are all there is, and they find everything as well.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // The folder is not there yet, or cannot be watched: see above.
    }
    this.#within(0)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel()
    this.#watcher?.close()
    await this.#looking
  }

  /** One look at the whole tree. Two never run at a time. */
  look(): Promise<Look> {
    const look = this.#looking.then(() => this.#look())
    this.#looking = look.catch(() => undefined)
    return look
  }

  async #look(): Promise<Look> {
    const { clock, inbox, pipeline, settleMs = SETTLE_MS } = this.#options
    const nowMs = clock.monotonicMs()
    const found: Found[] = []
    const isWhole = await this.#walk(this.#root, { found, depth: 0 })
    const known = await this.#known()
    const seen = new Map<string, Seen>()
    const complete: Found[] = []
    for (const file of found) {
      if (known.get(file.path) === file.version) continue
      const before = this.#seen.get(file.path)
      const isSame = before?.version === file.version
      const sinceMs = isSame ? before.sinceMs : nowMs
      if (isSame && nowMs - sinceMs >= settleMs) complete.push(file)
      else seen.set(file.path, { version: file.version, sinceMs })
    }
    const sizes = new Map(complete.map(({ path, sizeBytes }) => [path, sizeBytes]))
    const announced = await inbox.announce(pipeline, complete, (drop) =>
      announcementOf(this.#pathOf(drop.path), drop.version, sizes.get(drop.path) ?? 0),
    )
    this.#seen = seen
    if (isWhole) await this.#forget(known, found)
    return { files: found.length, announced, growing: seen.size }
  }

  async #known(): Promise<Map<string, string>> {
    const { inbox, pipeline } = this.#options
    const known = new Map<string, string>()
    for (let after = ''; ; ) {
      const page = await inbox.drops(pipeline, after)
      for (const { path, version } of page) known.set(path, version)
      const last = page.at(-1)
      if (!last) return known
      after = last.path
    }
  }

  async #forget(known: ReadonlyMap<string, string>, found: readonly Found[]): Promise<void> {
    const there = new Set(found.map(({ path }) => path))
    const gone = [...known].filter(([path]) => !there.has(path))
    await this.#options.inbox.forget(
      this.#options.pipeline,
      gone.map(([path, version]) => ({ path, version })),
    )
  }

  /** False where something could not be seen. */
  async #walk(folder: string, into: { found: Found[]; depth: number }): Promise<boolean> {
    if (into.depth > DEPTH_MAX) return false
    let entries: { name: string; isDirectory(): boolean; isFile(): boolean }[]
    try {
      entries = await readdir(folder, { withFileTypes: true })
    } catch {
      return false
    }
    let isWhole = true
    for (const entry of entries) {
      if (this.#isClosed) return false
      const path = join(folder, entry.name)
      const key = path.slice(this.#root.length + 1)
      const name = entry.isDirectory() ? `${key}/` : key
      if (isUnfinishedName(name) || this.#options.leavesOut?.(name)) continue
      if (entry.isDirectory()) {
        const { found, depth } = into
        if (!(await this.#walk(path, { found, depth: depth + 1 }))) isWhole = false
      } else if (entry.isFile()) {
        const stats = await lstat(path, { bigint: true }).catch(() => undefined)
        if (!stats?.isFile()) continue
        into.found.push({ path: key, version: fileVersion(stats).id, sizeBytes: Number(stats.size) })
      }
    }
    return isWhole
  }

  #pathOf(key: string): string {
    return join(this.#root, key)
  }

  /** The next look, unless one is due before that. */
  #within(ms: number): void {
    const { clock } = this.#options
    const dueMs = clock.monotonicMs() + ms
    if (this.#isClosed || dueMs >= this.#dueMs) return
    this.#cancel()
    this.#dueMs = dueMs
    this.#cancel = clock.timer(ms, () => void this.#turn())
  }

  async #turn(): Promise<void> {
    const { scanMs = SCAN_MS, settleMs = SETTLE_MS, onError } = this.#options
    // What is heard of from here on may be missing in this look.
    this.#dueMs = Number.POSITIVE_INFINITY
    let growing = 0
    try {
      growing = (await this.look()).growing
    } catch (error) {
      onError(error)
    }
    this.#within(growing > 0 ? settleMs : scanMs)
  }
}

function announcementOf(path: string, version: string, size: number): NewMessage {
  return {
    body: Buffer.from(JSON.stringify({ uri: fileUri(path), version, size })),
    attributes: { source: 'drop-folder' },
  }
}
