/** How clean-ups are told (`tidemark mail clean-runs`): in a table of classes for people, as one object for programs. */

import { type CliContext, type ExitCode, exitCodes } from '../../../app/command.ts'
import { lookAtLedger } from '../../../app/with-ledger.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { minuteText } from '../../../base/moment.ts'
import { counted, plural } from '../../../base/wording.ts'
import { parseId } from '../../../cli/output/input.ts'
import type { Output } from '../../../cli/output/output.ts'
import type { Survey } from '../clean-up/survey.ts'
import {
  type ArchiveAction,
  DAMAGE,
  REFUSAL_CLASSES,
  REFUSAL_TEXTS,
  type RefusalClass,
} from '../clean-up/verdict.ts'
import {
  ArchiveJournal,
  type EntryUndo,
  type RunRow,
  type Sum,
  type Tally,
  type Trouble,
} from '../store/journal.ts'

type ClassRow = { class: string; messages: number; bytes: number; example: string; meaning: string }

const DONE: Record<ArchiveAction, string> = {
  unlabel: 'unlabelled',
  trash: 'moved to the trash',
  delete: 'deleted for good',
}

const UNDO_TEXTS: Record<EntryUndo, string> = {
  inserting: 'being inserted again',
  restored: 'labels as they were before',
  reinserted: 'inserted again',
  unneeded: 'nothing to undo: it is as it was',
  failed: 'could not be undone',
}

export async function listCleanUps(
  context: CliContext,
  run: string | undefined,
  options: { account?: string; limit: number },
): Promise<void> {
  const { output } = context
  const id = run === undefined ? undefined : parseRun(run)
  await lookAtLedger(context, {
    look: async ({ ledger }) => {
      const journal = await ArchiveJournal.open(ledger)
      if (id === undefined) {
        const { account, limit } = options
        const ofAccount = account === undefined ? {} : { account }
        return printRuns(context, await journal.runs({ limit, ...ofAccount }))
      }
      const found = await journal.run(id)
      if (!found) {
        throw new UsageError(`There is no clean-up ${id}.`, {
          code: 'run-unknown',
          hint: 'See them with: tidemark mail clean-runs',
        })
      }
      const report = { run: found, tallies: await journal.tallies(id), troubles: await journal.troubles(id) }
      if (!output.json) output.line(runSummary(found))
      printRun(output, report)
    },
    missing: () => printRuns(context, []),
  })
}

function printRuns({ output }: CliContext, rows: readonly RunRow[]): void {
  output.listing({
    columns: [
      { title: 'run', value: ({ id }) => id, align: 'right' },
      { title: 'started', value: ({ createdAtMs }) => minuteText(createdAtMs) },
      { title: 'account', value: ({ account }) => account },
      { title: 'action', value: ({ action }) => action },
      { title: 'state', value: ({ state, undo }) => undo ?? state },
      { title: 'planned', value: ({ planned }) => formatCount(planned), align: 'right' },
      { title: 'done', value: ({ done }) => formatCount(done), align: 'right' },
      { title: 'refused', value: ({ refused }) => formatCount(refused), align: 'right' },
      { title: 'size', value: ({ doneBytes }) => formatBytes(doneBytes), align: 'right' },
      { title: 'query', value: ({ query }) => query },
    ],
    rows,
    empty: 'Nothing was cleaned up yet.',
  })
}

export function parseRun(text: string): number {
  return parseId(text, 'clean-up', 'mail clean-runs')
}

export function printSurvey(
  output: Output,
  survey: Survey,
  { action, query }: { action: ArchiveAction; query: string },
): void {
  const { proven, refused, freedBytes, depth, unsearched, markS } = survey
  if (output.json) {
    output.value({ dryRun: true, action, query, ...survey })
    return
  }
  const passed = depth === 'full' ? 'proven' : 'not checked'
  const meaning = depth === 'full' ? `would be ${DONE[action]}` : 'bytes not read, Gmail not asked'
  printClasses(output, [toRow(passed, proven, meaning), ...refusalRows(refused)])
  output.line(
    `${depth === 'full' ? 'Would' : 'At most, would'} be ${DONE[action]}: ${count(proven.messages)}, ${formatBytes(proven.bytes)}.`,
  )
  output.line(freedText(action, freedBytes, depth))
  output.line(
    markS === null
      ? 'Nothing is complete yet: run tidemark mail sync first.'
      : `Complete up to ${minuteText(markS * 1000)}.`,
  )
  noteUnsearched(output, unsearched)
}

function freedText(action: ArchiveAction, bytes: number, depth: Survey['depth']): string {
  if (action === 'unlabel') return 'Frees nothing: the messages stay in All Mail.'
  return `Frees ${depth === 'full' ? '' : 'at most '}${formatBytes(bytes)} of the quota${action === 'trash' ? ', when Gmail empties the trash after 30 days' : ''}.`
}

/** What is different about messages that are back. */
export type UndoDetail = { detail: string; messages: number }

export type RunReport = {
  run: RunRow
  tallies: readonly Tally[]
  troubles?: readonly Trouble[]
  details?: readonly UndoDetail[]
}

export function printRun(output: Output, { run, tallies, troubles, details }: RunReport): void {
  const refused = new Map<RefusalClass, Sum>()
  for (const tally of tallies) {
    if (tally.class) addTo(refused, tally.class, tally)
  }
  const classes = Object.fromEntries(refused)
  const undo = undoSums(tallies)
  if (output.json) {
    output.value({
      ...run,
      refusedByClass: classes,
      undoByOutcome: Object.fromEntries(undo),
      ...(troubles ? { troubles } : {}),
      ...(details ? { undoDetails: details } : {}),
    })
    return
  }
  const open = run.planned - run.done - run.refused
  const rows = [
    toRow('done', { messages: run.done, bytes: run.doneBytes }, DONE[run.action]),
    ...refusalRows(classes),
    ...(open > 0 ? [toRow('open', { messages: open, bytes: 0 }, 'not acted on')] : []),
    ...[...undo].map(([what, sum]) => toRow(`undo: ${what}`, sum, UNDO_TEXTS[what])),
  ]
  printClasses(output, rows)
  const passed = Object.entries(run.passedOver).map(([what, { messages }]) => `${count(messages)} ${what}`)
  if (passed.length > 0) output.line(`Passed over when it was planned: ${passed.join(', ')}.`)
  noteUnsearched(output, run.unsearched)
  if (troubles && troubles.length > 0) {
    output.line('')
    output.listing({
      columns: [
        { title: 'message', value: ({ id }) => id },
        { title: 'class', value: (row) => row.class },
        { title: 'why', value: ({ detail }) => detail ?? '' },
      ],
      rows: troubles,
    })
  }
}

export function runSummary({ id, account, action, done, doneBytes, refused }: RunRow): string {
  return `Run ${id} of ${account}: ${count(done)} ${DONE[action]}, ${formatBytes(doneBytes)}; ${formatCount(refused)} refused.`
}

export function undoSummary(
  run: RunRow,
  tallies: readonly Tally[],
  details: readonly UndoDetail[],
): string[] {
  const parts = [...undoSums(tallies)].map(([what, { messages }]) => `${formatCount(messages)} ${what}`)
  return [
    `Run ${run.id} of ${run.account} is undone: ${parts.join(', ') || 'it had done nothing'}.`,
    ...details.map(({ detail, messages }) => `  ${count(messages)}: ${detail}`),
  ]
}

/** Before anything happens: what an undo cannot bring back as it was. */
export function undoNotice({ action }: RunRow, { keepDates }: { keepDates?: boolean }): string {
  const which = action === 'delete' ? 'Messages' : 'Messages that have left the trash for good'
  const dates = keepDates
    ? 'with a Date header that says when they arrived, so that their bytes change'
    : 'with their bytes as they are, so that Gmail dates them by their Date header'
  return `${which} are inserted again, under new ids and ${dates}.`
}

/** 3 where the archive itself is damaged, or something could not be undone. */
export function runExitCode(tallies: readonly Tally[]): ExitCode {
  const isBad = tallies.some(
    (tally) => (tally.class !== null && DAMAGE.includes(tally.class)) || tally.undo === 'failed',
  )
  return isBad ? exitCodes.bad : exitCodes.ok
}

export function surveyExitCode({ refused }: Survey): ExitCode {
  return DAMAGE.some((what) => refused[what]) ? exitCodes.bad : exitCodes.ok
}

export function runProgress(run: RunRow): string {
  if (run.undo === 'undoing') return `Run ${run.id}: ${count(run.undone)} undone`
  if (run.state === 'planning') return `Run ${run.id}: planning`
  return `Run ${run.id}: ${formatCount(run.done)} of ${formatCount(run.planned)} done, ${formatCount(run.refused)} refused`
}

function undoSums(tallies: readonly Tally[]): Map<EntryUndo, Sum> {
  const sums = new Map<EntryUndo, Sum>()
  for (const tally of tallies) if (tally.undo) addTo(sums, tally.undo, tally)
  return sums
}

function addTo<Key>(sums: Map<Key, Sum>, key: Key, { messages, bytes, example }: Required<Sum>): void {
  const sum = sums.get(key)
  sums.set(key, {
    messages: (sum?.messages ?? 0) + messages,
    bytes: (sum?.bytes ?? 0) + bytes,
    example: sum?.example ?? example,
  })
}

function refusalRows(refused: Partial<Record<RefusalClass, Sum>>): ClassRow[] {
  return REFUSAL_CLASSES.flatMap((what) => {
    const sum = refused[what]
    return sum ? [toRow(what, sum, REFUSAL_TEXTS[what])] : []
  })
}

function toRow(what: string, { messages, bytes, example }: Sum, meaning: string): ClassRow {
  return { class: what, messages, bytes, example: example ?? '', meaning }
}

function printClasses(output: Output, rows: readonly ClassRow[]): void {
  output.listing({
    columns: [
      { title: 'class', value: (row) => row.class },
      { title: 'messages', value: (row) => formatCount(row.messages), align: 'right' },
      { title: 'size', value: (row) => formatBytes(row.bytes), align: 'right' },
      { title: 'example', value: (row) => row.example },
      { title: 'meaning', value: (row) => row.meaning },
    ],
    rows,
  })
}

function noteUnsearched(output: Output, shards: readonly string[]): void {
  if (shards.length === 0) return
  const files = `${plural(shards.length, 'The file')} ${shards.join(', ')}`
  output.note(
    `${files} could not be searched: messages in there were not looked at. See: tidemark mail verify`,
  )
}

function count(n: number): string {
  return counted(n, 'message')
}
