/**
 * People at work on both sides while `tidemark files watch` runs as a process: saves, and folders that are renamed and
 * moved while others save in them. When they stop, both sides become the same without a whole look at the folder; and
 * whenever the status says "in step" although both sides differ, that is a lie.
 *
 * The seed says what they do; what that meets of the watch depends on the machine.
 */
import assert from 'node:assert/strict'
import { type Dirent, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { streamOf } from '../../src/apps/files/folder-pair.ts'
import { isAbsence } from '../../src/apps/files/local/stat.ts'
import { LOOK_KIND } from '../../src/apps/files/look.ts'
import { type FileStatus, fileStatus } from '../../src/apps/files/status.ts'
import { FileStore } from '../../src/apps/files/store/file-store.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Random } from '../../src/base/random.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { CliWorld, Running } from './cli-world.ts'
import { type Tree, treeOf } from './disk-tree.ts'
import { shown } from './oracle.ts'

export type WatchOptions = {
  random: Random
  /** How long people work. */
  workMs: number
  /** Between two things that they do, at most. */
  gapMsMax: number
  /** How long both sides may take to become the same after that. */
  settleMsMax: number
}

export type Watched = { acts: number; settledMs: number; looks: number }

/** As often as it may be. */
export const WATCH_ENV = { TIDEMARK_FILES_POLL_SECONDS: '5' }

const FOLDERS = ['a', 'b', 'c'] as const
/** Between a change and its event, on a machine that is busy. */
const EVENT_MS = 3_000
const STEP_MS = 200

export async function watchHistory(world: CliWorld, options: WatchOptions): Promise<Watched> {
  for (const folder of FOLDERS) world.write(`${folder}/first.txt`, `the first in ${folder}`)
  for (let n = 0; n < 20; n++) world.write(`still/${n}.txt`, `${n}`)
  const set = await world.sync(world.root())
  assert.equal(set.code, 0, set.stderr)
  const watch = world.begin('files', 'watch', '--force-deletes')
  const ledger = await openLedger(`sqlite:${join(world.home, 'ledger.db')}`, { create: false })
  try {
    await world.until(() => /Watching;/.test(watch.said()), watch)
    const truth = new Truth(world, ledger, await FileStore.open(ledger), watch)
    await truth.untilSame(options.settleMsMax)
    const before = await truth.wholeLooks()
    const people = new WatchPeople(world, options.random)
    const untilMs = systemClock.monotonicMs() + options.workMs
    while (systemClock.monotonicMs() < untilMs) {
      truth.note(people.next())
      await pass(options.random() ** 2 * options.gapMsMax)
      if (options.random() < 0.05) await truth.check()
    }
    const settledMs = await truth.untilSame(options.settleMsMax)
    assert.equal(await truth.wholeLooks(), before, 'whole looks that both sides needed to become the same')
    const names = [...truth.here()!.keys()]
    assert.deepEqual(
      names.filter((name) => name.includes('.tidemark-move-')),
      [],
      'names of a moment',
    )
    return { acts: people.acts, settledMs, looks: await truth.looks() }
  } finally {
    await ledger.close()
    watch.child.kill('SIGINT')
    await watch.ended
  }
}

/** What is so, and what the status says of it. */
class Truth {
  readonly #world: CliWorld
  readonly #ledger: Ledger
  readonly #store: FileStore
  readonly #watch: Running
  #hereAtMs = 0
  #thereAt = 0

  constructor(world: CliWorld, ledger: Ledger, store: FileStore, watch: Running) {
    this.#world = world
    this.#ledger = ledger
    this.#store = store
    this.#watch = watch
  }

  note(side: 'here' | 'there'): void {
    if (side === 'here') this.#hereAtMs = systemClock.monotonicMs()
    else this.#thereAt = systemClock.now()
  }

  /** Undefined: it changed while it was read. */
  here(): Tree | undefined {
    try {
      return treeOf(this.#world.root())
    } catch (thrown) {
      if (isAbsence(thrown)) return undefined
      throw thrown
    }
  }

  there(): Tree {
    const tree: Tree = new Map()
    for (const { path, contentKey } of this.#world.drive.dump().items) {
      tree.set(
        path.replace(/^\//, ''),
        contentKey === undefined ? undefined : this.#world.drive.bytesOf(contentKey)!,
      )
    }
    return tree
  }

  status(): Promise<FileStatus> {
    return fileStatus({ store: this.#store, ledger: this.#ledger }, 'Docs')
  }

  /** Whether both sides are the same; fails where the status says so and they are not. */
  async check(): Promise<boolean> {
    const first = await this.status()
    const isKnown = (first.heardAt ?? 0) > this.#thereAt + EVENT_MS
    const isQuiet = systemClock.monotonicMs() - this.#hereAtMs > EVENT_MS
    const tree = this.here()
    if (!tree) return false
    const [here, there] = [shown(tree), shown(this.there())]
    const isSame = JSON.stringify(here) === JSON.stringify(there)
    const last = await this.status()
    const saysSo = [first, last].every(({ text }) => text === 'In step.')
    if (!isSame && saysSo && isKnown && isQuiet) {
      assert.deepEqual(here, there, `the status says "${last.text}": here (+) and there (-)`)
    }
    return isSame && saysSo && isKnown && isQuiet
  }

  async untilSame(msMax: number): Promise<number> {
    const startedMs = systemClock.monotonicMs()
    while (!(await this.check())) {
      if (this.#watch.child.exitCode !== null) throw new Error(`it ended: ${this.#watch.said()}`)
      if (systemClock.monotonicMs() - startedMs > msMax) {
        const { text, open } = await this.status()
        const nodes = await this.#store.openNodes('Docs', { limit: 20 })
        const jobs = await this.#ledger.jobs({ stream: streamOf('Docs'), limit: 12 })
        const said = JSON.stringify({
          text,
          open,
          nodes,
          jobs: jobs.map(({ payload, note, state }) => [payload, state, note]),
        })
        assert.deepEqual(shown(this.here()!), shown(this.there()), `not the same after ${msMax} ms: ${said}`)
        assert.fail(`the same, and it does not say so after ${msMax} ms: ${said}`)
      }
      await pass(STEP_MS)
    }
    return systemClock.monotonicMs() - startedMs
  }

  async looks(): Promise<number> {
    return (await this.#looks()).length
  }

  async wholeLooks(): Promise<number> {
    return (await this.#looks()).filter(({ payload }) => !/"folders"/.test(payload ?? '')).length
  }

  #looks(): ReturnType<Ledger['jobs']> {
    return this.#ledger.jobs({ stream: streamOf('Docs'), kind: LOOK_KIND, limit: 10_000 })
  }
}

class WatchPeople {
  readonly #world: CliWorld
  readonly #random: Random
  acts = 0

  constructor(world: CliWorld, random: Random) {
    this.#world = world
    this.#random = random
  }

  next(): 'here' | 'there' {
    this.acts += 1
    const side = this.#random() < 0.5 ? 'here' : 'there'
    const folders = side === 'here' ? this.#foldersHere() : this.#foldersThere()
    const folder = this.#pick(folders)
    const chance = this.#random()
    if (folder === undefined || chance < 0.08) this.#mkdir(side, this.#newFolder(folders))
    else if (chance < 0.5) this.#save(side, `${folder}/${this.#pick(['x', 'y', 'z'])}.txt`)
    else if (chance < 0.6) this.#save(side, `${folder}/new-${this.acts}.txt`)
    else if (chance < 0.78) this.#move(side, folder, this.#renamed(folder))
    else if (chance < 0.95) this.#move(side, folder, this.#newFolder(folders))
    else this.#deleteFile(side, folder)
    return side
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.#random() * list.length)]
  }

  #name(): string {
    return this.#pick(['a', 'b', 'c', 'd', 'e'])!
  }

  #renamed(folder: string): string {
    return [...folder.split('/').slice(0, -1), this.#name()].join('/')
  }

  #newFolder(folders: readonly string[]): string {
    const above =
      this.#random() < 0.5 ? undefined : this.#pick(folders.filter((one) => one.split('/').length < 3))
    return above === undefined ? this.#name() : `${above}/${this.#name()}`
  }

  /** Those that stay where they are while they are looked for. */
  #foldersHere(folder = ''): string[] {
    const entries = entriesIn(join(this.#world.root(), folder))
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.tidemark'))
      .map(({ name }) => (folder === '' ? name : `${folder}/${name}`))
      .flatMap((path) => [path, ...this.#foldersHere(path)])
      .sort()
  }

  #foldersThere(): string[] {
    const { items } = this.#world.drive.dump()
    return items
      .filter(({ kind }) => kind === 'folder')
      .map(({ path }) => path.replace(/^\//, ''))
      .sort()
  }

  /** Whoever comes too late does nothing. */
  #try(act: () => void): void {
    try {
      act()
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown
    }
  }

  #save(side: 'here' | 'there', path: string): void {
    const text = `${this.acts} saved ${side} as ${path}`
    this.#try(() => {
      if (side === 'here') writeFileSync(join(this.#world.root(), path), text)
      else this.#world.there.write(path, text)
    })
  }

  #mkdir(side: 'here' | 'there', path: string): void {
    this.#try(() => {
      if (side === 'here') mkdirSync(join(this.#world.root(), path))
      else this.#world.there.mkdir(path)
    })
  }

  #move(side: 'here' | 'there', from: string, to: string): void {
    if (from === to || `${to}/`.startsWith(`${from}/`)) return
    const folders = side === 'here' ? this.#foldersHere() : this.#foldersThere()
    if (folders.some((one) => one.toLowerCase() === to.toLowerCase())) return
    this.#try(() => {
      if (side === 'here') renameSync(join(this.#world.root(), from), join(this.#world.root(), to))
      else this.#world.there.move(from, to)
    })
  }

  #deleteFile(side: 'here' | 'there', folder: string): void {
    const path = `${folder}/${this.#pick(['x', 'y', 'z'])}.txt`
    this.#try(() => {
      if (side === 'here') rmSync(join(this.#world.root(), path))
      else this.#world.there.delete(path)
    })
  }
}

/** None of a folder that the watch has moved since its name was read. */
function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (thrown) {
    if (isAbsence(thrown)) return []
    throw thrown
  }
}
