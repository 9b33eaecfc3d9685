/**
 * Runs a history against a sync, and compares the end with what people did. Steps are counted rather than timed, so
 * that a history that fails is likely to fail again.
 */
import assert from 'node:assert/strict'
import { streamOf } from '../../src/apps/file-sync/drive.ts'
import { systemClock } from '../../src/clock.ts'
import type { FaultRule } from '../../src/sim/fault-rules.ts'
import { type Act, parseStep, type Side, type Step } from './history.ts'
import { checkEnd, checkFollowed, checkSides, namesakesOf, shown } from './oracle.ts'
import { People, type Tree } from './people.ts'
import { DRIVE, type Life, OracleWorld } from './world.ts'

export type Ran = { failure: string | undefined; crashes: number; acts: number; actions: number }

export type RunOptions = {
  seed: number
  /** Where the sync runs: in this process, or in one of its own that is killed. */
  sync?: 'here' | 'process'
  settleMsMax?: number
  say?: (line: string) => void
}

const SETTLE_MS_MAX = 20_000
const LIVES_MAX = 1_000
const LAG_MS = 150

export async function runHistory(lines: readonly string[], options: RunOptions): Promise<Ran> {
  const world = await OracleWorld.start({
    seed: options.seed,
    ledger: options.sync === 'process' ? 'file' : 'memory',
  })
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
  /** Both sides were the same when they were last compared. */
  #isAgreed = true
  /** Who did something since then, and what his side was after that. */
  readonly #since = new Map<Side, Tree>()
  #isLate = false

  constructor(world: OracleWorld, steps: Step[], options: RunOptions) {
    this.#world = world
    this.#people = new People(world.root, world.drive)
    this.#steps = steps
    this.#options = options
    this.#gap = steps[0]?.gap ?? 0
  }

  async toTheEnd(): Promise<void> {
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
    this.counts.actions = await this.#actions()
    const syncAgain = async (): Promise<void> => {
      this.#life!.sync()
      await this.#settle()
    }
    await checkEnd(this.#world, this.#people, { syncAgain, hasCrashed: this.counts.crashes > 0 })
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
      this.#next()
      await this.#compare()
    }
  }

  /** In the middle of a history less is certain. */
  async #compare(): Promise<void> {
    const open = await this.#world.store.openNodes(DRIVE, { limit: 1 })
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
      this.#do(act)
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
        sim.faults.set({ profile: 'none', rules: [...(FAULTS[act.profile] ?? [])] })
        return
      case 'quirk':
        if (act.quirk === 'deltaLagMs') this.#isLate = true
        drive.setQuirks({ [act.quirk]: act.quirk === 'deltaLagMs' ? LAG_MS : true })
        return
      case 'skew':
        clock.skewMs = act.ms
        return
      default: {
        const isDone = this.#people.act(act)
        this.#note(act)
        this.counts.acts += isDone ? 1 : 0
        this.#options.say?.(`${isDone ? 'did' : 'could not'} ${JSON.stringify(act)}`)
      }
    }
  }

  #note(act: Act): void {
    const sides = act.do === 'both' ? (['here', 'there'] as const) : 'side' in act ? [act.side] : []
    for (const side of sides) {
      this.#since.set(side, side === 'here' ? this.#people.here() : this.#people.there())
    }
  }

  /** The weather clears, and everything is looked at once more. */
  async #calm(): Promise<void> {
    const { sim, drive } = this.#world
    sim.faults.clear()
    drive.setQuirks({ deltaLagMs: 0, headersStall: false, redirectWithoutLocation: false })
    this.#life!.sync()
    await this.#settle()
  }

  async #actions(): Promise<number> {
    const jobs = await this.#world.ledger.jobs({ stream: streamOf(DRIVE), state: 'done', limit: 1_000 })
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
  /** It is done, and nobody hears of it. */
  lost: [{ do: 'reset', when: 'after', probability: 0.15 }],
}

async function describeWorld({ ledger }: OracleWorld): Promise<string> {
  const lines: string[] = []
  for (const table of ['file_local', 'file_base', 'file_remote', 'file_open']) {
    const rows = await ledger.driver.read((tx) => tx.all(`SELECT * FROM ${table}`))
    lines.push(table, ...rows.map((row) => JSON.stringify(row)))
  }
  const jobs = await ledger.jobs({ stream: streamOf(DRIVE), limit: 60 })
  for (const job of jobs.reverse())
    lines.push(`${job.id} ${job.kind} ${job.state} ${job.payload} ${job.note ?? ''} ${job.error ?? ''}`)
  return lines.join('\n')
}
