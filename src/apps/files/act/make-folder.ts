/** Folders that one side has and the other has not. */
import type { VerbRun } from '../action.ts'
import { toRow } from '../delta.ts'
import { isNoFolder, lookInside } from '../local/folder.ts'
import { makeFolder } from '../local/move.ts'
import { plainStat } from '../local/stat.ts'
import { localRow } from '../store/local-tree.ts'
import { endAgreed } from './agreed.ts'
import { errorCode, FRESH_TRIES, folderNotGiven, lookAtName, refusedAgain, staleWith } from './fresh-look.ts'
import { goneHere, lookAsSeen, placeOfItem, rootOf, rowAt, takenBy } from './local-side.ts'

export const makeLocalRun: VerbRun = async (context) => {
  const { pair, node, version } = context
  const remote = context.case.remote!
  const root = rootOf(pair)
  const place = await placeOfItem(context, root, remote)
  if (!place) return { end: 'stale', because: 'its folder is not here' }
  try {
    const made = makeFolder(root, place.names)
    if (made.outcome === 'taken') {
      const look = lookInside(root, place.names)
      return look
        ? takenBy(context, place, look)
        : { end: 'stale', because: 'its name was taken for a moment' }
    }
    const { stat } = made
    return {
      end: 'done',
      write: async (tx) => {
        // Someone may have made it before, and a scan may know it with all that is in it.
        const local = await rowAt(tx, pair.name, place)
        const localName = place.names.at(-1)!
        return endAgreed(tx, context, {
          node,
          version,
          remote,
          local,
          localName,
          type: 'folder',
          stat,
          hash: null,
          sha256: null,
        })
      },
    }
  } catch (thrown) {
    if (isNoFolder(thrown)) return goneHere(context, 'its folder is not where it was')
    throw thrown
  }
}

export const makeRemoteRun: VerbRun = async (context) => {
  const { pair, job, node, version } = context
  const { localParentId: parentId } = context.case
  const local = context.case.local!
  if (parentId === undefined) return { end: 'stale', because: 'its folder is not in OneDrive' }
  const seen = await lookAsSeen(context, rootOf(pair), local)
  if ('ended' in seen) return seen.ended
  const name = local.name.normalize('NFC')
  try {
    const wanted = { parentId, name, conflict: 'fail' as const }
    const options = { signal: job.signal, missingTries: FRESH_TRIES }
    const remote = toRow(await pair.client.createFolder(pair.driveId, wanted, options), pair)
    if (!remote)
      return { end: 'wait', because: 'OneDrive does not say where the folder is', afterMs: WAIT_MS }
    return {
      end: 'done',
      write: async (tx) => {
        const now = await localRow(tx, pair.name, local.id)
        return endAgreed(tx, context, {
          node,
          version,
          remote,
          type: 'folder',
          stat: plainStat(seen.look),
          hash: null,
          sha256: null,
          local: now ? { id: now.id } : { parentId: local.parentId! },
          localName: now?.name ?? local.name,
        })
      },
    }
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'not-found') {
      const ended = await folderNotGiven(context, parentId)
      if (!ended) throw refusedAgain(thrown)
      return ended
    }
    if (code !== 'exists') throw thrown
    const there = await lookAtName(context, { parentId, name })
    if (there) return staleWith(context, [there], 'OneDrive has something of that name')
    return { end: 'wait', because: 'OneDrive says that its name is taken', afterMs: WAIT_MS }
  }
}

const WAIT_MS = 5_000
