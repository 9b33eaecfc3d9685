/** `tidemark mail import` and `mail export`: mail from files into an archive, and out of it into files. */
import { resolve } from 'node:path'
import { stoppable } from '../../../app/cli/sync.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { counted } from '../../../base/wording.ts'
import { parseQuery } from '../query/parse.ts'
import { type ExportReport, exportMessages } from '../transfer/export.ts'
import type { ExportFormat } from '../transfer/formats.ts'
import { type ImportReport, importMessages } from '../transfer/import.ts'
import { openSource } from '../transfer/source.ts'
import { onlyOne, withImportArchive, withMailArchive } from './context.ts'

type ImportFlags = { account?: string; quoting?: 'mboxrd' | 'mboxo' | 'none' }

type ExportFlags = {
  account?: string
  query?: string
  format: ExportFormat
  to: string
  force?: boolean
}

/** Places named one by one on a terminal; `--json` has more of them. */
const NAMED_MAX = 20

export async function importMail(context: CliContext, path: string, flags: ImportFlags): Promise<void> {
  const { output } = context
  const source = await openSource({ path: resolve(path), quoting: flags.quoting ?? 'mboxrd' })
  await withImportArchive(context, flags, async (opened) => {
    const { archive, labels, name } = opened
    const note = output.pacedNotes()
    const report = await stoppable(
      context,
      (signal) =>
        importMessages({
          archive,
          source,
          clock: systemClock,
          labels,
          signal,
          onProgress: ({ read, bytes }) => note(`${counted(read, 'message')} read, ${formatBytes(bytes)} …`),
        }),
      { hint: '', reason: 'The import was stopped. Start it again to go on.' },
    )
    if (output.json) output.value({ account: name, ...report })
    else printImport(context, report)
    if (report.damaged > 0) context.exitCode = exitCodes.bad
  })
}

export async function exportMail(context: CliContext, flags: ExportFlags): Promise<void> {
  const { output } = context
  const now = systemClock.now()
  const text = flags.query ?? ''
  // Before anything is opened: a slip in the query is answered at once.
  parseQuery(text, { now })
  await withMailArchive(context, { account: flags.account, onlyReads: true }, async ({ archives }) => {
    const { archive, labels, labelNames, name } = onlyOne(archives)
    const note = output.pacedNotes()
    const target = resolve(flags.to)
    const report = await stoppable(
      context,
      (signal) =>
        exportMessages({
          archive,
          query: parseQuery(text, { now, me: name }),
          format: flags.format,
          target,
          force: flags.force === true,
          now,
          labels,
          labelNames,
          signal,
          onProgress: ({ messages, bytes }) =>
            note(`${counted(messages, 'message')} written, ${formatBytes(bytes)} …`),
        }),
      { hint: '', reason: 'The export was stopped, and nothing was written.' },
    )
    if (output.json) output.value({ account: name, target, ...report })
    else printExport(context, target, report)
    if (report.failed > 0 || report.unsearched.length > 0) context.exitCode = exitCodes.bad
  })
}

function printImport({ output }: CliContext, report: ImportReport): void {
  const { read, bytes, added, known, ignored, damaged } = report
  output.line(`${counted(read, 'message')} read (${formatBytes(bytes)})`)
  output.line(`${formatCount(added)} added, ${formatCount(known)} known already`)
  if (ignored > 0) {
    const reasons = Object.entries(report.ignoredByReason).map(([reason, n]) => `${formatCount(n)} ${reason}`)
    output.note(`${formatCount(ignored)} passed over (${reasons.join('; ')}):`)
    nameSome(
      output,
      ignored,
      report.ignoredPlaces.map(({ place, reason }) => `${place}: ${reason}`),
    )
  }
  if (damaged > 0) {
    output.note(`${formatCount(damaged)} damaged and skipped:`)
    nameSome(
      output,
      damaged,
      report.damagedPlaces.map(({ place, reason }) => `${place}: ${reason}`),
    )
  }
}

function printExport({ output }: CliContext, target: string, report: ExportReport): void {
  const { messages, bytes, failed, unsearched } = report
  output.line(`${counted(messages, 'message')} (${formatBytes(bytes)}) written to ${target}`)
  if (failed > 0) {
    output.note(`${formatCount(failed)} could not be read from the archive, and are missing:`)
    nameSome(
      output,
      failed,
      report.failures.map(({ id, reason }) => `${id}: ${reason}`),
    )
  }
  for (const { shard, reason } of unsearched) output.note(`${shard} could not be searched: ${reason}`)
  if (failed > 0 || unsearched.length > 0) output.note('Mend the archive with: tidemark mail verify --repair')
}

function nameSome(output: CliContext['output'], count: number, lines: readonly string[]): void {
  for (const line of lines.slice(0, NAMED_MAX)) output.note(`  ${line}`)
  if (count > NAMED_MAX) output.note(`  and ${formatCount(count - NAMED_MAX)} more (--json has them)`)
}
