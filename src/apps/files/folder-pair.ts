/**
 * A folder pair: a local folder and a OneDrive folder that are kept in step, as jobs see them, and what one can choose
 * for them. A *drive* is only what Microsoft calls so: the storage of an account, with its id, its quota and its delta.
 */
import { z } from 'zod'
import type { AccountSource } from '../../app/signed-in.ts'
import type { OneDriveClient } from '../../cloud/onedrive/client.ts'
import type { BandwidthSpec } from '../../engine/limits/bandwidth.ts'
import type { ConflictPolicy, Mode } from './decide.ts'
import { type Filter, filterSchema } from './filter.ts'

export const SERVICE = 'onedrive'

export function streamOf(name: string): string {
  return `files:${name}`
}

/** The folders, with the accounts that they work with. */
export function sourcesOf(pairs: readonly { name: string; account: string }[]): AccountSource[] {
  return pairs.map(({ name, account }) => ({ stream: streamOf(name), account }))
}

/** Requests of all folders of an account are paced together: OneDrive counts per account. */
export function requestsOf(account: string): string {
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
