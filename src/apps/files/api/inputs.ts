/** What routes of files take: names of folders, nodes, and the folders behind them. */
import { z } from 'zod'
import { idNumber } from '../../../app/inputs.ts'
import { conflict, ProblemError } from '../../../app/problem.ts'
import { UsageError } from '../../../base/errors.ts'
import { streamOf } from '../folder-pair.ts'
import { machineId } from '../index.ts'
import { openRoot, type Root } from '../local/root.ts'
import type { FolderPairRow } from '../store/contract.ts'
import type { NodeKey } from '../trees.ts'
import type { FilesServices } from './route.ts'

const NAME_LENGTH_MAX = 100

export const folderPairName = z
  .string()
  .min(1)
  .max(NAME_LENGTH_MAX)
  .describe('The name of a folder that is kept in step, as the list gives it')
export const folderPairParams = z.object({ name: folderPairName })

export const nodeText = z
  .string()
  .regex(/^(?:i:[^\s\p{Cc}]{1,400}|l:\d{1,15})$/u, 'is not the node of an item')
  .transform((text) => text as NodeKey)
  .describe('The `node` of an item, as lists give it')

export const conflictParams = folderPairParams.extend({ id: idNumber.describe('The number of the conflict') })

/** The folder's row, or 404. */
export function folderPairRow({ files }: FilesServices, name: string): Promise<FolderPairRow> {
  return files.store.folderPair(name)
}

export function isHere({ machine }: Pick<FolderPairRow, 'machine'>): boolean {
  return machine === machineId()
}

export function elsewhere({ root }: FolderPairRow): ProblemError {
  return conflict(`The folder ${root} is on another machine.`, {
    code: 'drive-elsewhere',
    hint: 'Ask the server that runs there.',
  })
}

/** The folder itself, for looking into it; a folder that is not as it was is nothing to look into. */
export function rootOf(row: FolderPairRow): Root {
  if (!isHere(row)) throw elsewhere(row)
  try {
    return openRoot(row.root, row.markerId)
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown
    const { message, code = 'root-missing', hint } = thrown
    throw conflict(message, { code, cause: thrown, ...(hint === undefined ? {} : { hint }) })
  }
}

/** A plan of what is open, soon. */
export async function askForPlan({ engine, files }: FilesServices, pair: string): Promise<void> {
  await engine.enqueue(files.kinds.plan, { drive: pair }, { stream: streamOf(pair) })
}

const CURSOR_LENGTH_MAX = 2_000

/** Cursors that are more than a number: JSON in disguise. */
export function writeCursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

export function readJsonCursor<S extends z.ZodType>(
  cursor: string | undefined,
  schema: S,
): z.output<S> | undefined {
  if (cursor === undefined) return undefined
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  } catch (cause) {
    throw new ProblemError(400, 'The cursor is none that a page has given.', {
      ...{ code: 'cursor-invalid', cause },
      hint: 'Begin with the first page, without a cursor.',
    })
  }
}

export const longCursorQuery = {
  limit: z.coerce.number().int().min(1).max(500).default(100).describe('How many at most'),
  cursor: z
    .string()
    .max(CURSOR_LENGTH_MAX)
    .optional()
    .describe('The `next` of the page before; the first page without it'),
}
