/**
 * OneDrive answers an upload with another hash than that of what was sent. Business drives rewrite documents. On
 * Personal drives nothing is known to be rewritten, so the bytes may be damaged: they are sent once more, to the very
 * item that they have become.
 *
 *   its hash is ours                      both sides agree
 *   the same other hash as before         the drive's own will: both sides agree, and sending it for ever is avoided
 *   another version with that hash since  the drive works on it by itself: the same
 *   another version with another hash     somebody's edit: a conflict, in which both are kept
 *   yet another hash, or it was not sent  nothing is agreed. The file counts as an edit of what OneDrive has, is left
 *                                         alone with its reason, and goes up again with the next whole look
 */
import { asTidemarkError } from '../../../base/errors.ts'
import type { Ended } from '../action.ts'
import { plainStat } from '../local/stat.ts'
import { endDoubted } from '../store/conflicts.ts'
import type { Digests, RemoteRow } from '../trees.ts'
import { lookAtItem } from './fresh-look.ts'
import type { Sending } from './sending.ts'

/** What OneDrive has now, and the hashes of what was sent. */
export type SentRow = { row: RemoteRow } & Digests

export const DOUBTED = 'OneDrive has something else than was sent to it'

export function isDoubtful({ context }: Sending, { row, hash }: SentRow): boolean {
  return row.hash !== null && row.hash !== hash && !context.pair.isBusiness
}

export async function sentAgain(
  sending: Sending,
  first: SentRow,
  send: (again: Sending) => Promise<SentRow | { ended: Ended }>,
): Promise<SentRow | { ended: Ended }> {
  const { row } = first
  const again = { ...sending, target: { itemId: row.itemId }, ifMatch: row.eTag ?? row.cTag ?? undefined }
  try {
    const second = await send({ ...again, replaces: row })
    if ('ended' in second) return second
    const isSettled = !isDoubtful(sending, second) || second.row.hash === row.hash
    return isSettled ? second : { ended: doubted(sending, second) }
  } catch (thrown) {
    const { code } = asTidemarkError(thrown)
    // What whoever sends looks into.
    if (sending.signal.aborted || code === 'file-changed') throw thrown
    const now = code === 'precondition-failed' ? await lookAtItem(sending.context, row.itemId) : undefined
    if (now?.hash === row.hash) return { ...first, row: now }
    if (now) throw thrown
    return { ended: doubted(sending, first) }
  }
}

function doubted({ context, source }: Sending, { row, hash, sha256 }: SentRow): Ended {
  const { pair, node } = context
  const local = { ...source.local, ...plainStat(source.look), hash, sha256 }
  return {
    end: 'done',
    note: DOUBTED,
    write: (tx) => endDoubted(tx, pair.name, { node, local, remote: row, because: DOUBTED }),
  }
}
