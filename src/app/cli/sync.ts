/**
 * Brings sources up to date in this process: begins what each needs, waits until it is settled, looks once more at what
 * has changed meanwhile, goes on so with --watch, and says how it ended.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { formatDuration } from '../../base/format.ts'
import { handleSignals } from '../../engine/shutdown.ts'
import { type CliContext, exitCodes } from '../command.ts'
import { resumeSignedIn } from '../signed-in.ts'
import type { Source } from '../sources.ts'
import { conclude, pauseOf } from './ending.ts'
import { SyncProgress } from './progress.ts'
import { unlessStuck, untilSettled } from './settling.ts'
import { type AppInput, chosenSources, type OpenedSources, type SourcesApp, withSources } from './with-app.ts'

/** Jobs that failed before and are tried again by a sync. */
const RETRIED_MAX = 1_000
/** Each look costs a call: more often than this helps nobody. */
const EVERY_MS_MIN = 1_000
const POLL_MS = 5 * 60_000
const PATIENCE_MS = 10 * 60_000

type Options = Readonly<Record<string, unknown>>
export type SyncInput<O = Options> = { wanted: string | undefined; options: O }

/** What is an app's own about a sync. */
export type SyncPart = {
  /** Refuses what was said wrongly before anything is opened; says what holds for this run over the configuration. */
  check?(input: SyncInput): AppInput | undefined
  /** What this run does in its own way. */
  steps?(context: CliContext, opened: OpenedSources, input: SyncInput): SyncSteps
}

export type SyncSteps = {
  /** The sources: those that are named, and others where the app sets up new ones. None: there is nothing left to do. */
  choose?(): Promise<readonly Source[] | undefined>
  /** Refuses a source that cannot be synced now. One source's trouble does not keep the others from it. */
  check?(source: Source): Promise<void>
  /** Instead of Sources.begin. */
  begin?(source: Source): Promise<void>
  /** All that was begun is settled. */
  settled?(run: SyncRun): Promise<void>
  /** Instead of looking again and again. */
  watch?(run: SyncRun): Promise<void>
  /** Which of them are still there, at the end. */
  kept?(sources: readonly Source[]): Promise<readonly Source[]>
  /** Says what waits for a person in a source, and what to do about it. */
  explain?(source: Source): Promise<void>
}

export type SyncRun = {
  sources: readonly Source[]
  stop: AbortSignal
  progress: SyncProgress
  /** Waits until what was enqueued is settled. */
  settle(): Promise<void>
  /** Begins something with each source; a ledger that cannot be written is not waited for without end. */
  begin(how: (source: Source) => Promise<void>): Promise<void>
}

export async function syncSources(
  context: CliContext,
  app: SourcesApp,
  input: SyncInput,
  part: SyncPart = {},
): Promise<void> {
  checkEvery(input)
  await withSources(context, app, part.check?.(input) ?? {}, async (opened) => {
    const steps = part.steps?.(context, opened, input) ?? {}
    const wanted = steps.choose ? await steps.choose() : await chosenSources(opened, input.wanted)
    if (!wanted) return
    const sources = await syncable(context, wanted, steps)
    if (sources.length > 0) {
      await goOnSignedIn(opened, sources)
      await retryFailed(opened, sources)
      await stoppable(context, (stop) => run(context, opened, { sources, steps, input, stop }))
    }
    if (sources.length < wanted.length) context.exitCode = exitCodes.failure
  })
}

function checkEvery({ options: { every, watch } }: SyncInput): void {
  if (typeof every !== 'number') return
  if (!watch) throw new UsageError('--every belongs to --watch: without it, a sync looks once and ends.')
  if (every >= EVERY_MS_MIN) return
  throw new UsageError('--every is too short: a second is the least.', {
    hint: 'A few minutes are enough for most; leave it out for what the configuration says.',
  })
}

/** What cannot be synced is found now, and not by a job in an hour. */
async function syncable(
  { output }: CliContext,
  wanted: readonly Source[],
  { check }: SyncSteps,
): Promise<Source[]> {
  const sources: Source[] = []
  for (const source of wanted) {
    try {
      await check?.(source)
      sources.push(source)
    } catch (thrown) {
      if (wanted.length === 1) throw thrown
      output.error(thrown)
      output.note(`${source.name} is left out of this sync.`)
    }
  }
  return sources
}

/** The first signal ends it in good order; see handleSignals. `reason`: what is thrown where work stops for it. */
export async function stoppable<T>(
  { output }: CliContext,
  work: (stop: AbortSignal) => Promise<T>,
  { hint = ' Run it again to go on.', reason = 'stopped by hand' } = {},
): Promise<T> {
  const stop = new AbortController()
  const unhandle = handleSignals({
    process,
    clock: systemClock,
    onStop: async () => {
      // What is drawn has no end of line.
      if (output.isTerminal) output.rawError('\n')
      output.note(`Stopping; what is under way is kept.${hint}`)
      stop.abort(new TidemarkError(reason, { kind: 'transient', code: 'stopped' }))
    },
    onReload: () => output.note('The configuration is read when the command starts.'),
    exit: (code) => process.exit(code),
    onError: (error) => output.error(error),
  })
  try {
    return await work(stop.signal)
  } finally {
    unhandle()
  }
}

type Running = { sources: readonly Source[]; steps: SyncSteps; input: SyncInput; stop: AbortSignal }

async function run(context: CliContext, opened: OpenedSources, running: Running): Promise<void> {
  const { steps, input, stop } = running
  const isWatch = input.options.watch === true
  const { sources, runtime } = opened
  const all = running.sources
  for (const { stream } of all) await runtime.engine.streams.open(stream)
  await runtime.engine.start()
  const progress = new SyncProgress(context, opened, all)
  // Whoever watches has time.
  const patienceMs = isWatch ? undefined : (sources.patienceMs?.() ?? PATIENCE_MS)
  const settling = { sources: all, stop, patienceMs, progress }
  const settle = (): Promise<void> => untilSettled(context, opened, settling)
  const begin: SyncRun['begin'] = async (how) => {
    for (const source of all) await unlessStuck(context, opened, settling, how(source))
  }
  const asRun: SyncRun = { sources: all, stop, progress, settle, begin }
  try {
    await begin(steps.begin ?? sources.begin)
    await settle()
    await steps.settled?.(asRun)
    if (sources.follow) await follow(opened, asRun)
    if (isWatch && !stop.aborted) {
      await (steps.watch?.(asRun) ?? watch(context, opened, { ...asRun, everyMs: input.options.every }))
    }
  } finally {
    progress.end()
  }
  const kept = (await steps.kept?.(all)) ?? all
  await conclude(context, opened, { sources: kept, stopped: stop.aborted, explain: steps.explain })
}

async function follow({ sources }: OpenedSources, { stop, settle, begin }: SyncRun): Promise<void> {
  if (stop.aborted) return
  await begin(sources.follow ?? sources.begin)
  await settle()
}

async function watch(
  { output }: CliContext,
  opened: OpenedSources,
  run: SyncRun & { everyMs: unknown },
): Promise<void> {
  const { stop, progress } = run
  const everyMs = typeof run.everyMs === 'number' ? run.everyMs : (opened.sources.pollMs?.() ?? POLL_MS)
  await progress.aside(() =>
    output.note(`Looking for changes every ${formatDuration(everyMs)}; Ctrl-C stops.`),
  )
  const told = new Map<string, string | undefined>()
  while (!stop.aborted) {
    for (const source of run.sources) {
      const pause = await pauseOf(opened, source)
      if (pause && told.get(source.name) !== pause.reason) {
        await progress.aside(() => {
          output.note(`${source.name} is paused: ${pause.reason}`)
          output.note(`  ${pause.hint}`)
        })
      }
      told.set(source.name, pause?.reason)
    }
    await sleep(systemClock, everyMs, stop).catch(() => {
      // Told to stop: the loop ends by itself.
    })
    await goOnSignedIn(opened, run.sources)
    await follow(opened, run)
  }
}

async function goOnSignedIn({ app, runtime }: OpenedSources, all: readonly Source[]): Promise<void> {
  for (const service of app.services) {
    const own = all.flatMap(({ stream, account }) =>
      account?.service === service ? [{ stream, account: account.name }] : [],
    )
    await resumeSignedIn(runtime, service, own)
  }
}

/** What failed for good in an earlier sync gets its full number of tries again, and what was put off need not wait. */
async function retryFailed(
  { sources, runtime: { ledger } }: OpenedSources,
  all: readonly Source[],
): Promise<void> {
  for (const { stream } of all) {
    await ledger.wakeStream(stream)
    for (const { id, kind } of await ledger.jobs({ state: 'failed', stream, limit: RETRIED_MAX })) {
      if (sources.kinds && !sources.kinds.has(kind)) continue
      await ledger.redo(id).catch((thrown: unknown) => {
        // Brought back already, by one that it depends on or by another sync.
        if (!(thrown instanceof UsageError)) throw thrown
      })
    }
  }
}

/** Starts the engine on what is enqueued for these sources, until it is settled; then says how it went. */
export async function runWork(
  context: CliContext,
  opened: OpenedSources,
  all: readonly Source[],
): Promise<{ stopped: boolean }> {
  const { engine } = opened.runtime
  let stopped = false
  await stoppable(context, async (stop) => {
    await goOnSignedIn(opened, all)
    for (const { stream } of all) await engine.streams.open(stream)
    if (engine.state === 'created') await engine.start()
    const progress = new SyncProgress(context, opened, all)
    const patienceMs = opened.sources.patienceMs?.() ?? PATIENCE_MS
    await untilSettled(context, opened, { sources: all, stop, patienceMs, progress })
    progress.end()
    stopped = stop.aborted
    await conclude(context, opened, { sources: all, stopped })
  })
  return { stopped }
}
