/** `tidemark files conflicts` and `files resolve`: files that were changed on both sides, and which version counts. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import type { ConflictRow } from '../store/contract.ts'

const HELP = `
Open ones are there only where the folder's policy is "manual": tidemark files set FOLDER --conflicts manual.
Otherwise a conflict is settled at once, and listed with --all: by keep-both, the version from here has got another
name, which the list shows.`

const RESOLVE_HELP = `
--keep local    the version from here counts; OneDrive's is kept in the trash of the folder
--keep remote   OneDrive's version counts; the one from here goes to the trash of the folder
--keep both     OneDrive's version keeps the name, the one from here gets another

It is done by the next sync, or at once where one is running.`

type Row = ConflictRow & { folder: string }

export function registerFilesConflicts(files: Command, context: CliContext): void {
  files
    .command('conflicts')
    .description('list files that were changed on both sides')
    .option('--folder <name>', 'only of this folder')
    .option('--all', 'settled ones, too')
    .addHelpText('after', HELP)
    .action((options: { folder?: string; all?: boolean }) => list(context, options))
  files
    .command('resolve')
    .description('decide which version of a conflict counts')
    .argument('<id>', 'its number in the list')
    .addOption(
      new Option('--keep <version>', 'which one counts')
        .choices(['local', 'remote', 'both'])
        .makeOptionMandatory(),
    )
    .option('--folder <name>', 'of which folder; needed where there are several')
    .addHelpText('after', RESOLVE_HELP)
    .action((id: string, options: { keep: Keep; folder?: string }) => resolve(context, id, options))
}

async function list(context: CliContext, options: { folder?: string; all?: boolean }): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { conflictPage } = await import('../store/browse.ts')
  const { distance, isoTime } = await import('../../../base/moment.ts')
  await withFiles(context, async ({ ledger, ...rest }) => {
    const rows: Row[] = []
    for (const { name } of await chosenRows({ ledger, ...rest }, options.folder)) {
      const found = await conflictPage(ledger, name, {
        ...(options.all ? {} : { state: 'open' as const }),
        limit: LIMIT,
      })
      rows.push(...found.map((row) => ({ ...row, folder: name })))
    }
    context.output.listing({
      columns: [
        { title: 'id', value: ({ id }) => id, align: 'right' },
        { title: 'folder', value: ({ folder }) => folder },
        { title: 'file', value: ({ path }) => path },
        { title: 'what', value: ({ kind }) => KIND_TEXTS[kind] },
        { title: 'state', value: (row) => stateText(row) },
        { title: 'when', value: ({ at }) => distance(at, ledger.now()) },
      ],
      rows,
      json: rows.map(({ node: _, at, resolvedAt, ...row }) => ({
        ...{ ...row, at: isoTime(at), resolvedAt: isoTime(resolvedAt) },
      })),
      empty: options.all ? 'There were no conflicts.' : 'No conflict waits for you.',
    })
    const open = rows.find(({ state }) => state === 'open')
    if (open && !context.output.json) {
      const folder = rows.some((row) => row.folder !== open.folder) ? ' --folder NAME' : ''
      context.output.note(
        `Decide with: tidemark files resolve ${open.id}${folder} --keep local (or remote, or both: nothing is lost)`,
      )
    }
  })
}

const LIMIT = 1_000

const KIND_TEXTS: Record<ConflictRow['kind'], string> = {
  'edit-edit': 'changed on both sides',
  'edit-delete': 'changed here, deleted in OneDrive',
  'create-create': 'made on both sides',
}

function stateText({ state, copyPath }: ConflictRow): string {
  const texts: Record<ConflictRow['state'], string> = {
    open: 'waits for you',
    'kept-both': copyPath ? `both kept, the one from here as ${copyPath}` : 'both kept',
    'kept-local': 'the one from here counts',
    'kept-remote': "OneDrive's counts",
    dismissed: 'gone by itself',
  }
  return texts[state]
}

type Keep = 'local' | 'remote' | 'both'

async function resolve(
  context: CliContext,
  text: string,
  { keep, folder }: { keep: Keep; folder?: string },
): Promise<void> {
  const { chosenRow, withFiles } = await import('./context.ts')
  const { conflictById } = await import('../store/browse.ts')
  const { resolveConflict } = await import('../store/conflicts.ts')
  const { streamOf } = await import('../folder-pair.ts')
  const { systemClock } = await import('../../../base/clock.ts')
  const { UsageError } = await import('../../../base/errors.ts')
  const id = /^#?\d{1,15}$/.test(text) ? Number(text.replace('#', '')) : 0
  if (id < 1) {
    throw new UsageError(`"${text}" is not the number of a conflict.`, {
      hint: 'Give it as tidemark files conflicts shows it, such as 3.',
    })
  }
  await withFiles(context, async (opened) => {
    const { engine, files, ledger } = opened
    const { name } = await chosenRow(opened, folder)
    const row = await conflictById(ledger, name, id)
    if (!row) {
      throw new UsageError(`${name} has no conflict ${id}.`, {
        code: 'conflict-unknown',
        hint: 'See which there are: tidemark files conflicts --all',
      })
    }
    const state = `kept-${keep}` as const
    const node = await files.store.write((tx) =>
      resolveConflict(tx, name, { id, state, atMs: systemClock.now() }),
    )
    if (node === undefined) {
      throw new UsageError(`Conflict ${id} is settled already: ${stateText(row)}.`, {
        code: 'conflict-settled',
      })
    }
    await engine.streams.open(streamOf(name))
    await engine.enqueue(files.kinds.plan, { drive: name }, { stream: streamOf(name) })
    if (context.output.json) context.output.value({ id, folder: name, path: row.path, state })
    else context.output.line(`${row.path}: ${DECIDED[keep]}. It is done with the next sync.`)
  })
}

const DECIDED: Record<Keep, string> = {
  local: 'the version from here counts',
  remote: "OneDrive's version counts",
  both: 'both versions are kept',
}
