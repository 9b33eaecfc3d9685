/** `tidemark files trash`: what Tidemark deleted or replaced in a folder, and how to get it back. */
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { durationOption } from '../../../cli/output/input.ts'
import type { TrashEntry } from '../local/trash-bin.ts'

const HELP = `
What was deleted in OneDrive, or replaced by a newer version from there, is kept in .tidemark/trash of the folder for
files.trash_days, counted by the time that Tidemark saw pass. What was deleted here is in OneDrive's recycle bin.`

export function registerFilesTrash(files: Command, context: CliContext): void {
  const trash = files.command('trash').description('what was deleted or replaced in a folder')
  trash
    .command('list')
    .description('list what is in the trash')
    .option('--folder <name>', 'only of this folder')
    .addHelpText('after', HELP)
    .action((options: { folder?: string }) => list(context, options))
  trash
    .command('restore')
    .description('put something back to where it was')
    .argument('<entry>', 'as the list shows it')
    .option('--to <path>', 'to another place in the folder')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .action((entry: string, options: RestoreOptions) => putBack(context, entry, options))
  trash
    .command('empty')
    .description('delete for good what is in the trash')
    .addOption(
      durationOption('--older-than <time>', 'only what Tidemark has seen there for longer, such as 7d'),
    )
    .option('--folder <name>', 'only of this folder')
    .option('--yes', 'without asking')
    .action((options: EmptyOptions) => empty(context, options))
}

type RestoreOptions = { to?: string; folder?: string }
type EmptyOptions = { olderThan?: number; folder?: string; yes?: boolean }
type Row = TrashEntry & { folder: string }

async function list(context: CliContext, { folder }: { folder?: string }): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { openRoot } = await import('../local/root.ts')
  const { listTrash } = await import('../local/trash-bin.ts')
  const { formatBytes } = await import('../../../base/format.ts')
  await withFiles(context, async (opened) => {
    const rows: Row[] = []
    for (const row of await chosenRows(opened, folder)) {
      const root = openRoot(row.root, row.markerId)
      for (const entry of listTrash(root)) rows.push({ ...entry, folder: row.name })
    }
    context.output.listing({
      columns: [
        { title: 'entry', value: ({ names }) => names.join('/') },
        { title: 'folder', value: (row) => row.folder },
        { title: 'was', value: ({ origin }) => origin.join('/') },
        { title: 'size', value: ({ bytes }) => formatBytes(bytes), align: 'right' },
      ],
      rows,
      json: rows.map(({ names, origin, day, bytes, folder: name }) => ({
        ...{ entry: names.join('/'), folder: name, was: origin.join('/'), day, bytes },
      })),
      empty: 'The trash is empty.',
    })
  })
}

async function putBack(context: CliContext, wanted: string, { to, folder }: RestoreOptions): Promise<void> {
  const { chosenRow, namesOfPath, withFiles } = await import('./context.ts')
  const { openRoot } = await import('../local/root.ts')
  const { listTrash, restore } = await import('../local/trash-bin.ts')
  const { streamOf } = await import('../folder-pair.ts')
  const { OWN_FOLDER } = await import('../filter.ts')
  const { UsageError } = await import('../../../base/errors.ts')
  await withFiles(context, async (opened) => {
    const row = await chosenRow(opened, folder)
    const root = openRoot(row.root, row.markerId)
    const entry = pick([...listTrash(root)], namesOfPath(wanted).join('/'))
    if (!entry) {
      throw new UsageError(`The trash of ${row.name} has no ${wanted}.`, {
        code: 'trash-unknown',
        hint: 'Give it as the list shows it: tidemark files trash list',
      })
    }
    const target = to === undefined ? entry.origin : namesOfPath(to)
    if (target.length === 0 || target[0] === OWN_FOLDER) {
      throw new UsageError(`${to} is no place for a file in the folder.`, { code: 'place-refused' })
    }
    const outcome = restore(root, entry, target)
    if (outcome === 'taken') {
      throw new UsageError(`There is something at ${target.join('/')} already; it was left alone.`, {
        code: 'place-taken',
        hint: 'Choose another place with --to.',
      })
    }
    if (outcome === 'gone') throw new UsageError(`${wanted} is not in the trash any more.`)
    const stream = streamOf(row.name)
    await opened.engine.streams.open(stream)
    await opened.engine.enqueue(
      opened.files.kinds.look,
      { drive: row.name, folders: [target.slice(0, -1)] },
      { stream },
    )
    const path = target.join('/')
    if (context.output.json) context.output.value({ folder: row.name, entry: entry.names.join('/'), path })
    else context.output.line(`${path} is back in ${row.root}. The next sync brings it to OneDrive.`)
  })
}

/** By its name in the trash; or by where it was, the newest first. */
function pick(entries: readonly TrashEntry[], wanted: string): TrashEntry | undefined {
  return (
    entries.find(({ names }) => names.join('/') === wanted) ??
    entries.findLast(({ origin }) => origin.join('/') === wanted)
  )
}

async function empty(context: CliContext, { olderThan, folder, yes }: EmptyOptions): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { tidyTrash } = await import('../work.ts')
  const { systemClock } = await import('../../../base/clock.ts')
  const { formatBytes, formatCount } = await import('../../../base/format.ts')
  const { plural } = await import('../../../base/wording.ts')
  const { output } = context
  await withFiles(context, async (opened) => {
    const rows = await chosenRows(opened, folder)
    if (
      !yes &&
      !(await isSure(
        context,
        rows.map(({ name }) => name),
      ))
    ) {
      context.exitCode = exitCodes.usage
      return
    }
    const told = []
    for (const row of rows) {
      const rule = { keepMs: olderThan ?? 0, bytesMax: Number.POSITIVE_INFINITY }
      const gone = await tidyTrash(opened, row, systemClock.now(), rule)
      told.push({ folder: row.name, ...gone })
      if (!output.json)
        output.line(
          `${row.name}: ${formatCount(gone.files)} ${plural(gone.files, 'file')} deleted for good, ${formatBytes(gone.bytes)}.`,
        )
    }
    if (output.json) output.value(told)
  })
}

async function isSure({ output }: CliContext, names: readonly string[]): Promise<boolean> {
  const { readLines } = await import('../../../cli/output/prompt.ts')
  const { UsageError } = await import('../../../base/errors.ts')
  if (process.stdin.isTTY !== true || output.json) {
    throw new UsageError('Emptying the trash must be confirmed, and nobody is there to be asked.', {
      code: 'confirmation-needed',
      hint: 'Run it in a terminal, or add --yes.',
    })
  }
  const lines = readLines(output)
  try {
    const answer = await lines.next(`Delete for good what is in the trash of ${names.join(', ')}? [y/N] `)
    return /^y(?:es)?$/i.test(answer ?? '')
  } finally {
    lines.close()
  }
}
