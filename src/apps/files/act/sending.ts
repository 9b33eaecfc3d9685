/** One upload: what is sent, where to, and what has become of it. */
import type { DriveItem, Target } from '../../../cloud/onedrive/client.ts'
import type { ActionContext, Ended } from '../action.ts'
import type { FilesSettings } from '../folder-pair.ts'
import type { Digests, LocalRow, LocalStat, RemoteRow } from '../trees.ts'
import type { Disk } from './content.ts'
import type { Opened } from './local-side.ts'
import type { Transfer, Transfers } from './transfers.ts'

export type UploadDeps = { settings: Pick<FilesSettings, 'chunkBytes'>; transfers: Transfers; disk: Disk }

/** The file, as it was when it was read or opened. */
export type Source = { names: string[]; local: LocalRow; look: LocalStat }
export type WholeSource = Source & { bytes: Uint8Array } & Digests
export type OpenSource = Source & Opened

/** What is sent, and where to. */
export type Sending<From extends Source = WholeSource | OpenSource> = {
  context: ActionContext
  source: From
  target: Target
  /** The version that is replaced. */
  ifMatch: string | undefined
  /** What the same upload has become, where it is sent once more. */
  replaces?: RemoteRow
  modifiedMs: number | undefined
  transfer: Transfer
  /** Ends with the job, and as soon as the file is seen to change. */
  signal: AbortSignal
}

/** What OneDrive has now, and the hashes of what was sent. */
export type Sent = ({ item: DriveItem } & Digests) | { ended: Ended }
