/**
 * Watches the local folder of one folder pair. It asks for a look at each folder in which something changed, and stops
 * an upload whose file changes, because another upload takes its place. While the stream is paused, changes are
 * collected.
 *
 * From the first change until the looks are asked for, the store has a note that there are changes: meanwhile the status
 * must not say that both sides are in step.
 */

import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { FolderPair } from './folder-pair.ts'
import { ChangedFolders, type Changes } from './local/change-buffer.ts'
import { openRoot } from './local/root.ts'
import { isSameStat, lookAt } from './local/stat.ts'
import { type RootWatch, watchRoot } from './local/watch.ts'
import type { FilesRuntime } from './runtime.ts'
import { clearChangeSeen, NOTED_EVERY_MS, noteChangeSeen } from './store/change-seen.ts'

/** How many folders one job looks at; that takes seconds. */
const FOLDERS_A_LOOK = 1_000

export type FolderWatchInput = {
  runtime: FilesRuntime
  pair: FolderPair
  clock: Clock
  onError: (error: unknown) => void
}

export class FolderWatch {
  readonly pair: FolderPair
  readonly #input: FolderWatchInput
  readonly #changed = new ChangedFolders()
  #isClosed = false
  #watch: RootWatch | undefined
  #handing: Promise<void> = Promise.resolve()
  #notedMs: number | undefined

  private constructor(input: FolderWatchInput) {
    this.#input = input
    this.pair = input.pair
  }

  /** Throws where the folder is not there. */
  static async start(input: FolderWatchInput): Promise<FolderWatch> {
    const { pair, clock, onError } = input
    const own = new FolderWatch(input)
    own.#watch = await watchRoot({
      root: openRoot(pair.root, pair.markerId),
      clock,
      filter: pair.filter,
      quietMs: input.runtime.files.settings.debounceMs,
      onLook: (changes) => own.#seen(changes),
      onChange: () => own.#noteChange(),
      onProblem: onError,
    })
    return own
  }

  /** False where what it watches by is out of date. */
  isOf({ root, markerId, filter }: FolderPair): boolean {
    return root === this.pair.root && markerId === this.pair.markerId && filter.key === this.pair.filter.key
  }

  /** Hands over what was collected, unless it still has to wait. */
  flush(): void {
    if (this.#changed.isEmpty) return
    this.#handing = this.#handing.then(() => this.#hand()).catch(this.#input.onError)
  }

  /** What is being handed over is handed over first. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#watch?.close()
    return this.#handing
  }

  #noteChange(): void {
    const nowMs = this.#input.clock.monotonicMs()
    if (this.#isClosed || (this.#notedMs !== undefined && nowMs - this.#notedMs < NOTED_EVERY_MS)) return
    this.#notedMs = nowMs
    const { store } = this.#input.runtime.files
    const note = (): Promise<void> =>
      store.write((tx) => noteChangeSeen(tx, this.pair.name, this.#input.clock.now()))
    this.#handing = this.#handing.then(note).catch(this.#input.onError)
  }

  #seen(changes: Changes): void {
    this.#changed.add(changes)
    this.#handing = this.#handing.then(() => this.#stopUploads(changes)).catch(this.#input.onError)
    this.flush()
  }

  async #hand(): Promise<void> {
    if (this.#isClosed || (await this.#isPaused())) return
    const { engine, files } = this.#input.runtime
    const { name: pair, stream } = this.pair
    const changes = this.#changed.take()
    // What is seen from here on is noted again, after this.
    this.#notedMs = undefined
    if (changes === 'everything') {
      const { outcome, id } = await engine.enqueue(files.kinds.look, { drive: pair }, { stream })
      // One that is under way may be past what has changed: another follows it.
      const again = { stream, key: `${pair}:again`, after: [id] }
      if (outcome === 'ignored') await engine.enqueue(files.kinds.look, { drive: pair }, again)
    } else {
      for (let at = 0; at < changes.length; at += FOLDERS_A_LOOK) {
        const folders = changes.slice(at, at + FOLDERS_A_LOOK)
        await engine.enqueue(files.kinds.look, { drive: pair, folders }, { stream })
      }
    }
    await files.store.write((tx) => clearChangeSeen(tx, pair))
  }

  async #isPaused(): Promise<boolean> {
    const { ledger, files } = this.#input.runtime
    return (await ledger.pauses()).some(({ scope, target }) => {
      if (scope === 'all') return true
      return target === (scope === 'stream' ? this.pair.stream : files.kinds.look.kind)
    })
  }

  /** The watch tells of folders; which of the files that are just being uploaded has changed, the disk tells. */
  async #stopUploads(changes: Changes): Promise<void> {
    const { files } = this.#input.runtime
    const { name, root } = this.pair
    const folders = changes === 'everything' ? undefined : new Set(changes.map((names) => names.join('/')))
    for (const { node, path, direction } of files.transfers.list(name)) {
      const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : ''
      if (direction !== 'upload' || !(folders?.has(folder) ?? true)) continue
      const row = node.startsWith('i:')
        ? await files.store.localOfItem(name, node.slice(2))
        : await files.store.localRow(name, Number(node.slice(2)))
      const names = row && (await files.store.localPath(name, row.id))
      if (!row || !names) continue
      const look = lookAt(join(root, ...names))
      if (!look || !isSameStat(look, row)) files.transfers.changed(name, [row.id])
    }
  }
}
