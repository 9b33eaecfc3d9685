/** `tidemark files conflicts` and `files resolve`: files that were changed on both sides, and which version counts. */
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { distance, isoTime } from '../../../base/moment.ts'
import { parseId } from '../../../cli/output/input.ts'
import { chosenRows } from '../chosen-folders.ts'
import { streamOf } from '../folder-pair.ts'
import { conflictById, conflictPage } from '../store/browse.ts'
import { resolveConflict } from '../store/conflicts.ts'
import type { ConflictRow } from '../store/contract.ts'
import { chosenRow, withFiles } from './context.ts'

type Row = ConflictRow & { folder: string }

export async function listConflicts(
  context: CliContext,
  options: { folder?: string; all?: boolean },
): Promise<void> {
  await withFiles(context, async (opened) => {
    const { ledger } = opened
    const rows: Row[] = []
    for (const { name } of await chosenRows(opened, options.folder)) {
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
        ...row,
        at: isoTime(at),
        resolvedAt: isoTime(resolvedAt),
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

export async function resolve(
  context: CliContext,
  text: string,
  { keep, folder }: { keep: Keep; folder?: string },
): Promise<void> {
  const id = parseId(text, 'conflict', 'files conflicts')
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
