/** What the API says about Drives: how far each account and each of its drives is, what is skipped, who sees a file. */
import { z } from 'zod'

const ms = z.number().int()
const count = z.number().int().min(0)

const balance = {
  listed: count.describe('Files that Drive lists: indexed + skipped + failed + onTheirWay'),
  indexed: count,
  skipped: count,
  failed: count,
  onTheirWay: count,
  skippedBy: z.array(z.object({ code: z.string(), count })).describe('The skipped ones by reason'),
}

export const driveFeedSchema = z.object({
  drive: z
    .string()
    .describe('The id of a shared drive; empty for My Drive and what is shared with the account'),
  name: z.string(),
  state: z.enum(['new', 'listing', 'following', 'unreachable']),
  listedAtMs: ms.nullable(),
  isIncomplete: z.boolean().describe('Google did not look everywhere the last time; nothing was pruned'),
  problem: z.string().nullable(),
  ...balance,
})
export type DriveFeedView = z.output<typeof driveFeedSchema>

export const driveStatusSchema = z.object({
  account: z.string(),
  status: z.enum(['idle', 'discovering', 'processing', 'completed', 'failed']),
  paused: z.boolean(),
  worker: z
    .object({ id: z.number().int(), name: z.string(), heartbeatAtMs: ms, isAlive: z.boolean() })
    .nullable()
    .describe('Who works on it just now'),
  discoveryStartedAtMs: ms.nullable(),
  processingStartedAtMs: ms.nullable(),
  lastSyncAtMs: ms.nullable().describe('When all that Drive listed was last settled'),
  checkedAtMs: ms.nullable(),
  foldersCheckedAtMs: ms.nullable(),
  changeToken: z.string().nullable(),
  revocations: z
    .object({
      count,
      timed: count,
      meanMs: ms.nullable(),
      maxMs: ms.nullable(),
      lastMs: ms.nullable(),
    })
    .describe('From a revocation in Drive to its effect here, where Drive told the time'),
  failedJobs: count,
  listedAgain: count.describe('What its drives list together beyond `listed`: a file in two of them is one'),
  feeds: z.array(driveFeedSchema),
  ...balance,
})
export type DriveStatusView = z.output<typeof driveStatusSchema>

/** Of one account, besides what is said of all of them. */
export const driveAccountSchema = driveStatusSchema.omit({ account: true })

export const skippedFileSchema = z.object({
  id: z.string(),
  name: z.string(),
  mimeType: z.string(),
  sizeBytes: count.nullable(),
  url: z.string(),
  state: z.enum(['skipped', 'failed']),
  code: z.string(),
  reason: z.string(),
})
export type SkippedFileView = z.output<typeof skippedFileSchema>

export const whoSeesSchema = z.object({
  id: z.string(),
  name: z.string(),
  people: z.array(
    z.object({
      account: z.string(),
      kind: z.enum(['owner', 'writer', 'commenter', 'reader']),
      via: z.string(),
      expiresAtMs: ms.nullable(),
    }),
  ),
})

export const driveSnapshotSchema = z.object({ accounts: z.array(driveStatusSchema) })
