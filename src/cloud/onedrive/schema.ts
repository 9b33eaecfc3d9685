/**
 * What of Graph's answers is used, in our words. Everything that differs between kinds of OneDrive, or that Graph
 * gets wrong at times, is made even here, and nowhere else. What an item must have is an id; all else that is
 * missing is `undefined`, which never means "none".
 */
import { z } from 'zod'

export type DriveItemType = 'file' | 'folder' | 'package' | 'shortcut' | 'root'

export type DriveItem = {
  id: string
  /** Made even, see `evenDriveId`; empty where the answer does not say it. */
  driveId: string
  /**
   * `package`: what is neither file nor folder, or not only that: notebooks, albums. `shortcut`: a pointer to
   * something in another drive, which has nothing of it in it.
   * Something that was deleted may not say what it was, and is then called a file.
   */
  type: DriveItemType
  /** Missing on some deletions. */
  name: string | undefined
  parentId: string | undefined
  size: number | undefined
  /** Changes with anything about the item. */
  eTag: string | undefined
  /** Changes with its content. Missing in Business. */
  cTag: string | undefined
  /** QuickXorHash in base64; missing on some files, and left out where it cannot be right. */
  hash: string | undefined
  modifiedMs: number | undefined
  deleted: boolean
  /** Of a shortcut, and of what is listed as shared. */
  target?: SharedItem
}

/** Something in the drive of somebody else. */
export type SharedItem = {
  driveId: string
  driveType: Drive['type']
  itemId: string
  name: string
  isFolder: boolean
  /** As people call whoever shares it; undefined where it is not said. */
  owner: string | undefined
}

export type Drive = {
  id: string
  type: 'personal' | 'business' | 'documentLibrary' | 'unknown'
  name: string
  owner: string | undefined
  quota:
    | { totalBytes: number | undefined; usedBytes: number | undefined; freeBytes: number | undefined }
    | undefined
}

export type Person = { id: string; name: string; address: string | undefined }

/** Ids go into paths: nothing else may stand in them. */
export const ID = /^(?!\.{1,2}$)[\w!.~=-]{1,200}$/

const PERSONAL_DRIVE_ID = /^[0-9a-f]{1,16}$/i
const PERSONAL_DRIVE_ID_LENGTH = 16
const HASH = /^[\w+/]{27}=$/
const HASH_OF_NOTHING = 'AAAAAAAAAAAAAAAAAAAAAAAAAAA='

/** Personal ids are 16 hexadecimal digits that lose their leading zero and change their case; of others only `b!` does. */
export function evenDriveId(id: string): string {
  if (PERSONAL_DRIVE_ID.test(id)) return id.toLowerCase().padStart(PERSONAL_DRIVE_ID_LENGTH, '0')
  return id.replace(/^B!/, 'b!')
}

const text = z.string().min(1).optional().catch(undefined)
/** What counts is that it is there. */
const facet = z.object({}).optional().catch(undefined)

/** Undefined where it is no date, and where it is the year 1, which stands for none. */
const moment = z
  .string()
  .transform((value) => Date.parse(value))
  .pipe(z.number().min(-62_000_000_000_000))
  .optional()
  .catch(undefined)

const times = z.object({ lastModifiedDateTime: moment }).optional().catch(undefined)

const driveType = z.enum(['personal', 'business', 'documentLibrary', 'unknown']).catch('unknown')
const identity = z
  .object({ user: z.object({ displayName: text, email: text }).optional().catch(undefined) })
  .optional()
  .catch(undefined)

const wireShared = z.object({
  id: z.string().regex(ID),
  name: text,
  folder: facet,
  root: facet,
  parentReference: z.object({ driveId: z.string().regex(ID), driveType }),
  shared: z.object({ owner: identity, sharedBy: identity }).optional().catch(undefined),
  createdBy: identity,
})

/** What is reached by its ids or by a link, and is not one's own. */
export const sharedItemSchema = wireShared.transform((item): SharedItem => {
  const { user } = item.shared?.owner ?? item.shared?.sharedBy ?? item.createdBy ?? {}
  return {
    driveId: evenDriveId(item.parentReference.driveId),
    driveType: item.parentReference.driveType,
    itemId: item.id,
    name: item.name ?? '',
    isFolder: item.folder !== undefined || item.root !== undefined,
    owner: user?.displayName ?? user?.email,
  }
})

export const permissionsSchema = z
  .object({ value: z.array(z.object({ roles: z.array(z.string()).catch([]) })) })
  .transform(({ value }) => value.flatMap(({ roles }) => roles))

const wireItem = z.object({
  id: z.string().regex(ID),
  name: text,
  size: z.number().int().nonnegative().optional().catch(undefined),
  eTag: text,
  cTag: text,
  lastModifiedDateTime: moment,
  fileSystemInfo: times,
  parentReference: z.object({ driveId: text, id: text }).optional().catch(undefined),
  file: z
    .object({ hashes: z.object({ quickXorHash: text }).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  folder: facet,
  package: facet,
  bundle: facet,
  /** What cannot be read of it is a pointer all the same. */
  remoteItem: sharedItemSchema
    .or(z.object({}).transform(() => null))
    .optional()
    .catch(undefined),
  root: facet,
  deleted: facet,
})

type WireItem = z.infer<typeof wireItem>

export const itemSchema = wireItem.transform((item): DriveItem => {
  const type = typeOf(item)
  return {
    id: item.id,
    driveId: evenDriveId(item.parentReference?.driveId ?? ''),
    type,
    name: item.name,
    parentId: type === 'root' ? undefined : item.parentReference?.id,
    size: item.size,
    eTag: item.eTag,
    cTag: item.cTag,
    hash: contentHash(item),
    modifiedMs: item.fileSystemInfo?.lastModifiedDateTime ?? item.lastModifiedDateTime,
    deleted: item.deleted !== undefined,
    ...(item.remoteItem && {
      target: { ...item.remoteItem, name: item.remoteItem.name || (item.name ?? '') },
    }),
  }
})

function typeOf(item: WireItem): DriveItemType {
  if (item.root) return 'root'
  if (item.remoteItem !== undefined) return 'shortcut'
  if (item.package || item.bundle) return 'package'
  if (item.folder) return 'folder'
  return item.file || item.deleted ? 'file' : 'package'
}

function contentHash({ file, size, deleted }: WireItem): string | undefined {
  const hash = file?.hashes?.quickXorHash
  // Of deleted files it is that of nothing, or of something else.
  if (hash === undefined || deleted || !HASH.test(hash)) return undefined
  return hash === HASH_OF_NOTHING && size !== 0 ? undefined : hash
}

const link = z.string().min(1).max(32_768).optional()

export const itemPageSchema = z
  .object({ value: z.array(itemSchema), '@odata.nextLink': link })
  .transform((page) => ({ items: page.value, nextLink: page['@odata.nextLink'] }))

export const deltaPageSchema = z
  .object({ value: z.array(itemSchema), '@odata.nextLink': link, '@odata.deltaLink': link })
  .transform((page) => ({
    items: page.value,
    nextLink: page['@odata.nextLink'],
    deltaLink: page['@odata.deltaLink'],
  }))
  // Without either nobody can say whether this was all.
  .refine(({ nextLink, deltaLink }) => (nextLink === undefined) !== (deltaLink === undefined))

/** Of SharePoint. */
export type Site = { id: string; title: string }

/** The host, and two numbers. */
const SITE_ID = /^[\w.-]{1,253}(?:,[\da-f-]{36}){2}$/i

const bytes = z.number().nonnegative().optional().catch(undefined)

export const driveSchema = z
  .object({
    id: z.string().regex(ID),
    driveType,
    name: z.string().catch(''),
    owner: z
      .object({ user: z.object({ displayName: text }).optional().catch(undefined) })
      .optional()
      .catch(undefined),
    quota: z.object({ total: bytes, used: bytes, remaining: bytes }).optional().catch(undefined),
  })
  .transform(
    (drive): Drive => ({
      id: evenDriveId(drive.id),
      type: drive.driveType,
      name: drive.name,
      owner: drive.owner?.user?.displayName,
      quota: drive.quota && {
        totalBytes: drive.quota.total,
        usedBytes: drive.quota.used,
        freeBytes: drive.quota.remaining,
      },
    }),
  )

export const drivesSchema = z
  .object({ value: z.array(driveSchema), '@odata.nextLink': link })
  .transform((page) => ({ drives: page.value, nextLink: page['@odata.nextLink'] }))

export const sitesSchema = z
  .object({
    value: z.array(z.object({ id: z.string().regex(SITE_ID), displayName: z.string().catch('') })),
    '@odata.nextLink': link,
  })
  .transform((page) => ({
    sites: page.value.map(({ id, displayName }) => ({ id, title: displayName })),
    nextLink: page['@odata.nextLink'],
  }))

export const personSchema = z
  .object({ id: z.string().min(1), displayName: z.string().catch(''), mail: text, userPrincipalName: text })
  .transform(
    ({ id, displayName, mail, userPrincipalName }): Person => ({
      id,
      name: displayName,
      address: mail ?? userPrincipalName,
    }),
  )

/** `12-45` or `12-`: where the first missing byte is; undefined where none is. */
const firstMissing = z
  .array(z.string().regex(/^\d{1,15}-(?:\d{1,15})?$/))
  .transform((ranges) =>
    ranges.length === 0 ? undefined : Math.min(...ranges.map((range) => Number.parseInt(range, 10))),
  )

export const sessionSchema = z
  .object({ uploadUrl: z.string().min(1).max(16_384), expirationDateTime: moment })
  .transform(({ uploadUrl, expirationDateTime }) => ({ url: uploadUrl, expiresAtMs: expirationDateTime }))

export const progressSchema = z
  .object({ nextExpectedRanges: firstMissing, expirationDateTime: moment })
  .transform(({ nextExpectedRanges, expirationDateTime }) => ({
    nextOffset: nextExpectedRanges,
    expiresAtMs: expirationDateTime,
  }))

export const copySchema = z
  .object({
    status: z.string().catch('inProgress'),
    percentageComplete: z.number().min(0).max(100).catch(0),
    resourceId: z.string().regex(ID).optional().catch(undefined),
    error: z
      .object({ code: z.string().catch('') })
      .optional()
      .catch(undefined),
  })
  .transform(({ status, percentageComplete, resourceId, error }) => ({
    state: copyStateOf(status),
    percent: percentageComplete,
    itemId: resourceId,
    code: error?.code,
  }))

function copyStateOf(status: string): 'running' | 'done' | 'failed' {
  if (status === 'completed') return 'done'
  return /^(?:failed|deleteFailed|cancelled)$/.test(status) ? 'failed' : 'running'
}

export const subscriptionSchema = z
  .object({ id: z.string().regex(ID), expirationDateTime: moment })
  .transform(({ id, expirationDateTime }) => ({ id, expiresAtMs: expirationDateTime }))
