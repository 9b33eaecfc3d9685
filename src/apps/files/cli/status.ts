/** `tidemark files status`: how each folder stands. */
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import type { FolderPairRow } from '../store/contract.ts'
import type { OpenedFiles } from './context.ts'
import type { FolderEnd } from './sync-end.ts'

const HELP = `
Says what was seen at the last look at each side; it looks at neither, but for whether the folder is
there. Ends with 0 when all is in step or a process works on it, 1 when something failed, is paused, was not synced yet or
was stopped before it was done, 2 when a folder is not there, 3 when something needs you.`

const PAGE = 500

export function registerFilesStatus(files: Command, context: CliContext): void {
  files
    .command('status')
    .description('show how far folders and OneDrive are in step')
    .argument('[folder]', 'its name, or its path')
    .option('--all', 'list everything that is left alone, with its reason')
    .addHelpText('after', HELP)
    .action((folder: string | undefined, options: { all?: boolean }) => showStatus(context, folder, options))
}

async function showStatus(
  context: CliContext,
  folder: string | undefined,
  { all }: { all?: boolean },
): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { endOf, exitCodeOf, toJson } = await import('./sync-end.ts')
  await withFiles(context, async (opened) => {
    const ends: FolderEnd[] = []
    const missing = new Map<string, string>()
    for (const row of await chosenRows(opened, folder)) {
      const { name } = row
      const end = await endOf(opened, name)
      const trouble = await troubleOf(row)
      if (trouble !== undefined) missing.set(name, trouble)
      ends.push(all ? { ...end, reported: await allReported(opened.files.store, name) } : end)
    }
    const now = opened.ledger.now()
    if (context.output.json) {
      context.output.value(ends.map((end) => ({ ...toJson(end), trouble: missing.get(end.name) ?? null })))
    } else
      for (const end of ends)
        await printStatus(context, opened, { end, now, all, trouble: missing.get(end.name) })
    context.exitCode = missing.size > 0 ? exitCodes.usage : statusCodeOf(ends, exitCodeOf(ends, false))
  })
}

function statusCodeOf(ends: readonly FolderEnd[], code: CliContext['exitCode']): CliContext['exitCode'] {
  const isStopped = ends.some(({ stoppedSinceMs }) => stoppedSinceMs !== null)
  // What needs a person says more than that the rest waits.
  return code === exitCodes.ok && isStopped ? exitCodes.failure : code
}

/** What is stored says "in step" also of a folder that is not there any more: so it is looked for. */
async function troubleOf(row: FolderPairRow): Promise<string | undefined> {
  const { machineId } = await import('../index.ts')
  const { openRoot } = await import('../local/root.ts')
  const { asTidemarkError } = await import('../../../base/errors.ts')
  if (row.machine !== machineId()) return undefined
  try {
    openRoot(row.root, row.markerId)
    return undefined
  } catch (thrown) {
    return asTidemarkError(thrown).message
  }
}

type Store = {
  reported(pair: string, page: { after?: string; limit: number }): Promise<FolderEnd['reported']>
}

async function allReported(store: Store, name: string): Promise<FolderEnd['reported']> {
  const found: FolderEnd['reported'] = []
  for (let after = ''; ; ) {
    const page = await store.reported(name, { after, limit: PAGE })
    found.push(...page)
    if (page.length < PAGE) return found
    after = page.at(-1)!.node
  }
}

type Printed = { end: FolderEnd; now: number; all: boolean | undefined; trouble: string | undefined }

async function printStatus(
  { output }: CliContext,
  opened: OpenedFiles,
  { end, now, all, trouble }: Printed,
): Promise<void> {
  const { formatBytes, formatCount } = await import('../../../base/format.ts')
  const { distance } = await import('../../../base/moment.ts')
  const { plural } = await import('../../../base/wording.ts')
  const { heldHints } = await import('./held-deletes.ts')
  const { heldTotal } = await import('../guard.ts')
  const { ONEDRIVE_FULL_HINT } = await import('../act/obstacles.ts')
  const { totals, open, heldDeletes: held } = end
  output.line(`${end.name}: ${trouble === undefined ? end.state : 'not in step'}`)
  output.line(`  folder     ${end.root}`)
  if (trouble !== undefined) output.line(`  MISSING    ${trouble} Until it is back nothing is synced.`)
  output.line(`  OneDrive   ${end.account}${end.mode === 'two-way' ? '' : `, ${end.mode}`}`)
  output.line(
    `  in step    ${formatCount(totals.files)} ${plural(totals.files, 'file')}, ${formatCount(totals.folders)} ${plural(totals.folders, 'folder')}, ${formatBytes(totals.bytes)}`,
  )
  const busy = open.unplanned + open.inWork + open.waiting
  if (busy > 0)
    output.line(
      `  ${end.stoppedSinceMs === null ? 'on the way' : 'left to do'} ${formatCount(busy)} ${plural(busy, 'change')}`,
    )
  if (end.waits !== null) output.line(`  waiting    ${end.waits}`)
  if (end.isFull) output.line(`             ${ONEDRIVE_FULL_HINT}`)
  if (end.stoppedSinceMs !== null && end.paused === null) {
    const since = end.stoppedSinceMs > 0 ? `, the last one was seen ${distance(end.stoppedSinceMs, now)}` : ''
    output.line(`  stopped    no process works on it${since}`)
    output.line('             Go on with: tidemark files sync, tidemark files watch, or tidemark serve')
  }
  const when = (at: number | null): string => (at === null ? 'never' : distance(at, now))
  output.line(`  looked at  folder ${when(end.scannedAt)}, OneDrive ${when(end.heardAt)}`)
  if (end.paused !== null) output.line(`  paused     ${end.paused}`)
  if (end.pauseHint !== null) output.line(`             ${end.pauseHint}`)
  if (held) {
    const { deleted, replaced } = heldTotal(held)
    if (deleted > 0) output.line(`  deletions  ${formatCount(deleted)} at once wait for your yes`)
    if (replaced > 0) output.line(`  replaced   ${formatCount(replaced)} files at once wait for your yes`)
    for (const hint of await heldHints(opened, end.name)) output.line(`             ${hint}`)
  }
  if (end.conflicts > 0)
    output.line(`  conflicts  ${formatCount(end.conflicts)} to decide: tidemark files conflicts`)
  if (end.failed.length > 0)
    output.line(`  FAILED     ${formatCount(end.failed.length)} ${plural(end.failed.length, 'job')}`)
  for (const { because, count } of end.troubles) output.line(`  left alone ${formatCount(count)}: ${because}`)
  if (end.leftOut > 0) output.line(`  left out   ${formatCount(end.leftOut)}, as you wished`)
  if (all) for (const { path, because } of end.reported) output.line(`    ${path}: ${because}`)
}
