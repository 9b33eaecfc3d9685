/**
 * Tells in which folders of the root something happened, soon after it did. It may tell too much; what it misses, a
 * scan of everything finds, which must follow the start and come again from time to time.
 *
 *   watching ──no more watches to be had, or the watch breaks──▶ scans-only (said once, with `everything`)
 *   any ──close──▶ closed
 *
 * macOS and Windows watch a whole tree with one call. Linux watches folders, so there is one watch for each of them,
 * added as they appear, and nothing for files. A folder that is new or was moved is told as soon as it has its watch:
 * what happened in it before is seen by the look that follows.
 */
import { type FSWatcher, readdirSync, watch as watchPath } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import type { Filter } from '../filter.ts'
import { OWN_FOLDER } from '../names.ts'
import { nameKey } from '../trees.ts'
import { ChangeBuffer, type Changes } from './change-buffer.ts'
import type { Root } from './root.ts'
import { errnoOf, lookAt } from './stat.ts'
import { type WatchCall, WatchedFolders } from './watched-folders.ts'

export type WatchOptions = {
  root: Root
  clock: Clock
  filter: Filter
  onLook: (changes: Changes) => void
  /** Something happened that is told with one of the next looks. */
  onChange?: () => void
  /** How long it must be quiet before a look; two seconds where it is left out. */
  quietMs?: number
  /** From now on only scans see what happens. */
  onProblem: (error: TidemarkError) => void
  watch?: WatchCall
  platform?: NodeJS.Platform
}

export type RootWatch = {
  readonly state: 'watching' | 'scans-only' | 'closed'
  /** How many watches it takes. */
  readonly watches: number
  /** Hands over what is waiting, at once. */
  flush(): void
  close(): void
}

/** Resolves when all folders are watched. */
export async function watchRoot(options: WatchOptions): Promise<RootWatch> {
  const watch = new Watching(options)
  await watch.start()
  return watch
}

class Watching implements RootWatch {
  readonly #options: WatchOptions
  readonly #buffer: ChangeBuffer
  readonly #folders: WatchedFolders | undefined
  #tree: Pick<FSWatcher, 'close' | 'on'> | undefined
  #state: RootWatch['state'] = 'watching'

  constructor(options: WatchOptions) {
    this.#options = options
    const { root, clock, filter, onLook, platform = process.platform } = options
    const { onChange, quietMs } = options
    this.#buffer = new ChangeBuffer({ clock, hand: onLook, onChange, quietMs })
    if (platform === 'darwin' || platform === 'win32') return
    this.#folders = new WatchedFolders({
      root,
      filter,
      watch: options.watch ?? watchPath,
      onChange: (folder) => this.#buffer.add(folder),
      onTooMuch: () => this.#buffer.addEverything(),
      onProblem: (error) => this.#giveUp(error),
    })
  }

  get state(): RootWatch['state'] {
    return this.#state
  }

  get watches(): number {
    return this.#folders?.count ?? (this.#tree ? 1 : 0)
  }

  async start(): Promise<void> {
    if (this.#folders) await this.#folders.start()
    else this.#startTree()
  }

  flush(): void {
    this.#buffer.flush()
  }

  close(): void {
    this.#state = 'closed'
    this.#stop()
    this.#buffer.close()
  }

  #startTree(): void {
    const { root, filter, watch = watchPath } = this.#options
    try {
      this.#tree = watch(root.path, { recursive: true, persistent: false }, (event, path) => {
        if (path === null) return this.#buffer.addEverything()
        const names = path.split(/[/\\]/)
        if (names[0] !== undefined && nameKey(names[0]) === OWN_FOLDER) return
        if (filter.excluded(names.join('/'), { type: 'file' }) !== undefined) return
        this.#buffer.add(names.slice(0, -1))
        // What was saved in a folder before it moved may have been told under its former path.
        if (event === 'rename') for (const folder of foldersAt(root, names)) this.#buffer.add(folder)
      })
      this.#tree.on('error', (error) => this.#giveUp(error))
    } catch (error) {
      this.#giveUp(error)
    }
  }

  #giveUp(cause: unknown): void {
    if (this.#state !== 'watching') return
    this.#state = 'scans-only'
    this.#stop()
    this.#buffer.addEverything()
    this.#options.onProblem(watchProblem(this.#options.root, cause))
  }

  #stop(): void {
    this.#folders?.close()
    this.#tree?.close()
    this.#tree = undefined
  }
}

/** The folder at these names, if it is one, and all that are in it. */
function foldersAt(root: Root, names: readonly string[]): string[][] {
  const found: string[][] = []
  const stack = [[...names]]
  for (let folder = stack.pop(); folder; folder = stack.pop()) {
    const path = join(root.path, ...folder)
    if (lookAt(path)?.type !== 'folder') continue
    found.push(folder)
    try {
      for (const name of readdirSync(path)) stack.push([...folder, name])
    } catch {
      // Gone or not readable: the scan says so.
    }
  }
  return found
}

function watchProblem(root: Root, cause: unknown): TidemarkError {
  const code = errnoOf(cause)
  const then = 'Changes are found by scans only, which come less often.'
  if (code === 'ENOSPC') {
    return new TidemarkError(
      `The folder ${root.path} has more folders than this machine may watch. ${then}`,
      {
        kind: 'permanent',
        code: 'watch-limit',
        hint: 'Raise the limit, then start again: sudo sysctl fs.inotify.max_user_watches=1048576',
        cause,
      },
    )
  }
  if (code === 'EMFILE') {
    return new TidemarkError(`Too many programs watch folders on this machine. ${then}`, {
      kind: 'permanent',
      code: 'watch-limit',
      hint: 'Raise the limit, then start again: sudo sysctl fs.inotify.max_user_instances=1024',
      cause,
    })
  }
  return new TidemarkError(`The folder ${root.path} cannot be watched. ${then}`, {
    kind: 'permanent',
    code: 'watch-broken',
    cause,
  })
}
