/**
 * What keeps all work of a folder pair from going on and is the fault of no file: OneDrive cannot be reached, the disk is
 * full, the folder is not there. Actions then wait without costing a try, so that an outage, however long, never makes
 * good files bad. What files have to do with each other on the way is in engine/obstacles.ts.
 *
 * A OneDrive that is full is in the way of uploads alone, and only of those that are as large as the smallest one that
 * found no room.
 */

import { asTidemarkError, TidemarkError } from '../../../base/errors.ts'
import { type Obstacle, Obstacles } from '../../../engine/obstacles.ts'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { REMOTE_VERBS } from '../decide.ts'
import { errnoOf } from '../local/stat.ts'
import { checkTop, READ_ONLY_SHARE, SHARE_GONE } from '../shared-folder.ts'

/**
 * `cloud`: OneDrive. `disk`: the disk is full or cannot be written. `folder`: the root or its marker is not there.
 * `quota`: OneDrive is full.
 */
export type FileObstacle = Obstacle<Where>
export type Where = 'cloud' | 'disk' | 'folder' | 'quota'

/** People make room in their own time, or buy some. */
const QUOTA_WAITS = { waitMsMin: 60_000, waitMsMax: 300_000 }

/** Said of uploads that wait for room. */
export const ONEDRIVE_FULL = 'The OneDrive is full'
export const ONEDRIVE_FULL_HINT =
  'Delete something there, empty its recycle bin, or get more space; uploads then go on by themselves.'

export class FileObstacles extends Obstacles<Where> {
  /** By folder pair: the smallest upload that found no room. */
  readonly #refusedBytes = new Map<string, number>()

  /** What is in the way of the uploads of a folder pair. */
  ofUploads(pair: string): FileObstacle | undefined {
    return this.of(uploadsKey(pair))
  }

  uploadWaitMs(pair: string, bytes: number): number {
    return bytes < (this.#refusedBytes.get(pair) ?? 0) ? 0 : this.waitMs(uploadsKey(pair))
  }

  /** An upload found no room; returns how long to wait. */
  noRoom(pair: string, bytes: number, error: TidemarkError): number {
    this.#refusedBytes.set(pair, Math.min(bytes, this.#refusedBytes.get(pair) ?? bytes))
    return this.met(uploadsKey(pair), 'quota', error, QUOTA_WAITS)
  }

  /** An upload of so many bytes found room. */
  roomFor(pair: string, bytes: number): void {
    const refused = this.#refusedBytes.get(pair)
    if (refused === undefined || bytes < refused) return
    this.#refusedBytes.delete(pair)
    this.over(uploadsKey(pair))
  }

  /** Something was deleted in OneDrive: perhaps there is room now. */
  roomMade(pair: string): void {
    this.maybeOver(uploadsKey(pair))
  }
}

function uploadsKey(pair: string): string {
  return `${pair} uploads`
}

const FOLDER_CODES: ReadonlySet<string | undefined> = new Set([
  'root-missing',
  'marker-missing',
  'marker-foreign',
  'own-folder-other',
])
const DISK_ERRNOS: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE'])

export function pastObstacles(obstacles: FileObstacles, run: VerbRun): VerbRun {
  return async (context) => {
    const group = context.pair.name
    const { verb, bytes } = context.job.payload
    const waitMs = obstacles.waitMs(group)
    if (waitMs > 0) return waiting(waitMs, obstacles.of(group)!.error)
    const roomMs = verb === 'upload' ? obstacles.uploadWaitMs(group, bytes) : 0
    if (roomMs > 0) return waiting(roomMs, obstacles.ofUploads(group)!.error)
    try {
      const ended = await run(context)
      obstacles.over(group)
      if (verb === 'upload' && ended.end === 'done') obstacles.roomFor(group, bytes)
      if (verb === 'delete-remote' && ended.end === 'done') obstacles.roomMade(group)
      return ended
    } catch (thrown) {
      if (context.job.signal.aborted) throw thrown
      const error = await sharedError(context, plainError(thrown))
      if (error.code === 'quota-full') {
        obstacles.over(group)
        const full = fullError(error)
        return waiting(obstacles.noRoom(group, bytes, full), full)
      }
      const where = await obstaclePlace(context, error)
      if (!where) throw error
      return waiting(obstacles.met(group, where, error), error)
    }
  }
}

/** What is refused in a folder of somebody else: nobody shares it any more, or for reading only. */
async function sharedError({ pair, job }: ActionContext, error: TidemarkError): Promise<TidemarkError> {
  if (pair.sharedBy === undefined || error.code !== 'forbidden') return error
  try {
    await checkTop(pair, job.signal)
  } catch (thrown) {
    return asTidemarkError(thrown)
  }
  if (!REMOTE_VERBS.has(job.payload.verb)) return error
  return new TidemarkError(READ_ONLY_SHARE, { kind: 'permanent', code: 'forbidden', cause: error })
}

function fullError(cause: TidemarkError): TidemarkError {
  const because = { code: 'quota-full', hint: ONEDRIVE_FULL_HINT, cause }
  return new TidemarkError(ONEDRIVE_FULL, { kind: 'transient', ...because })
}

function waiting(afterMs: number, { message, code }: TidemarkError): Ended {
  const why = code === 'quota-full' ? ({ code } as const) : {}
  // Whoever asks for changes finds out for good, and stops the work on it.
  const isHeardFirst = code === SHARE_GONE
  return { end: 'wait', because: message, afterMs, ...why, ...(isHeardFirst && { isHeardFirst }) }
}

async function obstaclePlace(context: ActionContext, error: TidemarkError): Promise<Where | undefined> {
  if (error.code === 'disk-full' || error.code === 'disk-trouble') return 'disk'
  if (FOLDER_CODES.has(error.code)) return 'folder'
  if (error.code === 'drive-missing' || error.code === SHARE_GONE) return 'cloud'
  return error.kind === 'transient' && (await isOutage(context)) ? 'cloud' : undefined
}

/** Is it OneDrive, or only what was asked of it? */
async function isOutage({ pair, job }: ActionContext): Promise<boolean> {
  try {
    await checkTop(pair, job.signal)
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
    kind: 'transient',
    code: 'file-system',
    ...because,
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
