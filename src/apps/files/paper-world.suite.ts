/**
 * Both sides on paper and the real store, plan and decisions between them: what the engine does with jobs, in steps
 * that a history can put into any order. See paper-history.suite.ts for what people do, and when.
 */
import { FakeClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import { type ActionPayload, runAction } from './action.ts'
import { createFilter, filterSchema } from './filter.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { PaperScan } from './paper-scan.suite.ts'
import { PaperDrive, type PaperFile, PaperFolder } from './paper-sides.suite.ts'
import { paperVerbs } from './paper-verbs.suite.ts'
import type { Action } from './plan-order.ts'
import type { PlanRequests } from './plan-requests.ts'
import { planOnce } from './planning.ts'
import type { LocalObservation } from './store/contract.ts'
import { writePlan } from './store/ends.ts'
import { type FileStore, setFolderPair } from './store/file-store.ts'
import { recordLocal } from './store/local-tree.ts'
import { freeAllWaiting, freeStranded } from './store/open-nodes.ts'
import { recordRemote } from './store/remote-tree.ts'
import type { RemoteRow } from './trees.ts'

export type Job = {
  action: Action
  plan: number
  checkpoint: unknown
  /** Looks that it has run into; for the replay. */
  runs: number
}

/** Called in the middle of an action: before its effect, and between its effect and its end. */
export type Moment = () => Promise<void>

const PASSES_MAX = 50
const NOTHING: Moment = async () => undefined

export class PaperWorld {
  readonly there = new PaperDrive()
  readonly here = new PaperFolder()
  readonly clock = new FakeClock()
  readonly store: FileStore
  readonly name: string
  jobs: Job[] = []
  /** What happened, for the replay. */
  readonly said: string[] = []
  #scan: { scan: PaperScan; isWhole: boolean } | undefined
  #pages: { rows: RemoteRow[][]; cursor: number } | undefined
  #cursor = 0
  #isPlanning = false
  readonly #pair: FolderPair

  private constructor(store: FileStore, name: string) {
    this.store = store
    this.name = name
    const filter = createFilter(filterSchema.parse({}), undefined)
    // Nothing on paper calls a client.
    this.#pair = {
      name,
      stream: `files:${name}`,
      account: 'ann',
      driveId: 'd',
      rootItemId: 'root',
      filter,
      settings: { mode: 'two-way', conflicts: 'keep-both' },
    } as unknown as FolderPair
  }

  static async open(store: FileStore, name: string): Promise<PaperWorld> {
    const world = new PaperWorld(store, name)
    await store.addFolderPair(
      {
        name,
        account: 'ann',
        driveId: 'd',
        driveType: 'personal',
        rootItemId: 'root',
        root: '/nowhere',
        markerId: 'm',
        machine: 'here',
        settings: '{}',
      },
      world.here.stat(world.here.things.get(1)!),
    )
    await store.write((tx) =>
      setFolderPair(tx, name, { isEnumerating: false, heardAt: 1, scannedAt: 1, forcedDeletes: 1_000_000 }),
    )
    return world
  }

  close(): Promise<void> {
    return this.store.removeFolderPair(this.name)
  }

  say(what: string): void {
    this.said.push(what)
  }

  /** Reads what changed in OneDrive, where nothing read is left; and writes one page of it. */
  async hear(pageSize: number, { isTwice = false } = {}): Promise<void> {
    this.#pages ??= this.#readChanges(pageSize, isTwice)
    const page = this.#pages.rows.shift()
    if (page) await this.store.write((tx) => recordRemote(tx, this.name, page, 1))
    if (page) this.say(`    heard ${page.map(rowText).join(', ')}`)
    if (this.#pages.rows.length > 0) return
    this.#cursor = this.#pages.cursor
    this.#pages = undefined
  }

  async recordAll(): Promise<void> {
    do await this.hear(1_000)
    while (this.#pages || this.#cursor < this.there.log.length)
  }

  /** With the folders above what changed, in no order, and what is in a deleted folder left unsaid. */
  #readChanges(pageSize: number, isTwice: boolean): { rows: RemoteRow[][]; cursor: number } {
    const { log, things } = this.there
    const ids = new Set(log.slice(this.#cursor))
    for (const id of [...ids]) {
      for (let at = things.get(id)?.parentId; at != null; at = things.get(at)?.parentId) ids.add(at)
    }
    const told = [...ids].map((id) => this.there.told(id))
    const list = isTwice ? [...told].reverse().concat(told) : told
    const rows: RemoteRow[][] = []
    for (let at = 0; at < list.length; at += pageSize) rows.push(list.slice(at, at + pageSize))
    return { rows, cursor: log.length }
  }

  /** Looks at so many more folders; begins where no look is under way. */
  async look(steps: number, only?: PaperFile): Promise<void> {
    this.#scan ??= {
      scan: await PaperScan.begin(this.store, this.name, this.here, only),
      isWhole: only === undefined,
    }
    for (let step = 0; step < steps; step++) {
      const seen = await this.#scan.scan.step()
      if (!seen) continue
      await this.#see(seen, this.#scan.isWhole)
      this.#scan = undefined
      return
    }
  }

  async lookAll(): Promise<void> {
    while (this.#scan) await this.look(1)
    do await this.look(1)
    while (this.#scan)
  }

  async #see(seen: readonly LocalObservation[], isWhole: boolean): Promise<void> {
    this.say(`    saw ${seen.map(seenText).join(', ') || 'nothing'}`)
    const write = async (tx: Tx): Promise<void> => {
      await recordLocal(tx, this.name, seen)
      if (isWhole) await freeAllWaiting(tx, this.name)
    }
    await this.#orOutdated('the look', () => this.store.write(write))
  }

  /** A transient trouble is tried again by the engine; here the next step does. Anything else is a defect. */
  async #orOutdated(what: string, run: () => Promise<void>): Promise<boolean> {
    try {
      await run()
      return true
    } catch (thrown) {
      if (asTidemarkError(thrown).kind !== 'transient' || !isKnownTrouble(thrown)) throw thrown
      this.say(`    ${what} is outdated: ${(thrown as Error).message}`)
      return false
    }
  }

  /** People decide about conflicts themselves. */
  askPeople(): void {
    this.#pair.settings.conflicts = 'manual'
  }

  /** Until nothing is left to plan; returns how many actions came of it. `between`: rows were read, nothing is written. */
  async plan(between: Moment = NOTHING): Promise<number> {
    // One plan at a time.
    if (this.#isPlanning) return 0
    this.#isPlanning = true
    try {
      return await this.#planAll(once(between))
    } finally {
      this.#isPlanning = false
    }
  }

  async #planAll(between: Moment): Promise<number> {
    let actions = 0
    for (let pass = 0; ; pass++) {
      if (pass === PASSES_MAX) throw new Error(`a plan does not come to its end:\n${await this.openText()}`)
      const row = await this.store.folderPair(this.name)
      const made = await planOnce(this.store, this.#pair, row)
      if (!made && (await this.store.write((tx) => freeStranded(tx, this.name))) > 0) continue
      if (!made) return actions
      await between()
      const cycle = row.planned + 1
      const write = (tx: Tx): Promise<void> =>
        writePlan(tx, this.name, { cycle, plan: made, atMs: this.clock.now() })
      if (!(await this.#orOutdated('the plan', () => this.store.write(write)))) continue
      for (const one of made.bookkeeping)
        this.say(`    plan ${cycle}: ${one.node} ${one.decision.do} ${one.decision.row}`)
      for (const one of made.waiting)
        this.say(`    plan ${cycle}: ${one.node} waits for ${one.waitsFor}: ${one.because}`)
      for (const one of made.reported) this.say(`    plan ${cycle}: ${one.node} left: ${one.because}`)
      for (const action of made.actions) {
        this.say(`    plan ${cycle}: ${actionText(action)}`)
        this.jobs.push({ action, plan: cycle, checkpoint: undefined, runs: 0 })
      }
      actions += made.actions.length
    }
  }

  /** Those whose own before-jobs have ended. */
  ready(): Job[] {
    return this.jobs.filter(
      ({ plan, action }) =>
        !this.jobs.some((other) => other.plan === plan && action.after.includes(other.action.node)),
    )
  }

  /** `before`: before its effect; `between`: after it, before it is written down, which `isCrash` leaves out. */
  async run(
    job: Job,
    {
      before = NOTHING,
      between = NOTHING,
      isCrash = false,
    }: { before?: Moment; between?: Moment; isCrash?: boolean } = {},
  ): Promise<void> {
    job.runs += 1
    await this.clock.advance(1_000)
    const { after: _, ...action } = job.action
    const context = {
      payload: { drive: this.name, ...action },
      clock: this.clock,
      signal: new AbortController().signal,
      job: { failures: 0 },
      progress: () => undefined,
      checkpoint: job.checkpoint,
      save: async (state: unknown) => {
        job.checkpoint = state
      },
    } as unknown as RunContext<ActionPayload>
    const deps = {
      pairs: { get: async () => this.#pair } as unknown as FolderPairs,
      store: this.store,
      planRequests: { soon: () => undefined } as unknown as PlanRequests,
      lookAfter: () => undefined,
    }
    const verbs = paperVerbs({ there: this.there, here: this.here, pause: once(before) })
    const outcome = await runAction(deps, context, verbs[job.action.verb])
    await between()
    const ending = outcome.skip ?? outcome.note ?? 'done'
    this.say(`    ran ${actionText(job.action)}: ${isCrash ? 'crashed' : ending}`)
    if (isCrash || outcome.again) return
    const { effects } = outcome
    const isWritten = await this.#orOutdated('its end', () => this.store.write(async (tx) => effects?.(tx)))
    if (isWritten) this.jobs = this.jobs.filter((other) => other !== job)
  }

  async openText(): Promise<string> {
    const open = await this.store.openNodes(this.name, { limit: 1_000 })
    return open
      .map(({ node, version, planned, waitsFor, because }) =>
        JSON.stringify({ node, version, planned, waitsFor, because }),
      )
      .join('\n')
  }
}

function once(moment: Moment): Moment {
  let left: Moment = moment
  return async () => {
    const now = left
    left = NOTHING
    await now()
  }
}

function isKnownTrouble(thrown: unknown): boolean {
  const { code } = asTidemarkError(thrown)
  return code === 'plan-outdated' || code === 'look-outdated'
}

function actionText({ node, verb, path, after, isTemporary }: Action): string {
  const order = after.length > 0 ? ` after ${after.join(' ')}` : ''
  return `${node} ${verb}${isTemporary ? ' (temporary)' : ''} "${path}"${order}`
}

function rowText({ itemId, parentId, name, cTag, isDeleted }: RemoteRow): string {
  return isDeleted ? `-${itemId}` : `${itemId}=${parentId}/${name}@${cTag}`
}

function seenText(seen: LocalObservation): string {
  if (seen.seen === 'missing') return `-${seen.id} (${seen.parentId}/${seen.name})`
  const place =
    seen.parentId === undefined && seen.name === undefined ? '' : `=${seen.parentId ?? ''}/${seen.name}`
  const stat = seen.stat ? `@${seen.stat.ino}:${seen.stat.mtimeNs}` : ''
  return `${seen.seen === 'new' ? '+' : '~'}${seen.id}${place}${stat}`
}
