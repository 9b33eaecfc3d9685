/**
 * A look at the real thing where it is not as expected, and what is written down of it. "Not found" says nothing of
 * what became of an item: what was just made or changed may not be found for a while, and a deletion that never
 * happened would be carried over to the other side. That something is deleted is for delta to say alone.
 */
import { z } from 'zod'
import { asTidemarkError, TidemarkError } from '../../../base/errors.ts'
import type { ActionContext, Ended } from '../action.ts'
import { toRow } from '../delta.ts'
import { checkTop } from '../shared-folder.ts'
import { isOther, recordRemoteNow } from '../store/remote-tree.ts'
import type { RemoteRow } from '../trees.ts'
import { asObject } from './local-side.ts'

/** Of calls on what was just made. */
export const FRESH_TRIES = 4
/** Of looks: whoever does not find it waits, and looks again. */
const LOOK_TRIES = 2

/** Delta lags behind other answers by up to a minute. */
const NOT_GIVEN_MS_MAX = 60_000
const NOT_GIVEN_WAIT_MS_MIN = 1_000
const NOT_GIVEN_WAIT_MS_MAX = 15_000
/** A try so long after the last one begins anew: in between it was given. */
const NOT_GIVEN_FORGOTTEN_MS = 300_000

export const NOT_GIVEN = 'OneDrive lists it, but does not give it'
export const FOLDER_NOT_GIVEN = 'OneDrive lists its folder, but does not give it'

type Looking = Pick<ActionContext, 'pair' | 'job'>

/** Undefined: OneDrive does not give it. */
export async function lookAtItem(looking: Looking, itemId: string): Promise<RemoteRow | undefined> {
  const { pair, job } = looking
  const { client, driveId } = pair
  return orMissing(looking, async () => {
    const item = await client.item(driveId, itemId, { signal: job.signal, missingTries: LOOK_TRIES })
    return item.deleted ? undefined : toRow(item, pair)
  })
}

export async function lookAtName(
  looking: Looking,
  place: { parentId: string; name: string },
): Promise<RemoteRow | undefined> {
  const { pair, job } = looking
  const { client, driveId } = pair
  return orMissing(looking, async () => {
    const found = await client.childByName(driveId, place, { signal: job.signal, missingTries: LOOK_TRIES })
    return toRow(found, pair)
  })
}

async function orMissing<T>(looking: Looking, look: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await look()
  } catch (thrown) {
    if (errorCode(thrown) !== 'not-found') throw thrown
    await checkDrive(looking)
    return undefined
  }
}

/** Of a drive that is not there as a whole, or not for this account any more, nothing is missing in particular. */
async function checkDrive({ pair, job }: Looking): Promise<void> {
  try {
    await checkTop(pair, job.signal)
  } catch (thrown) {
    if (errorCode(thrown) !== 'not-found') throw thrown
    throw new TidemarkError('OneDrive does not show this drive to the account any more', {
      kind: 'transient',
      code: 'drive-missing',
      cause: thrown,
      hint: 'Open OneDrive in a browser with this account. Until then nothing is changed on either side.',
    })
  }
}

export function errorCode(thrown: unknown): string | undefined {
  return asTidemarkError(thrown).code
}

const notGivenBefore = z.object({ sinceMs: z.number(), atMs: z.number() })

/**
 * OneDrive does not give items that it lists. If they are deleted, delta says so: it is asked, and this waits. What
 * delta does not speak of until then is left alone with its reason, and tried again with every whole look.
 */
export async function notGiven(
  { pair, store, job }: Pick<ActionContext, 'pair' | 'store' | 'job'>,
  itemIds: readonly string[],
  because = NOT_GIVEN,
): Promise<Ended> {
  const known = await store.remoteRows(pair.name, itemIds)
  if (itemIds.some((itemId) => known.get(itemId)?.isDeleted !== false)) {
    return { end: 'stale', because: 'OneDrive does not have it any more' }
  }
  const nowMs = job.clock.now()
  const kept = asObject(job.checkpoint)
  const before = notGivenBefore.safeParse(kept.notGiven).data
  // It was given in between, or the clock was put back.
  const isNew = !before || Math.abs(nowMs - before.atMs) > NOT_GIVEN_FORGOTTEN_MS
  const sinceMs = isNew ? nowMs : before.sinceMs
  const forMs = nowMs - sinceMs
  if (forMs >= NOT_GIVEN_MS_MAX) return { end: 'left', because }
  await job.save({ ...kept, notGiven: { sinceMs, atMs: nowMs } satisfies z.infer<typeof notGivenBefore> })
  const afterMs = Math.min(NOT_GIVEN_WAIT_MS_MAX, Math.max(NOT_GIVEN_WAIT_MS_MIN, forMs))
  return { end: 'wait', because, afterMs, isHeardFirst: true }
}

export function staleWith({ pair, job }: Looking, rows: readonly RemoteRow[], because: string): Ended {
  return { end: 'stale', because, write: (tx) => recordRemoteNow(tx, pair.name, rows, job.payload) }
}

/** OneDrive says "not found" where something was to go into a folder; undefined where that is there. */
export async function folderNotGiven(
  context: Pick<ActionContext, 'pair' | 'store' | 'job'>,
  folderId: string,
): Promise<Ended | undefined> {
  const now = await lookAtItem(context, folderId)
  return now ? undefined : notGiven(context, [folderId], FOLDER_NOT_GIVEN)
}

/** Looked at, nothing is other than it was known: so trying at once would be refused again. It costs a try. */
export function isAsKnown(now: RemoteRow, known: RemoteRow | undefined): boolean {
  return known !== undefined && !isOther(known, now) && known.eTag === now.eTag
}

export function refusedAgain(thrown: unknown): TidemarkError {
  const { message, code } = asTidemarkError(thrown)
  return new TidemarkError(message, { kind: 'transient', cause: thrown, ...(code && { code }) })
}
