/**
 * Runs a history against a sync, and compares the end with what people did. Steps are counted rather than timed, so
 * that a history that fails is likely to fail again.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { filterSchema } from '../../src/apps/files/filter.ts'
import { streamOf } from '../../src/apps/files/folder-pair.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { FaultRule } from '../../src/sim/fault-rules.ts'
import type { Life } from './child-life.ts'
import type { Tree } from './disk-tree.ts'
import { type Act, parseStep, type Side, type Step } from './history.ts'
import { takesNoPart } from './odd-names.ts'
import {
  checkEnd,
  checkFollowed,
  checkHidden,
  checkSides,
  checkUntouched,
  namesakesOf,
  type Rules,
  sayYes,
  shown,
} from './oracle.ts'
import { People } from './people.ts'
import { OracleWorld, PAIR } from './world.ts'

export type Ran = { failure: string | undefined; crashes: number; acts: number; actions: number }

export type RunOptions = {
  seed: number
  /** Where the sync runs: in this process, or in one of its own that is killed. */
  sync?: 'here' | 'process'
  database?: 'sqlite' | 'postgres' | 'libsql'
  settleMsMax?: number
  say?: (line: string) => void
}

const SETTLE_MS_MAX = 120_000
const LIVES_MAX = 1_000
/** What takes part again may bring another one along. */
const NAMING_ROUNDS_MAX = 5
const WEATHER: ReadonlySet<Act['do']> = new Set(['skew', 'quirk', 'faults', 'mode', 'policy'])
/** Of quirks that are times. */
const TIMES_MS: Partial<Record<string, number>> = { deltaLagMs: 150, changedNotFoundMs: 700 }

export async function runHistory(lines: readonly string[], options: RunOptions): Promise<Ran> {
  const sqlite = options.sync === 'process' ? 'file' : 'memory'
  const { database: asked = 'sqlite' } = options
  const database = asked === 'sqlite' ? sqlite : asked
  const world = await OracleWorld.start({ seed: options.seed, database })
  const run = new Run(world, lines.map(parseStep), options)
  try {
    await run.toTheEnd()
    return { failure: undefined, ...run.counts }
  } catch (thrown) {
    options.say?.(await describeWorld(world))
    return {
      failure: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
      ...run.counts,
    }
  } finally {
    await run.stop()
    await world.close()
  }
}

/** What `pasted` prints, as a test: fails as the history did. */
export async function replay(lines: readonly string[], { seed = 1 }: { seed?: number } = {}): Promise<void> {
  const { failure } = await runHistory(lines, { seed })
  if (failure !== undefined) assert.fail(failure)
}

class Run {
  readonly counts = { crashes: 0, acts: 0, actions: 0 }
  readonly #world: OracleWorld
  readonly #people: People
  readonly #steps: Step[]
  readonly #options: RunOptions
  #life: Life | undefined
  #gap = 0
  #isActing = false
  /** People act in the middle of whatever the sync does, and are no part of it. */
  readonly #outside = AsyncLocalStorage.snapshot()
  /** Both sides were the same when they were last compared. */
  #isAgreed = true
  /** Who did something since then, and what his side was after that. */
  readonly #since = new Map<Side, Tree>()
  #isLate = false
  #hasLinks = false
  /** Something takes no part because of its name. */
  #hasOddNames = false
  /** What a link leads to is in OneDrive as well, and is compared when there are no links any more. */
  #hasFollowed = false
  readonly #rules: Rules = { mode: 'two-way', policy: 'keep-both', isFiltered: false }
  /** What each side was when people last did something there. */
  readonly #left: Record<Side, string[]> = { here: [], there: [] }
  /** Settings on their way into the ledger. */
  #changing: Promise<void> = Promise.resolve()

  constructor(world: OracleWorld, steps: Step[], options: RunOptions) {
    this.#world = world
    this.#people = new People(world.root, world.drive)
    this.#steps = steps
    this.#options = options
    this.#gap = steps[0]?.gap ?? 0
  }

  async toTheEnd(): Promise<void> {
    // The weather is there before anybody does anything.
    while (this.#steps[0]?.gap === 0 && WEATHER.has(this.#steps[0].act.do)) this.#doNext()
    await this.#changing
    this.#life = await this.#begin()
    this.#world.onStep = () => this.#onStep()
    for (let lives = 0; lives < LIVES_MAX; lives++) {
      this.#life.sync()
      if (await this.#untilCrash()) break
      this.counts.crashes += 1
      await this.#life.end()
      this.#life = await this.#begin()
    }
    this.#world.onStep = () => {}
    await this.#calm()
    await this.#unlinkAll()
    await this.#nameAll()
    this.counts.actions = await this.#actions()
    this.#checkUntouched()
    const end = {
      rules: this.#rules,
      hasCrashed: this.counts.crashes > 0,
      syncAgain: async (): Promise<void> => {
        this.#life!.sync()
        await this.#settle()
      },
      beginAgain: async (): Promise<void> => {
        await this.#life!.end()
        this.#life = await this.#begin()
      },
    }
    await checkEnd(this.#world, this.#people, end)
  }

  /** They have all been looked at: now nothing is in anybody's way any more. */
  async #unlinkAll(): Promise<void> {
    if (!this.#hasLinks) return
    checkHidden(this.#world, this.#people)
    this.#people.unlinkAll()
    this.#note({ side: 'here' })
    this.#change({ follow_symlinks: false })
    await this.#changing
    this.#life!.sync()
    await this.#settle()
  }

  async #nameAll(): Promise<void> {
    if (!this.#hasOddNames) return
    checkHidden(this.#world, this.#people)
    for (let round = 0; round < NAMING_ROUNDS_MAX && this.#people.nameAll(); round++) {
      this.#note({ side: 'here' })
      this.#note({ side: 'there' })
      this.#life!.sync()
      await this.#settle()
    }
  }

  /** Where only one direction is on, the side that it comes from is what people made of it. */
  #checkUntouched(): void {
    const { mode } = this.#rules
    if (mode === 'download-only') checkUntouched('there', this.#people.there(), this.#left.there)
    if (mode === 'upload-only') checkUntouched('here', this.#people.here(), this.#left.here)
  }

  #begin(): Promise<Life> {
    const { sync, settleMsMax = SETTLE_MS_MAX } = this.#options
    return sync === 'process' ? this.#world.beginProcess(settleMsMax) : this.#world.begin()
  }

  async stop(): Promise<void> {
    this.#world.onStep = () => {}
    await this.#life?.end()
  }

  /** True: the history is at its end. */
  async #untilCrash(): Promise<boolean> {
    for (;;) {
      if (!(await this.#settle())) return false
      const next = this.#steps[0]
      if (!next) return true
      if (next.act.do !== 'settle') {
        this.#doNext()
        if (next.act.do === 'crash') return false
        continue
      }
      this.#life!.sync()
      if (!(await this.#settle())) return false
      // Nobody does anything meanwhile: that waits for the end of this step.
      await this.#world.tidy()
      await this.#compare()
      this.#next()
    }
  }

  /** In the middle of a history less is certain. */
  async #compare(): Promise<void> {
    this.#checkUntouched()
    checkHidden(this.#world, this.#people)
    if (this.#rules.mode !== 'two-way' || this.#rules.isFiltered || this.#hasFollowed || this.#hasOddNames) {
      this.#isAgreed = false
      this.#since.clear()
      return
    }
    const open = await this.#world.store.openNodes(PAIR, { limit: 1 })
    const [here, there] = [this.#people.here(), this.#people.there()]
    if (open.length === 0 && !this.#isLate) checkSides(this.#people)
    const [only] = this.#since
    const isSame = open.length === 0 && shown(here).join() === shown(there).join()
    const isOneSided = this.#isAgreed && isSame && only !== undefined && this.#since.size === 1
    // A service that rewrites documents does something on its own.
    const { rewritesUploads, rewritesUploadsLater } = this.#world.drive.quirks
    const isAlone = !rewritesUploads && !rewritesUploadsLater && namesakesOf(only?.[1] ?? here).length === 0
    if (isOneSided && isAlone) checkFollowed(here, only[1])
    this.#isAgreed = isSame
    this.#since.clear()
  }

  async #settle(): Promise<boolean> {
    await this.#changing
    const untilMs = systemClock.monotonicMs() + (this.#options.settleMsMax ?? SETTLE_MS_MAX)
    return this.#life!.settled(untilMs)
  }

  /** In the middle of whatever the sync is doing. */
  #onStep(): void {
    if (this.#isActing) return
    this.#gap -= 1
    while (this.#gap <= 0 && this.#steps.length > 0 && this.#steps[0]!.act.do !== 'settle') {
      const { act } = this.#steps[0]!
      this.#doNext()
      if (act.do === 'crash') return
    }
  }

  #doNext(): void {
    const { act } = this.#next()
    this.#isActing = true
    try {
      this.#outside(() => this.#do(act))
    } finally {
      this.#isActing = false
    }
  }

  #next(): Step {
    const step = this.#steps.shift()!
    this.#gap = this.#steps[0]?.gap ?? 0
    return step
  }

  #do(act: Act): void {
    const { sim, drive, clock } = this.#world
    switch (act.do) {
      case 'sync':
        this.#life!.sync()
        return
      case 'crash':
        this.#life!.crash()
        return
      case 'expire-delta':
        drive.expireDelta()
        return
      case 'faults':
        // Nobody hears then of what OneDrive has, until the next look.
        if (act.profile === 'forbidden') this.#isLate = true
        sim.faults.set({ profile: 'none', rules: [...(FAULTS[act.profile] ?? [])] })
        return
      case 'quirk':
        if (act.quirk === 'deltaLagMs') this.#isLate = true
        drive.setQuirks({ [act.quirk]: TIMES_MS[act.quirk] ?? true })
        return
      case 'skew':
        clock.skewMs = act.ms
        return
      case 'mode':
        this.#rules.mode = act.mode
        this.#change({ mode: act.mode })
        return
      case 'policy':
        this.#rules.policy = act.policy
        this.#change({ conflicts: act.policy })
        return
      case 'links':
        this.#hasLinks = true
        this.#hasFollowed ||= act.areFollowed
        if (!act.areFollowed) this.#people.leaveLinks()
        this.#change({ follow_symlinks: act.areFollowed })
        return
      case 'skip':
        this.#rules.isFiltered = true
        this.#change({ filter: filterSchema.parse({ skip: act.pattern === undefined ? [] : [act.pattern] }) })
        return
      case 'answer':
        if (act.isYes) this.#changing = this.#changing.then(() => this.#sayYes())
        else {
          const side = this.#people.takeBack()
          if (side) this.#note({ side })
        }
        return
      default: {
        const paths = 'path' in act ? [act.path, 'to' in act ? act.to : ''] : []
        this.#hasOddNames ||= paths.some(takesNoPart)
        const isDone = this.#people.act(act)
        this.#rules.isFiltered ||= act.do === 'rules'
        this.#hasLinks ||= act.do === 'link' || act.do === 'alias'
        this.#note(act)
        this.counts.acts += isDone ? 1 : 0
        this.#options.say?.(`${isDone ? 'did' : 'could not'} ${JSON.stringify(act)}`)
      }
    }
  }

  #change(settings: Parameters<OracleWorld['change']>[0]): void {
    this.#changing = this.#changing.then(() => this.#world.change(settings))
    // Whoever waits for it is told.
    this.#changing.catch(() => undefined)
  }

  /** Whoever says it asks for a plan. */
  async #sayYes(): Promise<void> {
    if (await sayYes(this.#world)) this.#life!.sync()
  }

  #note(act: Act | { side: Side }): void {
    // Where a copy takes the place of the folder, OneDrive keeps what that does not have: it has a say, too.
    const sides =
      'do' in act && (act.do === 'both' || act.do === 'restore')
        ? (['here', 'there'] as const)
        : 'side' in act
          ? [act.side]
          : []
    for (const side of sides) {
      const tree = side === 'here' ? this.#people.here() : this.#people.there()
      this.#since.set(side, tree)
      this.#left[side] = shown(tree)
    }
  }

  /** The weather clears, and everything is looked at once more. */
  async #calm(): Promise<void> {
    const { sim, drive } = this.#world
    sim.faults.clear()
    drive.setQuirks({
      deltaLagMs: 0,
      changedNotFoundMs: 0,
      headersStall: false,
      redirectWithoutLocation: false,
    })
    const before = (await this.#deltas()).length
    this.#life!.sync()
    await this.#settle()
    // One that was asked for on the way may have been read before an action ended, and be heard after it.
    if ((await this.#deltas()).length - before < 2) return
    this.#life!.sync()
    await this.#settle()
  }

  #deltas(): ReturnType<OracleWorld['ledger']['jobs']> {
    return this.#world.ledger.jobs({ stream: streamOf(PAIR), kind: 'files.delta', limit: 1_000 })
  }

  async #actions(): Promise<number> {
    const jobs = await this.#world.ledger.jobs({ stream: streamOf(PAIR), state: 'done', limit: 1_000 })
    return jobs.filter(({ kind }) => /^files\.(check|download|upload|change)$/.test(kind)).length
  }
}

const FAULTS: Record<string, readonly FaultRule[]> = {
  flaky: [
    { do: 'error', status: 503, probability: 0.03 },
    { do: 'error', status: 500, probability: 0.02 },
    { do: 'reset', when: 'before', probability: 0.02 },
    { do: 'reset', when: 'after', probability: 0.03 },
    { do: 'truncate', probability: 0.02 },
    { do: 'truncate', close: false, probability: 0.02 },
    { do: 'content-type', probability: 0.01 },
    { do: 'throttle', status: 429, everyNth: 60, burst: 3, retryAfterSeconds: 1 },
  ],
  /** Said once, and not so the next time. */
  forbidden: [{ do: 'error', status: 403, probability: 0.05 }],
  /** It is done, and nobody hears of it. */
  lost: [{ do: 'reset', when: 'after', probability: 0.15 }],
}

async function describeWorld({ ledger }: OracleWorld): Promise<string> {
  const lines: string[] = []
  for (const table of ['file_local', 'file_base', 'file_remote', 'file_open']) {
    const rows = await ledger.driver.read((tx) => tx.all(`SELECT * FROM ${table}`))
    lines.push(table, ...rows.map((row) => JSON.stringify(row)))
  }
  const jobs = await ledger.jobs({ stream: streamOf(PAIR), limit: 60 })
  for (const job of jobs.reverse())
    lines.push(`${job.id} ${job.kind} ${job.state} ${job.payload} ${job.note ?? ''} ${job.error ?? ''}`)
  return lines.join('\n')
}
