/** What is run for each verb. */
import type { VerbRun } from '../action.ts'
import type { FilesSettings } from '../folder-pair.ts'
import type { ActionVerb } from '../plan.ts'
import { checkRun } from './check.ts'
import { conflictRun } from './conflict.ts'
import type { Disk } from './content.ts'
import { deleteLocalRun, deleteRemoteRun } from './delete.ts'
import { downloadRun } from './download.ts'
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
