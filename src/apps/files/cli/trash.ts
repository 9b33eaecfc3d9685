/** `tidemark files trash`: what Tidemark deleted or replaced in a folder, and how to get it back. */
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { counted } from '../../../base/wording.ts'
import { readLines, saysYes } from '../../../cli/output/prompt.ts'
import { chosenRows } from '../chosen-folders.ts'
import { streamOf } from '../folder-pair.ts'
import { namesOfPath } from '../folder-settings.ts'
import { openRoot } from '../local/root.ts'
import { listTrash, restore, type TrashEntry } from '../local/trash-bin.ts'
import { OWN_FOLDER } from '../names.ts'
import { tidyTrash } from '../work.ts'
import { chosenRow, withFiles } from './context.ts'

type RestoreOptions = { to?: string; folder?: string }
type EmptyOptions = { olderThan?: number; folder?: string; yes?: boolean }
type Row = TrashEntry & { folder: string }

export async function listEntries(context: CliContext, { folder }: { folder?: string }): Promise<void> {
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
        entry: names.join('/'),
        folder: name,
        was: origin.join('/'),
        day,
        bytes,
      })),
      empty: 'The trash is empty.',
    })
  })
}

export async function putBack(
  context: CliContext,
  wanted: string,
  { to, folder }: RestoreOptions,
): Promise<void> {
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

export async function empty(context: CliContext, { olderThan, folder, yes }: EmptyOptions): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const rows = await chosenRows(opened, folder)
    const names = rows.map(({ name }) => name)
    if (!yes && !(await isSure(context, names))) {
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
          `${row.name}: ${counted(gone.files, 'file')} deleted for good, ${formatBytes(gone.bytes)}.`,
        )
    }
    if (output.json) output.value(told)
  })
}

async function isSure({ output }: CliContext, names: readonly string[]): Promise<boolean> {
  if (process.stdin.isTTY !== true || output.json) {
    throw new UsageError('Emptying the trash must be confirmed, and nobody is there to be asked.', {
      code: 'confirmation-needed',
      hint: 'Run it in a terminal, or add --yes.',
    })
  }
  return saysYes(readLines(output), `Delete for good what is in the trash of ${names.join(', ')}?`)
}
