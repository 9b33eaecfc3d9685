/**
 * Waits for the work of some sources. It is over when nothing of it is left, and stuck when all that is left cannot
 * move: its stream is paused, or something is in the way that waiting will not change.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { JobRow } from '../../ledger/contract.ts'
import { eachJob } from '../../ledger/each-job.ts'
import type { CliContext } from '../command.ts'
import type { Source, SourceObstacle } from '../sources.ts'
import type { SyncProgress } from './progress.ts'
import type { OpenedSources } from './with-app.ts'

/** On a terminal, where the line is drawn over the last; elsewhere lines add up. */
const LOOK_TERMINAL_MS = 500
const LOOK_LINES_MS = 5_000
/** How soon the end is noticed, whatever is printed. */
const STEP_MS = 150
/** A server that starts again takes less; a full disk stays full. */
const LEDGER_MS_MAX = 60_000
/** Rounds that follow from what was done; one that changes nothing ends it before. */
const ROUNDS_MAX = 1_000

export type Settling = {
  sources: readonly Source[]
  stop: AbortSignal
  /** How long a service may be out of reach; without end where it is undefined. */
  patienceMs: number | undefined
  progress: SyncProgress
}

/** Until nothing is left to do for these sources, nothing of it can move, or somebody says stop. */
export async function untilSettled(
  context: CliContext,
  opened: OpenedSources,
  settling: Settling,
): Promise<void> {
  let before: string | undefined
  for (let round = 0; round < ROUNDS_MAX; round++) {
    await untilIdle(context, opened, settling)
    if (settling.stop.aborted || settling.progress.ledger.trouble) return
    const next = await unlessStuck(context, opened, settling, opened.sources.next?.(settling.sources))
    if (next === undefined || next === before) return
    before = next
  }
}

async function untilIdle({ output }: CliContext, opened: OpenedSources, settling: Settling): Promise<void> {
  const { progress, stop } = settling
  const everyMs = output.isTerminal ? LOOK_TERMINAL_MS : LOOK_LINES_MS
  let shownMs: number | undefined
  while (!stop.aborted && (await canMove(opened, settling))) {
    if (shownMs === undefined || systemClock.monotonicMs() - shownMs >= everyMs) {
      shownMs = systemClock.monotonicMs()
      await progress.show()
    }
    checkLedger(opened, settling)
    await sleep(systemClock, STEP_MS, stop).catch(() => {
      // Told to stop: the loop ends by itself.
    })
  }
}

/**
 * What is begun is written to the ledger, which may be full or away for as long as it likes: neither patience nor who
 * says stop waits for that. Undefined where it is left behind.
 */
export async function unlessStuck<T>(
  { output }: Pick<CliContext, 'output'>,
  opened: Pick<OpenedSources, 'app'>,
  settling: Pick<Settling, 'stop' | 'patienceMs' | 'progress'>,
  work: Promise<T> | undefined,
): Promise<T | undefined> {
  const { progress, stop } = settling
  let isOver = false
  // Who is left behind has nobody to tell; everybody else is told below.
  const ending = work
    ?.catch(() => undefined)
    .then(() => {
      isOver = true
    })
  const everyMs = output.isTerminal ? LOOK_TERMINAL_MS : LOOK_LINES_MS
  let shownMs = Number.NEGATIVE_INFINITY
  while (ending && !isOver) {
    const isStuck = progress.ledger.trouble !== undefined
    if (isStuck && stop.aborted) return undefined
    checkLedger(opened, settling)
    if (isStuck && systemClock.monotonicMs() - shownMs >= everyMs) {
      shownMs = systemClock.monotonicMs()
      await progress.show()
    }
    const step = new AbortController()
    await Promise.race([ending, sleep(systemClock, STEP_MS, step.signal).catch(() => undefined)])
    step.abort()
  }
  return work
}

function checkLedger(
  { app }: Pick<OpenedSources, 'app'>,
  { progress, patienceMs }: Pick<Settling, 'progress' | 'patienceMs'>,
): void {
  const { trouble } = progress.ledger
  if (!trouble || patienceMs === undefined || trouble.forMs < Math.min(patienceMs, LEDGER_MS_MAX)) return
  throw new TidemarkError(trouble.detail, {
    kind: 'transient',
    code: 'ledger-down',
    hint: `Check the disk it is on (space, health, mount), or its server. Nothing is lost: the next tidemark ${app.name} sync goes on where this one was.`,
  })
}

/** Others may have work too, or be paused with theirs: only these sources are waited for. */
async function canMove({ runtime, open, sources }: OpenedSources, settling: Settling): Promise<boolean> {
  const { engine, ledger } = runtime
  const pauses = await ledger.pauses()
  const pausedKinds = new Set(pauses.filter(({ scope }) => scope === 'kind').map(({ target }) => target))
  const running = new Set([...engine.dispatcher.running.values()].map(({ context }) => context.stream))
  for (const source of settling.sources) {
    const { stream } = source
    if (running.has(stream)) return true
    if (pauses.some(({ scope, target }) => scope === 'all' || (scope === 'stream' && target === stream)))
      continue
    const obstacle = settling.patienceMs === undefined ? undefined : sources.obstacle?.(source)
    if (obstacle && isHopeless(obstacle, settling.patienceMs!)) continue
    const isStuck = isLeftBehind(obstacle?.part?.has, sources.isPutOff)
    const kinds = open.jobs.map(({ kind }) => kind).filter((kind) => !pausedKinds.has(kind))
    const isAny = pausedKinds.size === 0 && !isStuck
    for (const kind of isAny ? [undefined] : kinds) {
      if (await hasPending(ledger, { stream, ...(kind === undefined ? {} : { kind }) }, isStuck)) return true
    }
    if ((await ledger.jobs({ state: 'claimed', stream, limit: 1 })).length > 0) return true
  }
  return false
}

async function hasPending(
  ledger: OpenedSources['runtime']['ledger'],
  filter: { stream: string; kind?: string },
  isStuck: ((job: JobRow) => boolean) | undefined,
): Promise<boolean> {
  const [newest] = await ledger.jobs({ ...filter, state: 'pending', limit: 1 })
  if (!newest || !isStuck?.(newest)) return newest !== undefined
  for await (const job of eachJob(ledger, { ...filter, state: 'pending' })) if (!isStuck(job)) return true
  return false
}

type IsLeft = (job: JobRow) => boolean

/** Undefined where every job counts: then one is as good as all. */
function isLeftBehind(isStuck: IsLeft | undefined, isPutOff: IsLeft | undefined): IsLeft | undefined {
  if (!isStuck || !isPutOff) return isStuck ?? isPutOff
  return (job) => isStuck(job) || isPutOff(job)
}

/** What is wrong with a disk or with files is put right by people, not by time. */
function isHopeless({ part, where, sinceMs }: SourceObstacle, patienceMs: number): boolean {
  if (part) return false
  return where !== 'cloud' || systemClock.monotonicMs() - sinceMs >= patienceMs
}
