/** `tidemark mail clean` and `clean-undo`: clean-ups are started, confirmed, watched, resumed, abandoned and undone. */

import { stoppable } from '../../../app/cli/sync.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { didYouMean } from '../../../cli/output/input.ts'
import { type Lines, readLines } from '../../../cli/output/prompt.ts'
import { confirmationText } from '../clean-up/cutoff.ts'
import { CleanUpRuns, type RunEnd } from '../clean-up/runs.ts'
import { labelIdsOf } from '../clean-up/selection.ts'
import { surveyRun } from '../clean-up/survey.ts'
import type { ArchiveAction } from '../clean-up/verdict.ts'
import { prepareStream, requirePermission, wishedRun } from '../clean-up/wish.ts'
import type { MailRuntime } from '../runtime.ts'
import type { NewRun, RunRow } from '../store/journal.ts'
import {
  parseRun,
  printRun,
  printSurvey,
  runExitCode,
  runProgress,
  runSummary,
  surveyExitCode,
  undoNotice,
  undoSummary,
} from './clean-report.ts'
import { chosen, onlyOne, withMail } from './context.ts'

export type CleanOptions = {
  account?: string
  olderThan?: string
  query?: string
  action: ArchiveAction
  label?: string
  dryRun?: boolean
  quick?: boolean
  limit?: number
  permanently?: boolean
  yes?: boolean
  /** True: whichever is unfinished. */
  resume?: string | true
  abandon?: string
}

export type Asking = { isTerminal: boolean; lines: () => Lines }

export async function cleanMail(
  context: CliContext,
  options: CleanOptions,
  asking: Asking = {
    isTerminal: process.stdin.isTTY === true,
    lines: () => readLines(context.output),
  },
): Promise<void> {
  checkCleanOptions(options, asking.isTerminal)
  await withMail(context, {}, (opened) =>
    stoppable(
      context,
      async (stop) => {
        const session = { context, opened, stop, runs: runsOf(opened), asking }
        if (options.abandon !== undefined) await abandon(session, parseRun(options.abandon))
        else if (options.resume !== undefined) await resume(session, options)
        else await startOrLook(session, options)
      },
      { hint: '' },
    ),
  )
}

/** Throws before anything is opened: a slip here could cost mail. `isAsked`: somebody is there to type a confirmation. */
export function checkCleanOptions(options: CleanOptions, isAsked: boolean): void {
  const { action, permanently } = options
  if (options.resume !== undefined || options.abandon !== undefined) {
    checkExisting(options)
    return
  }
  if (options.olderThan === undefined) {
    throw new UsageError('How old must a message be to be taken out of Gmail?', {
      hint: 'Say it with --older-than, such as --older-than 2y. Look first with --dry-run.',
    })
  }
  if (options.quick && !options.dryRun) throw new UsageError('--quick belongs to --dry-run.')
  if (options.label !== undefined && action !== 'unlabel') {
    throw new UsageError(`--label belongs to --action unlabel, not to ${action}.`)
  }
  if (permanently && action !== 'delete') {
    throw new UsageError(`--permanently belongs to --action delete, not to ${action}.`)
  }
  if (action !== 'delete' || options.dryRun) return
  if (!permanently) {
    throw new UsageError('--action delete deletes for good: say so with --permanently.', {
      code: 'confirmation-needed',
      hint: 'Look first with --dry-run. --action trash can be taken back for 30 days.',
    })
  }
  if (!options.yes && !isAsked) {
    throw new UsageError('Deleting for good must be confirmed, and nobody is there to type it.', {
      code: 'confirmation-needed',
      hint: 'Run it in a terminal, or add --yes.',
    })
  }
}

function checkExisting(options: CleanOptions): void {
  const others = ['olderThan', 'query', 'label', 'dryRun', 'limit', 'quick'] as const
  const flag = options.resume === undefined ? '--abandon' : '--resume'
  if (options.resume !== undefined && options.abandon !== undefined) {
    throw new UsageError('A run is resumed or abandoned, not both.')
  }
  if (others.some((name) => options[name] !== undefined)) {
    throw new UsageError(`${flag} is about a run that was described when it was started: leave out the rest.`)
  }
}

export async function undoCleanUp(
  context: CliContext,
  text: string,
  options: { keepDates?: boolean },
): Promise<void> {
  const id = parseRun(text)
  await withMail(context, {}, (opened) =>
    stoppable(
      context,
      async (stop) => {
        const runs = runsOf(opened)
        const run = await runs.get(id)
        const action = run.action === 'delete' ? 'insert' : run.action
        await requirePermission(opened, { account: run.account, action })
        if (run.action !== 'unlabel') context.output.note(undoNotice(run, options))
        // Before the engine starts: it would first go on with what is to be undone.
        await runs.undo(id, options)
        await startEngine(opened, run.account)
        const end = await runs.wait(id, { undo: true, signal: stop, onLook: pacedNotes(context) })
        const tallies = await (await runs.journal()).tallies(id)
        if (end.end !== 'done') return unfinished(context, end, `tidemark mail clean-undo ${id}`)
        const details = await (await runs.journal()).undoDetails(id)
        if (!context.output.json)
          for (const line of undoSummary(end.run, tallies, details)) context.output.line(line)
        else printRun(context.output, { run: end.run, tallies, details })
        if (tallies.some(({ undo }) => undo === 'failed')) {
          context.exitCode = exitCodes.bad
          context.output.note(`Some could not be undone. See why: tidemark mail clean-runs ${id}`)
        }
      },
      { hint: '' },
    ),
  )
}

type Session = {
  context: CliContext
  opened: MailRuntime
  stop: AbortSignal
  runs: CleanUpRuns
  asking: Asking
}

function runsOf({ engine, mail, config }: MailRuntime): CleanUpRuns {
  const patienceMs = config.mail.patience_minutes * 60_000
  return new CleanUpRuns(engine, {
    accounts: mail.accounts,
    clock: systemClock,
    obstacles: mail.kinds.obstacles,
    patienceMs,
  })
}

async function startOrLook(session: Session, options: CleanOptions): Promise<void> {
  const { context, opened, stop, runs } = session
  const wanted = await runWanted(opened, options)
  noteQuery(context, wanted)
  if (options.dryRun) {
    const survey = await surveyRun({
      run: wanted,
      ledger: opened.ledger,
      tables: opened.mail.tables,
      clock: systemClock,
      signal: stop,
      account: await opened.mail.accounts.get(wanted.account),
      depth: options.quick ? 'index' : 'full',
      onLook: pacedLooks(context),
    })
    printSurvey(context.output, survey, wanted)
    context.exitCode = surveyExitCode(survey)
    return
  }
  await requirePermission(opened, wanted)
  await opened.mail.accounts.get(wanted.account)
  // Before the engine starts: it would first go on with an unfinished run.
  const run = await runs.start(wanted)
  await startEngine(opened, wanted.account)
  await follow(session, run, options)
}

async function resume(session: Session, options: CleanOptions): Promise<void> {
  const { opened, runs } = session
  const run =
    options.resume === true
      ? await unfinishedRun(session, options)
      : await runs.get(parseRun(options.resume!))
  if (run.state === 'done' || run.state === 'abandoned') {
    throw new UsageError(`Run ${run.id} is ${run.state}: there is nothing to resume.`, {
      hint: run.undo === 'undoing' ? `Its undo goes on with: tidemark mail clean-undo ${run.id}` : undefined,
    })
  }
  await requirePermission(opened, run)
  await startEngine(opened, run.account)
  await follow(session, await runs.resume(run.id), options)
}

async function unfinishedRun({ opened, runs }: Session, options: CleanOptions): Promise<RunRow> {
  const journal = await runs.journal()
  for (const name of chosen(opened.mail.accounts, options)) {
    const run = await journal.unfinished(name)
    if (run) return run
  }
  throw new UsageError('No clean-up is unfinished.', { hint: 'See them with: tidemark mail clean-runs' })
}

async function abandon({ context, runs }: Session, id: number): Promise<void> {
  const didAbandon = await runs.abandon(id)
  const run = await runs.get(id)
  if (context.output.json) return context.output.value(run)
  context.output.line(
    didAbandon
      ? `Run ${id} is given up. ${formatCount(run.done)} of its messages are done: tidemark mail clean-undo ${id} takes them back.`
      : `Run ${id} was over already.`,
  )
}

/** Watches a run to its end, and asks where it waits for a word. */
async function follow(session: Session, started: RunRow, options: CleanOptions): Promise<void> {
  const { context, runs, stop } = session
  const onLook = pacedNotes(context)
  let end = await runs.wait(started.id, { signal: stop, onLook })
  if (end.end === 'asks') {
    await confirm(session, end.run, options)
    await runs.approve(end.run.id)
    end = await runs.wait(started.id, { signal: stop, onLook })
  }
  const { output } = context
  if (end.end === 'stopped') await runs.halt(started.id)
  if (end.end !== 'done') return unfinished(context, end, `tidemark mail clean --resume ${started.id}`)
  const tallies = await (await runs.journal()).tallies(started.id)
  if (!output.json) output.line(runSummary(end.run))
  printRun(output, { run: end.run, tallies })
  if (!output.json && end.run.done > 0) output.line(`Undo it with: tidemark mail clean-undo ${started.id}`)
  context.exitCode = runExitCode(tallies)
}

/** What cannot be taken back is typed out, with its number, after the number is known. */
async function confirm(
  { context, asking, runs, stop }: Session,
  run: RunRow,
  options: CleanOptions,
): Promise<void> {
  if (options.yes || run.action !== 'delete') return
  noteQuery(context, run)
  const left = run.planned - run.done - run.refused
  const wanted = confirmationText(left)
  const again = `tidemark mail clean --resume ${run.id}`
  if (!asking.isTerminal) {
    throw new UsageError(`Run ${run.id} would delete ${formatCount(left)} messages for good, and waits.`, {
      code: 'confirmation-needed',
      hint: `Run it in a terminal, or add --yes: ${again} --yes`,
    })
  }
  const lines = asking.lines()
  try {
    const typed = await Promise.race([
      lines.next(`This deletes for good. To go on, type "${wanted}": `),
      whenStopped(stop, `Nothing was deleted; the plan is kept. Go on with: ${again}`),
    ])
    if (typed === wanted) return
  } finally {
    lines.close()
  }
  await runs.abandon(run.id)
  throw new UsageError('That was not it: nothing was deleted.', { code: 'confirmation-needed' })
}

/** As it was understood: what a slip in it would take is seen before it is taken. */
function noteQuery({ output }: CliContext, { query }: Pick<NewRun, 'query'>): void {
  if (query !== '') output.note(`Only mail that this finds: ${query}`)
}

function whenStopped(stop: AbortSignal, hint: string): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = (): void =>
      reject(new TidemarkError('Stopped.', { kind: 'transient', code: 'stopped', hint }))
    if (stop.aborted) end()
    else stop.addEventListener('abort', end, { once: true })
  })
}

function unfinished(context: CliContext, end: RunEnd, again: string): void {
  const { run } = end
  const about = run.undo === 'undoing' ? `${formatCount(run.undone)} undone` : runSummary(run)
  switch (end.end) {
    case 'stopped':
      context.output.note(`Stopped. ${about} Go on with: ${again}`)
      break
    case 'stuck':
      context.output.error(
        new TidemarkError(`Run ${run.id} does not go on: ${end.reason}`, {
          kind: 'transient',
          code: 'run-stuck',
          hint: `${about} When the reason is gone, go on with: ${again}`,
        }),
      )
      break
    default:
      context.output.note(`Run ${run.id} was ${run.state} meanwhile. ${about}`)
  }
  context.exitCode = exitCodes.failure
}

async function runWanted(opened: MailRuntime, options: CleanOptions): Promise<NewRun> {
  const { name: account } = onlyOne(chosen(opened.mail.accounts, options).map((name) => ({ name })))
  const { action, limit, query = '', olderThan = '', label: name } = options
  const label = name === undefined ? undefined : await labelIdOf(opened, account, name)
  const run = await wishedRun(
    opened,
    { account, action, olderThan, query },
    { nowMs: systemClock.now(), ...(label !== undefined && { label }) },
  )
  return { ...run, messagesMax: limit ?? null, approved: action !== 'delete' || options.yes === true }
}

async function labelIdOf({ mail: { tables } }: MailRuntime, account: string, name: string): Promise<string> {
  const ids = await labelIdsOf(tables, account)
  const id = ids.get(name.toLowerCase())
  if (id !== undefined) return id
  const names = (await tables.labels(account)).map((label) => label.name)
  throw new UsageError(`${account} has no label "${name}"${didYouMean(name, names)}`, {
    code: 'label-unknown',
  })
}

async function startEngine(opened: MailRuntime, account: string): Promise<void> {
  await prepareStream(opened, account)
  await opened.engine.start()
}

function pacedNotes({ output }: CliContext): (run: RunRow) => void {
  const note = output.pacedNotes()
  return (run) => note(runProgress(run))
}

function pacedLooks({ output }: CliContext): (messages: number) => void {
  const note = output.pacedNotes()
  return (messages) => note(`${formatCount(messages)} looked at …`)
}
