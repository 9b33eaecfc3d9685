/**
 * A folder pair: a local folder and a OneDrive folder that are kept in step, as jobs see them, and what one can choose
 * for them. A *drive* is only what Microsoft calls so: the storage of an account, with its id, its quota and its delta.
 */
import { z } from 'zod'
import type { AccountSource } from '../../app/signed-in.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { OneDriveClient } from '../../cloud/onedrive/client.ts'
import type { Outcome } from '../../engine/index.ts'
import type { BandwidthSpec } from '../../engine/limits/bandwidth.ts'
import type { ConflictPolicy, Mode } from './decide.ts'
import { type Filter, filterSchema } from './filter.ts'

export const SERVICE = 'onedrive'

export function streamOf(name: string): string {
  return `files:${name}`
}

/** The folders, with the accounts that they work with. */
export function accountSources(pairs: readonly { name: string; account: string }[]): AccountSource[] {
  return pairs.map(({ name, account }) => ({ stream: streamOf(name), account }))
}

/** Requests of all folders of an account are paced together: OneDrive counts per account. */
export function requestBudget(account: string): string {
  return `onedrive:${account}`
}

/** Kept with the folder pair, as JSON. */
export const folderPairSettings = z.object({
  mode: z.enum(['two-way', 'download-only', 'upload-only']).default('two-way'),
  conflicts: z.enum(['keep-both', 'keep-local', 'keep-remote', 'manual']).default('keep-both'),
  filter: filterSchema.prefault({}),
  follow_symlinks: z.boolean().default(false),
})
export type FolderPairSettings = z.infer<typeof folderPairSettings> & {
  mode: Mode
  conflicts: ConflictPolicy
}

/** Of the whole process, from its configuration. */
export type FilesSettings = {
  apiUrl: string
  authUrl: string
  tokenUrl: string
  deviceUrl: string
  requestsPerSecondStart: number
  requestsPerSecondMax: number
  parallelDownloads: number
  parallelUploads: number
  parallelCheckers: number
  /** Of an upload session; a multiple of 320 KiB. */
  chunkBytes: number
  /** Free space that downloads leave alone. */
  reserveBytes: number
  trashDays: number
  /** Infinite where nobody has set a limit. */
  trashBytesMax: number
  pollMs: number
  scanMs: number
  debounceMs: number
  /** A connection that says nothing for this long is given up. */
  silenceMs: number
  bandwidth: BandwidthSpec
}

export type FolderPair = {
  name: string
  stream: string
  account: string
  driveId: string
  isBusiness: boolean
  rootItemId: string
  /** Who shares it, where the top is a folder of somebody else. */
  sharedBy?: string | undefined
  /** Whether the account has the permission for what others share, as of now. */
  maySeeShared?: (() => Promise<boolean>) | undefined
  /** The folder, absolute. */
  root: string
  markerId: string
  settings: FolderPairSettings
  filter: Filter
  /** Waits by itself until a call may be made and bytes may go over the wire. */
  client: OneDriveClient
}

export interface FolderPairs {
  names(): readonly string[]
  accounts(): readonly string[]
  get(name: string): Promise<FolderPair>
  /** The budget under which its calls are made. */
  budget(name: string): string
  /** Sees folder pairs that were added, changed or removed elsewhere. */
  reload(): Promise<void>
  close(): Promise<void>
}

/** The code of the error that refuses a folder pair of another machine. */
export const ELSEWHERE = 'drive-elsewhere'
/** The code of the error that refuses a folder pair which nobody keeps in step. */
export const UNKNOWN = 'drive-unknown'

const AGAIN_MS = 1_000

const OVER = { skip: 'the folder is not kept in step any more' }

/**
 * On a ledger that several machines share, any of them may be given a job, and only the one that has the folder can do
 * it. The others put it back, which costs no try. A job that comes too late, for a folder pair that was removed, is
 * skipped. `counts`: what is counted for work that is skipped so.
 */
export async function runOnOwnMachine(
  run: () => Promise<Outcome>,
  counts: Pick<Outcome, 'skipped'> = {},
): Promise<Outcome> {
  try {
    return await run()
  } catch (thrown) {
    const { code } = asTidemarkError(thrown)
    if (code === UNKNOWN) return { ...OVER, ...counts }
    if (code !== ELSEWHERE) throw thrown
    return { again: { afterMs: AGAIN_MS }, note: 'left to the machine that has its folder' }
  }
}
