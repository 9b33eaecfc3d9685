/**
 * What keeps all work of a drive from going on and is the fault of no file: OneDrive cannot be reached, the disk is
 * full, the folder is not there. Actions then wait without costing a try, so that an outage, however long, never makes
 * good files bad. What files have to do with each other on the way is in engine/obstacles.ts.
 */

import type { Obstacle, Obstacles } from '../../../engine/obstacles.ts'
import { asTidemarkError, TidemarkError } from '../../../errors.ts'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { errnoOf } from '../local/stat.ts'

/** `cloud`: OneDrive. `disk`: the disk is full or cannot be written. `folder`: the root or its marker is not there. */
export type FileObstacle = Obstacle<Where>
export type FileObstacles = Obstacles<Where>
export type Where = 'cloud' | 'disk' | 'folder'

const FOLDER_CODES: ReadonlySet<string | undefined> = new Set([
  ...['root-missing', 'marker-missing', 'marker-foreign', 'own-folder-other'],
])
const DISK_ERRNOS: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE'])

export function pastObstacles(obstacles: FileObstacles, run: VerbRun): VerbRun {
  return async (context) => {
    const group = context.drive.name
    const waitMs = obstacles.waitMs(group)
    if (waitMs > 0) return waiting(waitMs, obstacles.of(group)!.error)
    try {
      const ended = await run(context)
      obstacles.over(group)
      return ended
    } catch (thrown) {
      if (context.job.signal.aborted) throw thrown
      const error = plainError(thrown)
      const where = await whereOf(context, error)
      if (!where) throw error
      return waiting(obstacles.met(group, where, error), error)
    }
  }
}

function waiting(afterMs: number, { message }: TidemarkError): Ended {
  return { end: 'wait', because: message, afterMs }
}

async function whereOf(context: ActionContext, error: TidemarkError): Promise<Where | undefined> {
  if (error.code === 'disk-full' || error.code === 'disk-trouble') return 'disk'
  if (FOLDER_CODES.has(error.code)) return 'folder'
  if (error.code === 'drive-missing') return 'cloud'
  return error.kind === 'transient' && (await isOutage(context)) ? 'cloud' : undefined
}

/** Is it OneDrive, or only what was asked of it? */
async function isOutage({ drive, job }: ActionContext): Promise<boolean> {
  try {
    await drive.client.root(drive.driveId, { signal: job.signal })
    return false
  } catch (thrown) {
    return asTidemarkError(thrown).kind === 'transient'
  }
}

/** The file system's own words name paths that nobody knows. */
function plainError(thrown: unknown): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const errno = errnoOf(thrown)
  if (errno === undefined) return asTidemarkError(thrown)
  const because = { cause: thrown, hint: HINTS[errno] ?? `The file system says ${errno}.` }
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new TidemarkError('The disk is full', { kind: 'transient', code: 'disk-full', ...because })
  }
  if (DISK_ERRNOS.has(errno)) {
    const message = `The disk cannot be used now (${errno})`
    return new TidemarkError(message, { kind: 'transient', code: 'disk-trouble', ...because })
  }
  if (errno === 'EACCES' || errno === 'EPERM') {
    const message = 'Tidemark may not change it here'
    return new TidemarkError(message, { kind: 'permanent', code: 'not-allowed', ...because })
  }
  if (errno === 'ENAMETOOLONG' || errno === 'EILSEQ') {
    const message = 'the disk does not take its name'
    return new TidemarkError(message, { kind: 'permanent', code: 'name-refused', ...because })
  }
  return new TidemarkError(`The file system refused it (${errno})`, {
    ...{ kind: 'transient', code: 'file-system', ...because },
  })
}

const HINTS: Partial<Record<string, string>> = {
  ENOSPC: 'Free some space; it goes on by itself.',
  EDQUOT: 'Free some space; it goes on by itself.',
  EACCES: 'Look at the rights of the file and its folder.',
  EPERM: 'Look at the rights of the file and its folder.',
  EROFS: 'The disk is mounted for reading only.',
  EMFILE: 'Too many files are open in this process.',
}
