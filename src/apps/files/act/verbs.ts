/** What is run for each verb. */
import type { VerbRun } from '../action.ts'
import type { FilesSettings } from '../folder-pair.ts'
import { lookInside } from '../local/folder.ts'
import { plainStat } from '../local/stat.ts'
import type { ActionVerb } from '../plan-order.ts'
import { setLocalHash } from '../store/local-tree.ts'
import { freeNode } from '../store/open-nodes.ts'
import { conflictRun } from './conflict.ts'
import { type Disk, isForbidden } from './content.ts'
import { deleteLocalRun, deleteRemoteRun } from './delete.ts'
import { downloadRun } from './download.ts'
import { goneHere, lookAsSeen, otherHere, rootOf, unreadableHere } from './local-side.ts'
import { makeLocalRun, makeRemoteRun } from './make-folder.ts'
import { moveLocalRun, moveRemoteRun } from './move.ts'
import type { Transfers } from './transfers.ts'
import { uploadRun } from './upload.ts'

export type ActDeps = {
  settings: Pick<FilesSettings, 'chunkBytes' | 'reserveBytes'>
  transfers: Transfers
  disk: Disk
}

export function verbRuns(deps: ActDeps): Record<ActionVerb, VerbRun> {
  return {
    check: checkRun(deps),
    download: downloadRun(deps),
    upload: uploadRun(deps),
    'mkdir-local': makeLocalRun,
    'mkdir-remote': makeRemoteRun,
    'move-local': moveLocalRun,
    'move-remote': moveRemoteRun,
    'delete-local': deleteLocalRun(deps),
    'delete-remote': deleteRemoteRun,
    conflict: conflictRun(deps),
  }
}

/** Hashes the local content, so that it can be told from what both sides last agreed on. */
function checkRun({ disk }: { disk: Disk }): VerbRun {
  return async (context) => {
    const { pair, job, node } = context
    const local = context.case.local!
    const root = rootOf(pair)
    const seen = await lookAsSeen(context, root, local)
    if ('ended' in seen) return seen.ended
    const stat = plainStat(seen.look)
    try {
      const hashed = await disk.hash({ root, names: seen.names }, stat, job.signal)
      if (hashed.outcome === 'done') {
        const { hash, sha256 } = hashed
        return {
          end: 'done',
          write: async (tx) => {
            await setLocalHash(tx, pair.name, { id: local.id, stat, hash, sha256 })
            return freeNode(tx, pair.name, node)
          },
        }
      }
    } catch (thrown) {
      if (isForbidden(thrown)) return unreadableHere(context, local, 'it may not be read')
      throw thrown
    }
    const look = lookInside(root, seen.names)
    return look ? otherHere(context, local, look) : goneHere(context)
  }
}
