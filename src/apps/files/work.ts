/**
 * What every folder of this machine is given while a process runs: its stream, a sync when it begins, a look at
 * OneDrive every minute and at the whole folder every hour, and a watch that sees changes at once. All but the watch
 * can be done again at any time, by any process, and then changes nothing: syncs have keys, a schedule fires in one
 * process.
 *
 *   (unknown) ──a pair of this machine───▶ watched ──its settings changed──▶ watched anew
 *                        │                    │ └──the pair was removed, or stop──▶ (unknown)
 *                        └── the folder is not there ──▶ looked for again with the next round
 *
 * While a stream is paused, what the watch sees is collected, and looked at when it goes on.
 */

import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { resumeSignedIn } from '../../app/signed-in.ts'
import { followSources, keepSchedules, scheduleName } from '../../app/work.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { streamStamp } from './documents.ts'
import { accountSources, type FolderPair, SERVICE, streamOf } from './folder-pair.ts'
import { FolderWatch } from './folder-watch.ts'
import { openRoot } from './local/root.ts'
import { emptyTrash, type Retention, trashDays } from './local/trash-bin.ts'
import { LOOK_KIND } from './look.ts'
import type { FilesRuntime } from './runtime.ts'
import { resumeShares } from './shared-folder.ts'
import { trashAges } from './store/trash-ages.ts'

const DAY_MS = 86_400_000

/** `names`: all of this machine where it is left out. */
export type FolderPairWorkOptions = WorkOptions & { names?: readonly string[] }

/** Begins, and goes on until it is stopped. A process that only answers leaves it to others. */
export async function startFolderPairs(
  runtime: FilesRuntime,
  options: FolderPairWorkOptions,
): Promise<AppWork> {
  const work = new FolderPairRounds(runtime, options)
  if (runtime.role !== 'web') await work.begin()
  return work
}

const DELTA = 'files.delta'

export const deltaSchedule = (pair: string): string => scheduleName(DELTA, pair)
export const lookSchedule = (pair: string): string => scheduleName(LOOK_KIND, pair)

class FolderPairRounds implements AppWork {
  readonly #runtime: FilesRuntime
  readonly #options: FolderPairWorkOptions
  readonly #watches = new Map<string, FolderWatch>()
  /** What was told of a folder that cannot be watched: once is enough. */
  readonly #told = new Map<string, string>()
  /** The stamp of a folder's stream when it was last read into the index. */
  readonly #indexed = new Map<string, string>()
  #tidiedMs: number | undefined
  #sharesAskedMs = Number.NEGATIVE_INFINITY
  #unfollow: () => Promise<void> = async () => {}
  #unlisten: () => void = () => {}
  #round: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(runtime: FilesRuntime, options: FolderPairWorkOptions) {
    this.#runtime = runtime
    this.#options = options
  }

  async begin(): Promise<void> {
    this.#unlisten = this.#runtime.engine.events.on(
      (event) => {
        if (event.type !== 'pause' || event.what !== 'resumed') return
        for (const watch of this.#watches.values()) watch.flush()
      },
      { jobs: false },
    )
    await this.refresh()
    this.#unfollow = followSources(this.#options, () => this.refresh())
  }

  refresh(): Promise<void> {
    if (this.#runtime.role === 'web' || this.#isStopped) return Promise.resolve()
    this.#round = this.#round.then(() => this.#look()).catch(this.#options.onError)
    return this.#round
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unlisten()
    await this.#unfollow()
    await this.#round
    for (const watch of this.#watches.values()) await watch.close()
    this.#watches.clear()
  }

  async #look(): Promise<void> {
    if (this.#isStopped) return
    const { files } = this.#runtime
    await files.pairs.reload()
    const names = files.pairs.names().filter((name) => this.#options.names?.includes(name) ?? true)
    await putSchedules(this.#runtime, names)
    const rows = (await files.store.folderPairs()).filter(({ name }) => names.includes(name))
    await resumeSignedIn(this.#runtime, SERVICE, accountSources(rows))
    await this.#goOnShared(rows.filter(({ sharedBy }) => sharedBy !== null).map(({ name }) => name))
    for (const [name, watch] of this.#watches) {
      if (names.includes(name)) continue
      await watch.close()
      this.#watches.delete(name)
    }
    for (const name of names) await this.#lookAfter(name)
    for (const name of names) await this.#index(name)
    for (const watch of this.#watches.values()) watch.flush()
    await this.#tidy()
  }

  /** OneDrive is asked as often as for changes. */
  async #goOnShared(names: readonly string[]): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs()
    if (names.length === 0 || nowMs - this.#sharesAskedMs < this.#runtime.files.settings.pollMs) return
    this.#sharesAskedMs = nowMs
    await resumeShares(this.#runtime, names).catch(this.#options.onError)
  }

  async #lookAfter(name: string): Promise<void> {
    try {
      const pair = await this.#runtime.files.pairs.get(name)
      const known = this.#watches.get(name)
      if (known?.isOf(pair)) return
      await known?.close()
      this.#watches.delete(name)
      const watch = await FolderWatch.start({ ...this.#options, runtime: this.#runtime, pair })
      this.#told.delete(name)
      if (this.#isStopped) return await watch.close()
      this.#watches.set(name, watch)
      await beginSync(this.#runtime, pair)
    } catch (thrown) {
      const { message } = asTidemarkError(thrown)
      if (this.#told.get(name) === message) return
      this.#told.set(name, message)
      this.#options.onError(thrown)
    }
  }

  /** Where something came into step since the last round, it is read into the index. */
  async #index(name: string): Promise<void> {
    const { engine, ledger, files } = this.#runtime
    if (!files.indexing) return
    const stamp = await streamStamp(ledger, name)
    if (this.#indexed.get(name) === stamp) return
    this.#indexed.set(name, stamp)
    await engine.enqueue(files.indexing.kind, { unit: name, compare: true }, { stream: streamOf(name) })
  }

  /** What is in the trash for longer than it is kept there. */
  async #tidy(): Promise<void> {
    const { clock, onError } = this.#options
    if (this.#tidiedMs !== undefined && clock.monotonicMs() - this.#tidiedMs < DAY_MS) return
    for (const { pair } of this.#watches.values()) {
      try {
        await tidyTrash(this.#runtime, pair, clock.now())
      } catch (thrown) {
        onError(thrown)
      }
    }
    this.#tidiedMs = clock.monotonicMs()
  }
}

export async function tidyTrash(
  { files }: Pick<FilesRuntime, 'files'>,
  pair: Pick<FolderPair, 'name' | 'root' | 'markerId'>,
  nowMs: number,
  rule: Pick<Retention, 'keepMs' | 'bytesMax'> = {
    keepMs: files.settings.trashDays * DAY_MS,
    bytesMax: files.settings.trashBytesMax,
  },
): Promise<{ files: number; bytes: number }> {
  const root = openRoot(pair.root, pair.markerId)
  const found = trashDays(root)
  const days = await files.store.write((tx) => trashAges(tx, pair.name, { nowMs, days: found }))
  return emptyTrash(root, { days, ...rule })
}

async function beginSync({ engine, files }: FilesRuntime, { name, stream }: FolderPair): Promise<void> {
  await engine.streams.open(stream)
  await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
}

async function putSchedules(runtime: FilesRuntime, names: readonly string[]): Promise<void> {
  const { kinds, settings, store } = runtime.files
  const every = (ms: number): string => `every ${Math.round(ms / 1000)}s`
  const wanted = names.flatMap((name) => {
    const of = { about: name, payload: { drive: name }, stream: streamOf(name) }
    return [
      { ...of, kind: kinds.delta, spec: every(settings.pollMs) },
      { ...of, kind: kinds.look, spec: every(settings.scanMs) },
    ]
  })
  // Of other machines' folders as well: only what nobody keeps any more is dropped.
  const all = await store.folderPairs()
  const elsewhere = all.flatMap(({ name }) => [deltaSchedule(name), lookSchedule(name)])
  await keepSchedules(runtime, wanted, { kinds: [DELTA, LOOK_KIND], elsewhere })
}
