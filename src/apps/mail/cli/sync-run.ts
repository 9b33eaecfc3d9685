/** Runs a sync in this process: plan what is new, follow what changed, and say how it goes. */

import { type CliContext, exitCodes } from '../../../app/command.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatDuration } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { handleSignals } from '../../../engine/shutdown.ts'
import { SERVICE, sourcesOf, streamOf } from '../account.ts'
import { chosen, type MailEngine, withMailEngine } from './context.ts'
import { conclude, pauseOf } from './sync-end.ts'
import { checkPlanned, checkSyncOptions, parseSince, type SyncOptions } from './sync-input.ts'
import { SyncProgress } from './sync-progress.ts'
import { settle } from './sync-settle.ts'

/** Jobs that failed before and are tried again by a sync. */
const RETRIED_MAX = 1_000

export async function syncMail(context: CliContext, options: SyncOptions): Promise<void> {
  checkSyncOptions(options)
  const { slice } = options
  const overrides = slice ? [{ key: 'mail.slice', value: slice, flag: '--slice' }] : []
  const sinceMs = options.since === undefined ? undefined : parseSince(options.since)
  await withMailEngine(context, { overrides, sinceMs }, async (opened) => {
    const wanted = chosen(opened.mail, options)
    await checkPlanned(context, opened, { names: wanted, sinceMs, ...(slice ? { slice } : {}) })
    const names = await openable(context, opened, wanted)
    if (names.length > 0) {
      await resumeSignedIn(opened, SERVICE, sourcesOf(names))
      await retryFailed(opened, names)
      await stoppable(context, (stop) => run(context, opened, { names, options, stop }))
    }
    if (names.length < wanted.length) context.exitCode = exitCodes.failure
  })
}

/** Starts the engine on what is enqueued, until it is done; then says how it went. */
export async function runMailWork(
  context: CliContext,
  opened: MailEngine,
  names: readonly string[],
): Promise<{ stopped: boolean }> {
  let stopped = false
  await stoppable(context, async (stop) => {
    await resumeSignedIn(opened, SERVICE, sourcesOf(names))
    for (const name of names) await opened.engine.streams.open(streamOf(name))
    if (opened.engine.state === 'created') await opened.engine.start()
    const progress = new SyncProgress(context, opened, names)
    const patienceMs = opened.config.mail.patience_minutes * 60_000
    await settle(context, opened, { names, stop, patienceMs, progress })
    progress.end()
    stopped = stop.aborted
    await conclude(context, opened, { names, stopped })
  })
  return { stopped }
}

/**
 * What cannot be opened or read is found now, and not by a job in an hour: nothing is written beside a file that is
 * missing or damaged. One account's trouble does not keep the others from their mail.
 */
async function openable(
  { output }: CliContext,
  { mail }: MailEngine,
  wanted: readonly string[],
): Promise<string[]> {
  const names: string[] = []
  for (const name of wanted) {
    try {
      const { archive } = await mail.get(name)
      const files = [...(await archive.shards()), ...(await archive.attachmentFiles())]
      const broken = files.filter(({ state }) => state !== 'ok')
      if (broken.length > 0) throw damaged(name, broken)
      names.push(name)
    } catch (thrown) {
      if (wanted.length === 1) throw thrown
      output.error(thrown)
      output.note(`${name} is left out of this sync.`)
    }
  }
  return names
}

function damaged(account: string, broken: readonly { detail?: string }[]): TidemarkError {
  const [first, ...others] = broken
  const more =
    others.length > 0 ? ` So ${plural(others.length, 'is', 'are')} ${others.length} of its other files.` : ''
  return new TidemarkError(
    `${first?.detail ?? `The archive of ${account} has a file that cannot be read.`}${more}`,
    {
      kind: 'permanent',
      code: 'archive-damaged',
      hint: 'Put it back from a backup, if there is one; or run tidemark mail verify --repair, which fetches again what was in it. Until then nothing is written to this archive.',
    },
  )
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
  // Whoever watches has time.
  const patienceMs = options.watch ? undefined : config.mail.patience_minutes * 60_000
  const settled = (): Promise<void> => settle(context, opened, { names, stop, patienceMs, progress })
  for (const name of names) {
    const isTakenOver = await hasMailBefore(opened, name)
    const plan = await engine.enqueue(kinds.plan, { account: name }, { stream: streamOf(name) })
    if (isTakenOver) {
      context.output.note(
        `${name}: there is mail in the archive already, so the mailbox is compared with it.`,
      )
      const options = { stream: streamOf(name), after: [plan.id] }
      await engine.enqueue(kinds.reconcile, { account: name }, options)
    } else if (await hasOtherChoices(opened, name)) {
      context.output.note(`${name}: what is wanted has changed, so the mailbox is compared with the archive.`)
      await engine.enqueue(kinds.reconcile, { account: name }, { stream: streamOf(name) })
    }
  }
  await settled()
  const follow = async (): Promise<void> => {
    if (stop.aborted) return
    for (const name of names)
      await engine.enqueue(kinds.history, { account: name }, { stream: streamOf(name) })
    await settled()
  }
  await follow()
  if (options.watch) await watch(context, opened, { names, options, stop }, follow)
  progress.end()
  await conclude(context, opened, { names, stopped: stop.aborted })
}

async function watch(
  { output }: CliContext,
  opened: MailEngine,
  { names, options, stop }: Run,
  follow: () => Promise<void>,
): Promise<void> {
  const everyMs = options.every ?? opened.config.mail.poll_minutes * 60_000
  if (!stop.aborted) output.note(`Looking for changes every ${formatDuration(everyMs)}; Ctrl-C stops.`)
  const told = new Map<string, string | undefined>()
  while (!stop.aborted) {
    for (const name of names) {
      const pause = await pauseOf(opened.ledger, name)
      if (pause && told.get(name) !== pause.reason) {
        output.note(`${name} is paused: ${pause.reason}`)
        output.note(`  ${pause.hint}`)
      }
      told.set(name, pause?.reason)
    }
    await sleep(systemClock, everyMs, stop).catch(() => {
      // Told to stop: the loop ends by itself.
    })
    await resumeSignedIn(opened, SERVICE, sourcesOf(names))
    await follow()
  }
}

/** What failed for good in an earlier sync gets its full number of tries again, and what was put off need not wait. */
async function retryFailed({ ledger, kinds }: MailEngine, names: readonly string[]): Promise<void> {
  const own = new Set(
    [kinds.plan, kinds.list, kinds.fetch, kinds.history, kinds.reconcile].map((k) => k.kind),
  )
  for (const name of names) {
    const stream = streamOf(name)
    await ledger.hurry(stream)
    for (const { id, kind } of await ledger.jobs({ state: 'failed', stream, limit: RETRIED_MAX })) {
      if (!own.has(kind)) continue
      await ledger.redo(id).catch((thrown: unknown) => {
        // Brought back already, by one that it depends on or by another sync.
        if (!(thrown instanceof UsageError)) throw thrown
      })
    }
  }
}

/** Before its first sync: taken over from a ledger that was lost, or imported. Some of it may be gone from Gmail. */
async function hasMailBefore({ mail, tables }: MailEngine, name: string): Promise<boolean> {
  if ((await tables.findMailbox(name))?.planned_at != null) return false
  const { archive } = await mail.get(name)
  return (await archive.shards()).length > 0
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices({ mail, tables }: MailEngine, name: string): Promise<boolean> {
  const mailbox = await tables.findMailbox(name)
  const { choices } = await mail.get(name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(choices)
}
