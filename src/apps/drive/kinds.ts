/** What the jobs of the index are given: what they share, their payloads, and each other's kinds, which jobs.ts makes. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { JobKind } from '../../engine/index.ts'
import type { Obstacles } from '../../engine/obstacles.ts'
import type { IndexWriter } from '../../search/contract.ts'
import type { TextExtractor } from '../../search/extract/extractor.ts'
import type { DriveAccounts } from './account.ts'
import type { DriveSettings } from './settings.ts'
import type { DriveTables } from './store/tables.ts'

export type DriveDeps = {
  accounts: DriveAccounts
  tables: DriveTables
  clock: Clock
  settings: DriveSettings
  /** Made ready to be written to. */
  index: () => Promise<IndexWriter>
  extractor: () => Promise<TextExtractor>
}

export const Account = z.object({ account: z.string() })
export const Listing = z.object({ account: z.string(), drive: z.string(), generation: z.number() })
export const File = z.object({ file: z.string(), version: z.string() })

export type AccountPayload = z.output<typeof Account>
export type ListingPayload = z.output<typeof Listing>
export type FilePayload = z.output<typeof File>

export type DriveKinds = DriveDeps & {
  sync: JobKind<AccountPayload>
  list: JobKind<ListingPayload>
  file: JobKind<FilePayload>
  settle: JobKind<AccountPayload>
  forget: JobKind<AccountPayload>
  obstacles: Obstacles<'cloud'>
}
