/**
 * What of Drive's answers is used. Unknown fields are dropped; what is missing or of another type makes the answer
 * damaged: a guess about who may see something would let somebody see it.
 */
import { z } from 'zod'

export { decode, parseJson } from './errors.ts'

/** Goes into paths and queries, so nothing else may stand in it. */
export const FILE_ID = /^[\w-]{1,200}$/

const id = z.string().regex(FILE_ID)
const timeMs = z.string().transform((text, context) => {
  const ms = Date.parse(text)
  if (Number.isFinite(ms)) return ms
  context.addIssue('no time')
  return z.NEVER
})
/** 64 bits, as text. */
const count = z
  .union([z.string().regex(/^\d{1,20}$/), z.number().int().nonnegative()])
  .transform((value) => Number(value))

/** One that cannot be read must not pass for none: the list would seem to end there. */
const pageToken = z
  .string()
  .max(8_192)
  .nullish()
  .transform((token) => token || undefined)

const personSchema = z.object({
  displayName: z.string().default(''),
  emailAddress: z.string().default(''),
})

export const permissionSchema = z.object({
  id: z.string(),
  type: z.enum(['user', 'group', 'domain', 'anyone']).catch('anyone'),
  role: z.string(),
  emailAddress: z.string().optional(),
  domain: z.string().optional(),
  allowFileDiscovery: z.boolean().optional(),
  expirationTime: timeMs.optional(),
  deleted: z.boolean().optional(),
  /** Of a permission for something else than the document: its name, or what was published of it. */
  view: z.string().optional(),
  permissionDetails: z
    .array(
      z.object({
        permissionType: z.string().optional(),
        role: z.string().optional(),
        inherited: z.boolean().optional(),
        inheritedFrom: z.string().optional(),
      }),
    )
    .optional(),
})

export const fileSchema = z.object({
  id,
  name: z.string(),
  mimeType: z.string(),
  md5Checksum: z.string().optional(),
  sha256Checksum: z.string().optional(),
  size: count.optional(),
  version: count.default(0),
  createdTime: timeMs.optional(),
  modifiedTime: timeMs.optional(),
  trashed: z.boolean().default(false),
  parents: z.array(z.string()).default([]),
  driveId: z.string().optional(),
  owners: z.array(personSchema).default([]),
  lastModifyingUser: personSchema.optional(),
  webViewLink: z.string().optional(),
  ownedByMe: z.boolean().default(false),
  inheritedPermissionsDisabled: z.boolean().default(false),
  resourceKey: z.string().optional(),
  capabilities: z
    .object({
      canDownload: z.boolean().optional(),
      canEdit: z.boolean().optional(),
      canComment: z.boolean().optional(),
      canListChildren: z.boolean().optional(),
    })
    .default({}),
  shortcutDetails: z
    .object({
      targetId: z.string(),
      targetMimeType: z.string().default(''),
      targetResourceKey: z.string().optional(),
    })
    .optional(),
  /** Absent where the account may not share the file. */
  permissions: z.array(permissionSchema).optional(),
})

export const fileListSchema = z.object({
  files: z.array(fileSchema).default([]),
  nextPageToken: pageToken,
  incompleteSearch: z.boolean().default(false),
})

export const driveSchema = z.object({ id, name: z.string() })

export const driveListSchema = z.object({
  drives: z.array(driveSchema).default([]),
  nextPageToken: pageToken,
})

export const startPageTokenSchema = z.object({ startPageToken: z.string().min(1) })

/** A file that was changed; or one that is gone, for this user at least; or a drive that was joined, left or renamed. */
const changeSchema = z.object({
  changeType: z.string().default('file'),
  removed: z.boolean().default(false),
  time: timeMs.optional(),
  fileId: z.string().optional(),
  driveId: z.string().optional(),
  file: fileSchema.optional(),
})

export const changeListSchema = z.object({
  changes: z.array(changeSchema).default([]),
  nextPageToken: pageToken,
  newStartPageToken: pageToken,
})

export const permissionListSchema = z.object({
  permissions: z.array(permissionSchema).default([]),
  nextPageToken: pageToken,
})

export const aboutSchema = z.object({
  user: z.object({ emailAddress: z.string(), displayName: z.string().default('') }),
  storageQuota: z.object({ usage: count.optional(), limit: count.optional() }).optional(),
})

export type DriveFile = z.output<typeof fileSchema>
export type Permission = z.output<typeof permissionSchema>
export type SharedDrive = z.output<typeof driveSchema>
export type Change = z.output<typeof changeSchema>

/** `fields` of everything that is asked about a file. */
export const FILE_FIELDS = [
  'id,name,mimeType,md5Checksum,sha256Checksum,size,version,createdTime,modifiedTime,trashed,parents,driveId',
  'owners(displayName,emailAddress),lastModifyingUser(displayName,emailAddress),webViewLink,ownedByMe',
  'inheritedPermissionsDisabled,resourceKey,capabilities(canDownload,canEdit,canComment,canListChildren)',
  'shortcutDetails(targetId,targetMimeType,targetResourceKey)',
  'permissions(id,type,role,emailAddress,domain,allowFileDiscovery,expirationTime,deleted,view,permissionDetails)',
].join(',')
