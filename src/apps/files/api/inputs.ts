/** What routes of files take: names of folders, nodes, and the folders behind them. */
import { z } from 'zod'
import { idNumber } from '../../../app/inputs.ts'
import { conflict, type ProblemError } from '../../../app/problem.ts'
import { noteAccountLook, type RequestUser } from '../../../app/user.ts'
import { UsageError } from '../../../base/errors.ts'
import { SERVICE, streamOf } from '../folder-pair.ts'
import { machineId } from '../index.ts'
import { openRoot, type Root } from '../local/root.ts'
import type { FolderPairRow } from '../store/contract.ts'
import type { NodeKey } from '../trees.ts'
import type { FilesServices } from './route.ts'

const NAME_LENGTH_MAX = 100

export const folderName = z
  .string()
  .min(1)
  .max(NAME_LENGTH_MAX)
  .describe('The name of a folder that is kept in step, as the list gives it')
export const folderParams = z.object({ name: folderName })

export const nodeText = z
  .string()
  .regex(/^(?:i:[^\s\p{Cc}]{1,400}|l:\d{1,15})$/u, 'is not the node of an item')
  .transform((text) => text as NodeKey)
  .describe('The `node` of an item, as lists give it')

export const conflictParams = folderParams.extend({ id: idNumber.describe('The number of the conflict') })

/** The folder's row, or 404. */
export function folderPairRow({ files }: FilesServices, name: string): Promise<FolderPairRow> {
  return files.store.folderPair(name)
}

/**
 * The same for who looks at what is in it: names and texts. That somebody looks into the folder of another user is
 * written down.
 */
export async function lookedInto(
  services: FilesServices,
  user: RequestUser,
  { name, what }: { name: string; what: string },
): Promise<FolderPairRow> {
  const row = await folderPairRow(services, name)
  const look = { service: SERVICE, account: row.account, what: `${what} of folder ${name}` }
  await noteAccountLook(services, user, look)
  return row
}

/** The same for names of all folders at once. */
export async function noteAllFolders(
  services: FilesServices,
  user: RequestUser,
  what: string,
): Promise<void> {
  const names = (await services.files.store.folderPairs()).map(({ account }) => account)
  await noteAccountLook(services, user, { service: SERVICE, account: undefined, names, what })
}

export function isHere({ machine }: Pick<FolderPairRow, 'machine'>): boolean {
  return machine === machineId()
}

export function elsewhere({ root }: FolderPairRow): ProblemError {
  return conflict(`The folder ${root} is on another machine.`, {
    code: 'folder-elsewhere',
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
