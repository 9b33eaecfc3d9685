/**
 * A look at the real thing where it is not as expected, and what is written down of it. "Not found" is believed only
 * after some tries: what was just made or changed may not be found for a moment, and a deletion that never happened
 * would be carried over to the other side.
 */
import { asTidemarkError, TidemarkError } from '../../../errors.ts'
import type { ActionContext, Ended } from '../action.ts'
import { toRow } from '../delta.ts'
import { hearNow, isOther } from '../store/remote-tree.ts'
import type { RemoteRow } from '../trees.ts'

export const FRESH_TRIES = 4

type Looking = Pick<ActionContext, 'drive' | 'job'>

/** Undefined: it is not there. */
export async function lookAtItem(looking: Looking, itemId: string): Promise<RemoteRow | undefined> {
  const { drive, job } = looking
  const { client, driveId } = drive
  return orMissing(looking, async () => {
    const item = await client.item(driveId, itemId, { signal: job.signal, missingTries: FRESH_TRIES })
    return item.deleted ? undefined : toRow(item, drive)
  })
}

export async function lookAtName(
  looking: Looking,
  place: { parentId: string; name: string },
): Promise<RemoteRow | undefined> {
  const { drive, job } = looking
  const { client, driveId } = drive
  return orMissing(looking, async () => {
    const found = await client.childByName(driveId, place, { signal: job.signal, missingTries: FRESH_TRIES })
    return toRow(found, drive)
  })
}

async function orMissing<T>(looking: Looking, look: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await look()
  } catch (thrown) {
    if (codeOf(thrown) !== 'not-found') throw thrown
    await checkDrive(looking)
    return undefined
  }
}

/** Of a drive that is not there as a whole, or not for this account any more, nothing is missing in particular. */
async function checkDrive({ drive, job }: Looking): Promise<void> {
  try {
    await drive.client.root(drive.driveId, { signal: job.signal })
  } catch (thrown) {
    if (codeOf(thrown) !== 'not-found') throw thrown
    throw new TidemarkError('OneDrive does not show this drive to the account any more', {
      ...{ kind: 'transient', code: 'drive-missing', cause: thrown },
      hint: 'Open OneDrive in a browser with this account. Until then nothing is changed on either side.',
    })
  }
}

export function codeOf(thrown: unknown): string | undefined {
  return asTidemarkError(thrown).code
}

/** The items are looked at, whatever they are now is written down, and the node is planned again. */
export async function staleItems(
  context: Looking,
  known: readonly (RemoteRow | undefined)[],
  because: string,
): Promise<Ended> {
  const rows: RemoteRow[] = []
  for (const row of known) {
    if (row) rows.push((await lookAtItem(context, row.itemId)) ?? { ...row, isDeleted: true })
  }
  return staleWith(context, rows, because)
}

export function staleWith({ drive, job }: Looking, rows: readonly RemoteRow[], because: string): Ended {
  return { end: 'stale', because, write: (tx) => hearNow(tx, drive.name, rows, job.payload) }
}

/** The item of the node was looked for, and is not there. */
export function goneThere(context: Pick<ActionContext, 'drive' | 'job' | 'case'>, because: string): Ended {
  const { remote } = context.case
  return staleWith(context, remote ? [{ ...remote, isDeleted: true }] : [], because)
}

/** The folder that something was to go into is gone; undefined where it is there. */
export async function staleFolder(
  context: Looking,
  folderId: string,
  because: string,
): Promise<Ended | undefined> {
  const now = await lookAtItem(context, folderId)
  return now ? undefined : staleWith(context, [goneFolder(folderId)], because)
}

/** Looked at, nothing is other than it was known: so trying at once would be refused again. It costs a try. */
export function isAsKnown(now: RemoteRow, known: RemoteRow | undefined): boolean {
  return known !== undefined && !isOther(known, now) && known.eTag === now.eTag
}

export function refusedAgain(thrown: unknown): TidemarkError {
  const { message, code } = asTidemarkError(thrown)
  return new TidemarkError(message, { kind: 'transient', cause: thrown, ...(code && { code }) })
}

function goneFolder(itemId: string): RemoteRow {
  return {
    ...{ itemId, parentId: null, name: '', type: 'folder', size: 0, hash: null, eTag: null, cTag: null },
    ...{ modifiedMs: null, isDeleted: true },
  }
}
