/** Runs a sync in this process: plan what is new, follow what changed, and say how it goes. */
import { streamOf } from '../apps/mail-archive/account.ts'
import { balanceText, type MailStatus, mailStatus } from '../apps/mail-archive/status.ts'
import { sleep, systemClock } from '../clock.ts'
import { handleSignals } from '../engine/shutdown.ts'
import { UsageError } from '../errors.ts'
import { formatCount } from '../format.ts'
import { type CliContext, exitCodes } from './context.ts'
import { plural } from './jobs-input.ts'
import { chosen, type MailEngine, withMailEngine } from './mail-context.ts'
import { SyncProgress } from './mail-sync-progress.ts'

export type SyncOptions = {
  account?: string
  watch?: boolean
  slice?: string
  since?: string
  every?: number
}

/** On a terminal, where the line is drawn over the last; elsewhere lines add up. */
const LOOK_TERMINAL_MS = 500
const LOOK_LINES_MS = 5_000
/** How soon the end is noticed, whatever is printed. */
const STEP_MS = 200

export async function syncMail(context: CliContext, options: SyncOptions): Promise<void> {
  const overrides = options.slice ? [{ key: 'mail.slice', value: options.slice, flag: '--slice' }] : []
  const sinceMs = options.since === undefined ? undefined : parseSince(options.since)
  await withMailEngine(context, { overrides, sinceMs }, async (opened) => {
    const names = chosen(opened.mail, options)
    await checkSince(opened, names, sinceMs)
    await resumeSignedIn(opened, names)
    // What cannot be opened is found now, and not by a job in an hour.
    for (const name of names) await opened.mail.get(name)
    await stoppable(context, (stop) => run(context, opened, { names, options, stop }))
  })
}

/** Starts the engine on what is enqueued, until it is done; then says how it went. */
export async function runMailWork(
  context: CliContext,
  opened: MailEngine,
  names: readonly string[],
): Promise<void> {
  await stoppable(context, async (stop) => {
    for (const name of names) await opened.engine.streams.open(streamOf(name))
    await opened.engine.start()
    const progress = new SyncProgress(context, opened, names)
    await settle(opened, progress, { names, stop, context })
    progress.end()
    await conclude(context, opened, { names, stopped: stop.aborted })
  })
}

async function stoppable(context: CliContext, work: (stop: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const unhandle = handleSignals({
    process,
    clock: systemClock,
    onStop: async () => {
      context.output.note('Stopping; what is under way is kept. Run it again to go on.')
      stop.abort()
    },
    onReload: () => context.output.note('The configuration is read when the command starts.'),
    exit: (code) => process.exit(code),
    onError: (error) => context.output.error(error),
  })
  try {
    await work(stop.signal)
  } finally {
    unhandle()
  }
}

type Run = { names: readonly string[]; options: SyncOptions; stop: AbortSignal }

async function run(context: CliContext, opened: MailEngine, { names, options, stop }: Run): Promise<void> {
  const { engine, kinds, config } = opened
  for (const name of names) await engine.streams.open(streamOf(name))
  await engine.start()
  const progress = new SyncProgress(context, opened, names)
  for (const name of names) {
    await engine.enqueue(kinds.plan, { account: name }, { stream: streamOf(name) })
    if (await hasOtherChoices(opened, name)) {
      context.output.note(`${name}: what is wanted has changed, so the mailbox is compared with the archive.`)
      await engine.enqueue(kinds.reconcile, { account: name }, { stream: streamOf(name) })
    }
  }
  await settle(opened, progress, { names, stop, context })
  for (const name of names) await engine.enqueue(kinds.history, { account: name }, { stream: streamOf(name) })
  await settle(opened, progress, { names, stop, context })
  if (options.watch && !stop.aborted) {
    const everyMs = options.every ?? config.mail.poll_minutes * 60_000
    context.output.note(
      `Up to date. Looking for changes every ${Math.round(everyMs / 1000)} s; Ctrl-C stops.`,
    )
    while (!stop.aborted) {
      await sleep(systemClock, everyMs, stop).catch(() => {
        // Told to stop: the loop ends by itself.
      })
      if (stop.aborted) break
      for (const name of names)
        await engine.enqueue(kinds.history, { account: name }, { stream: streamOf(name) })
      await settle(opened, progress, { names, stop, context })
    }
  }
  progress.end()
  await conclude(context, opened, { names, stopped: stop.aborted })
}

/** Until nothing is left to do for these accounts, or somebody says stop. */
async function settle(
  { engine }: MailEngine,
  progress: SyncProgress,
  { names, stop, context }: { names: readonly string[]; stop: AbortSignal; context: CliContext },
): Promise<void> {
  const everyMs = context.output.isTerminal ? LOOK_TERMINAL_MS : LOOK_LINES_MS
  const streams = new Set(names.map(streamOf))
  let drained = false
  const done = engine.drained().then(() => {
    drained = true
  })
  let shownMs = 0
  while (!drained && !stop.aborted) {
    if (systemClock.monotonicMs() - shownMs >= everyMs) {
      shownMs = systemClock.monotonicMs()
      await progress.show()
    }
    // An account that must sign in again is paused with its work: nothing of it will move.
    const paused = (await engine.ledger.pauses()).filter(
      ({ scope, target }) => scope === 'all' || streams.has(target),
    )
    if (paused.length > 0 && engine.dispatcher.running.size === 0 && (await onlyPausedLeft(engine, streams)))
      return
    await Promise.race([done, sleep(systemClock, STEP_MS, stop).catch(() => {})])
  }
}

/** Is every stream with open work paused? */
async function onlyPausedLeft(engine: MailEngine['engine'], streams: ReadonlySet<string>): Promise<boolean> {
  const status = await engine.ledger.streams()
  const paused = new Set(
    (await engine.ledger.pauses()).map(({ scope, target }) => (scope === 'all' ? '' : target)),
  )
  return (
    paused.has('') || status.filter(({ name }) => streams.has(name)).every(({ name }) => paused.has(name))
  )
}

async function conclude(
  context: CliContext,
  { ledger, tables }: MailEngine,
  { names, stopped }: { names: readonly string[]; stopped: boolean },
): Promise<void> {
  const { output } = context
  const all = await mailStatus(ledger, tables, names)
  const failed = (await ledger.jobs({ state: 'failed', limit: 100 })).filter(({ stream }) =>
    names.some((name) => stream === streamOf(name)),
  )
  const pauses = await ledger.pauses()
  if (output.json) output.value({ type: 'summary', stopped, accounts: all, failed: failed.length })
  else for (const status of all) output.line(summaryLine(status, stopped))
  for (const { target, reason } of pauses) {
    if (target === '' || names.some((name) => target === streamOf(name)))
      output.note(`${target || 'Everything'} is paused: ${reason}`)
  }
  for (const job of failed.slice(0, 5))
    output.note(`Job #${job.id} (${job.kind}) failed: ${job.error ?? ''}. See: tidemark jobs show ${job.id}`)
  const bad = all.reduce((sum, { bad: n }) => sum + n, 0)
  const isPaused = all.some(({ paused }) => paused)
  if (failed.length > 0 || isPaused || all.some(({ unbalanced }) => unbalanced > 0))
    context.exitCode = exitCodes.failure
  else if (bad > 0 && !stopped) {
    context.exitCode = exitCodes.bad
    output.note(
      `${formatCount(bad)} ${plural(bad, 'message')} could not be fetched. See: tidemark mail bad list`,
    )
  }
}

function summaryLine(status: MailStatus, stopped: boolean): string {
  const mark =
    status.watermarkMs === null
      ? 'none yet'
      : new Date(status.watermarkMs).toISOString().slice(0, 16).replace('T', ' ')
  const verb = stopped && status.onTheirWay > 0 ? 'stopped' : 'done'
  return `${status.account}: ${verb}; ${balanceText(status, formatCount)}; watermark ${mark} UTC`
}

function parseSince(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (!Number.isNaN(ms) && ms > 0 && ms < systemClock.now()) return ms
  throw new UsageError(`"${text}" is not a day in the past.`, {
    hint: 'Write it as YYYY-MM-DD: --since 2020-01-31',
  })
}

/** Where an archive begins is decided once: its completeness is proven from there on. */
async function checkSince(
  opened: MailEngine,
  names: readonly string[],
  sinceMs: number | undefined,
): Promise<void> {
  if (sinceMs === undefined) return
  for (const status of await mailStatus(opened.ledger, opened.tables, names)) {
    if (status.plannedAtMs === null || status.sinceMs === sinceMs) continue
    const begins =
      status.sinceMs === null
        ? 'with the oldest mail'
        : `on ${new Date(status.sinceMs).toISOString().slice(0, 10)}`
    throw new UsageError(
      `The archive of ${status.account} begins ${begins}; that was decided by its first sync.`,
      {
        hint: 'Leave out --since to go on with it.',
      },
    )
  }
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices({ mail, tables }: MailEngine, name: string): Promise<boolean> {
  const mailbox = await tables.findMailbox(name)
  const { choices } = await mail.get(name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(choices)
}

/** A stream that was paused because the account had to sign in goes on once it has. */
export async function resumeSignedIn(
  { engine, ledger, accounts }: MailEngine,
  names: readonly string[],
): Promise<void> {
  const { SIGN_IN_REASON } = await import('../engine/health.ts')
  for (const { scope, target, reason } of await ledger.pauses()) {
    const name = names.find((one) => scope === 'stream' && target === streamOf(one))
    if (name === undefined || !reason.startsWith(SIGN_IN_REASON)) continue
    const account = await accounts.find('gmail', name)
    if (account?.state === 'ready') await engine.resume('stream', target)
  }
}
