/** What the API says about folders that are kept in step with OneDrive. Pages import the types. */
import { z } from 'zod'
import { pauseCode } from '../../../app/schemas.ts'
import { RULE_CHARS_MAX, RULES_MAX } from '../ignore-rules.ts'

const FOLDER_PATH_CHARS_MAX = 4_096
const ONLY_MAX = 1_000

const ms = z.number().int()
const count = z.number().int().min(0)
const bytes = z.number().min(0)

export const fileAccountSchema = z.object({
  folders: z.array(z.string()).describe('Names of the folders that are kept in step with it'),
})
export type FileAccountView = z.output<typeof fileAccountSchema>

export const reportedSchema = z.object({
  node: z.string(),
  path: z.string(),
  because: z.string().describe('Why it is left alone'),
})
export type ReportedView = z.output<typeof reportedSchema>

export const folderSchema = z.object({
  name: z.string(),
  stream: z.string(),
  account: z.string(),
  root: z.string().describe('The folder, on the machine that has it'),
  isHere: z.boolean().describe('Whether that is the machine of this server'),
  mode: z.enum(['two-way', 'download-only', 'upload-only']),
  sharedBy: z
    .string()
    .nullable()
    .describe('Who shares it, where it is kept in step with a folder of somebody else'),
  policy: z.enum(['keep-both', 'keep-local', 'keep-remote', 'manual']).describe('What becomes of conflicts'),
  state: z.enum(['in step', 'working', 'stopped', 'needs you', 'paused', 'not begun']),
  text: z.string().describe('One sentence for people: what it is doing or what it needs'),
  files: count,
  folders: count,
  bytes,
  open: z
    .object({ unplanned: count, inWork: count, waiting: count, reported: count })
    .describe('What is not known to be in step, by what becomes of it next'),
  heldDeletes: z
    .object({
      local: count,
      remote: count,
      replaced: z
        .object({ local: count, remote: count })
        .optional()
        .describe('So many of them are files that get another content'),
    })
    .nullable()
    .describe('What waits for a yes, on each side'),
  conflicts: count.describe('Those that nobody has decided yet'),
  scannedAt: ms.nullable().describe('When the folder was last looked through to the end'),
  heardAt: ms.nullable().describe('When the changes in OneDrive were last read to the end'),
  paused: z.string().nullable().describe('Why; null where it is not paused'),
  pauseCode: pauseCode.nullable(),
})
export type FolderView = z.output<typeof folderSchema>

export const drivesSchema = z.object({
  drives: z.array(
    z.object({
      id: z.string(),
      name: z
        .string()
        .describe(
          '`OneDrive`, `Marketing/Documents`: a library of a site, `Projects (Ben)`: a shared folder',
        ),
      type: z.enum(['personal', 'business', 'documentLibrary', 'sharedFolder', 'unknown']),
      usedBytes: bytes.nullable(),
      owner: z.string().nullable().describe('Who shares it, as far as that is told'),
    }),
  ),
  isWide: z.boolean().describe('Whether the account may see more than its own drive'),
  hint: z.string().nullable().describe('Why there may be more, and what to do to see it'),
})
export type DrivesView = z.output<typeof drivesSchema>

export const folderSettingsSchema = z.object({
  mode: folderSchema.shape.mode.describe(
    'Whether changes go both ways, only come here, or only go to OneDrive',
  ),
  policy: folderSchema.shape.policy.describe(
    'What becomes of a file that was changed on both sides; `manual`: you decide',
  ),
  only: z
    .array(z.string().min(1).max(FOLDER_PATH_CHARS_MAX))
    .max(ONLY_MAX)
    .describe('Folders and files that take part, from the top of the folder; all where there are none'),
  skip: z
    .array(z.string().min(1).max(RULE_CHARS_MAX))
    .max(RULES_MAX)
    .describe('What is left out, by patterns as in a .gitignore'),
  skipDotfiles: z.boolean().describe('Names that begin with a dot are left out'),
  sizeMbMax: z.number().min(0).max(1e9).describe('Larger files are left out, in MB; 0: none'),
  followLinks: z.boolean().describe('Links within the folder are followed'),
})
export type FolderSettings = z.output<typeof folderSettingsSchema>

const wayNumbers = z.object({ count, doneBytes: bytes, totalBytes: bytes })

export const transferSchema = z.object({
  folder: z.string(),
  node: z.string(),
  direction: z.enum(['upload', 'download']),
  path: z.string(),
  doneBytes: bytes,
  totalBytes: bytes,
  bytesPerSecond: bytes.nullable().describe('Null until it has been watched for a moment'),
  startedAt: ms,
})
export type TransferViewOut = z.output<typeof transferSchema>

export const transfersSchema = z.object({
  items: z.array(transferSchema).describe('Those that have been under way longest first, 100 at most'),
  upload: wayNumbers,
  download: wayNumbers,
})
export type TransfersView = z.output<typeof transfersSchema>

/** What live pages are told: small, and the same for the list and for one folder. */
export const filesSnapshotSchema = z.object({
  folders: z.array(folderSchema),
  transfers: transfersSchema,
})
export type FilesSnapshot = z.output<typeof filesSnapshotSchema>

const side = z.object({
  name: z.string(),
  size: bytes,
  modifiedMs: ms.nullable(),
})

export const itemStates = ['in-step', 'here', 'there', 'both', 'waiting', 'left', 'held', 'conflict'] as const
const itemState = z
  .enum(itemStates)
  .describe(
    '`here`: changed in the folder. `there`: changed in OneDrive. `waiting`: for something else first. ' +
      '`left`: left alone. `held`: a deletion that waits for a yes. `conflict`: somebody has to decide',
  )

export const treeItemSchema = z.object({
  node: z.string().describe('By which it is asked for: its id in OneDrive, or its number here'),
  name: z.string(),
  type: z.enum(['file', 'folder', 'other', 'notebook', 'shortcut']),
  size: bytes,
  modifiedMs: ms.nullable(),
  state: itemState,
  isActive: z.boolean().describe('Something is being done about it right now'),
  text: z.string().describe('What is or will be done, or why nothing is; empty where it is in step'),
  here: side.nullable(),
  there: side.nullable(),
  conflict: z
    .number()
    .int()
    .nullable()
    .describe('The number of the conflict to decide; null of a folder with conflicts inside'),
})
export type TreeItem = z.output<typeof treeItemSchema>

export const itemDetailSchema = treeItemSchema.extend({
  path: z.string(),
  agreed: z
    .object({ name: z.string(), size: bytes })
    .nullable()
    .describe('What both sides last agreed on; null where they never did'),
})
export type ItemDetail = z.output<typeof itemDetailSchema>

export const actionSchema = z.object({
  id: z.number().int().describe('The number of its job'),
  verb: z.string(),
  text: z.string().describe('What it does, in words: `Uploaded`'),
  path: z.string(),
  row: z.string().describe('The row of the decision table'),
  bytes,
  at: ms,
  result: z.enum(['done', 'not needed', 'failed', 'canceled']),
  note: z.string().nullable(),
})
export type ActionView = z.output<typeof actionSchema>

export const conflictSchema = z.object({
  id: z.number().int(),
  kind: z.enum(['edit-edit', 'edit-delete', 'create-create']),
  path: z.string(),
  copyPath: z
    .string()
    .nullable()
    .describe('Where the version of the folder went; null where both are untouched'),
  at: ms,
  state: z.enum(['open', 'kept-both', 'kept-local', 'kept-remote', 'dismissed']),
  resolvedAt: ms.nullable(),
})
export type ConflictView = z.output<typeof conflictSchema>

export const conflictSideSchema = z.object({
  path: z.string().nullable().describe('Null where it is not there any more'),
  bytes: bytes.nullable(),
  modifiedMs: ms.nullable(),
  preview: z
    .enum(['text', 'image', 'none'])
    .describe('`image`: at …/image. `none`: there is nothing to show of it'),
  text: z.string().nullable().describe('Its beginning; only where it is text'),
  isWhole: z.boolean().describe('Whether `text` is all of it'),
  note: z.string().nullable().describe('Why there is no preview'),
})
export type ConflictSide = z.output<typeof conflictSideSchema>

export const conflictDetailSchema = conflictSchema.extend({
  here: conflictSideSchema,
  there: conflictSideSchema,
  canResolve: z.boolean(),
  outcome: z
    .string()
    .nullable()
    .describe('What was decided, and where the version that gave way is; null while nobody has decided'),
})
export type ConflictDetail = z.output<typeof conflictDetailSchema>

export const heldDeletesSchema = z.object({
  here: count.describe('So many would be deleted or replaced in the folder; they go to its trash'),
  there: count.describe(
    'So many would be deleted in OneDrive, into its recycle bin, or replaced there, into its history',
  ),
  replaced: count.describe('So many of them get another content; the others are deleted'),
  total: count.describe('The number with which to say yes'),
  items: z
    .array(
      z.object({
        node: z.string(),
        path: z.string(),
        side: z.enum(['here', 'there']),
        type: z.string(),
        bytes,
        isReplaced: z.literal(true).optional(),
      }),
    )
    .describe('Some of them'),
})
export type HeldDeletesView = z.output<typeof heldDeletesSchema>

export const trashEntrySchema = z.object({
  id: z.string().describe('With which it is restored'),
  path: z.string().describe('Where it was'),
  day: z.string().describe('When it was deleted or replaced: `2026-11-16`'),
  bytes,
})
export type TrashEntryView = z.output<typeof trashEntrySchema>
