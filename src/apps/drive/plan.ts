/**
 * Pure decisions: by what a change of a file is known, how it is read, why it is not, what its listing proves about
 * who may see it, and by what a change of a folder's permissions is known.
 */
import { createHash } from 'node:crypto'
import { type DriveFile, FOLDER, type Permission, SHORTCUT } from '../../cloud/drive/client.ts'
import type { Grant } from '../../search/contract.ts'
import { documentType } from '../../search/document-type.ts'
import { granteesOf, type Sharing } from './sharing.ts'

/** A file as an account's own listing tells of it. */
export type Listed = {
  id: string
  name: string
  mimeType: string
  md5: string | null
  sha256: string | null
  sizeBytes: number | null
  /** Google's counter: of two looks at a file, the higher is the newer. */
  serial: number
  /** By which it is known whether the document must be read again. */
  version: string
  createdAtMs: number | null
  modifiedAtMs: number | null
  owner: string
  editor: string
  url: string
  isFolder: boolean
  resourceKey: string | null
  /** Of a folder: of who may see what is in it, as far as the account can tell. */
  fingerprint: string | null
  parent: string | null
  grant: Pick<Grant, 'kind' | 'via' | 'expiresAtMs'>
  canDownload: boolean
  /** The list was as it says, and the file listed for the account, at this time or later. */
  askedAtMs: number
  /** Null where the account is not told all permissions. */
  sharing: Sharing | null
}

/** Written together: each may change who sees a document, and have its words written anew. */
export const PART_FILES_MAX = 100
export const PART_BYTES_MAX = 8_000_000

/** In their order, by as much as one transaction may hold up all others. */
export function partsOf<T extends Pick<Listed, 'sizeBytes'>>(files: readonly T[]): T[][] {
  const parts: T[][] = []
  let bytes = 0
  for (const file of files) {
    const last = parts.at(-1)
    bytes += file.sizeBytes ?? 0
    if (last && last.length < PART_FILES_MAX && bytes <= PART_BYTES_MAX) {
      last.push(file)
      continue
    }
    parts.push([file])
    bytes = file.sizeBytes ?? 0
  }
  return parts
}

/** `askedAtMs`: before Google was asked. `nowMs`: after it answered. */
export type ListedBy = {
  account: string
  askedAtMs: number
  nowMs: number
  drive: { id: string; name: string } | undefined
}

export function listedOf(file: DriveFile, by: ListedBy): Listed {
  const isFolder = file.mimeType === FOLDER
  const [owner] = file.owners
  const editor = file.lastModifyingUser
  return {
    id: file.id,
    name: file.name,
    mimeType: file.mimeType,
    md5: file.md5Checksum ?? null,
    sha256: file.sha256Checksum ?? null,
    sizeBytes: file.size ?? null,
    serial: file.version,
    version: versionOf(file),
    createdAtMs: file.createdTime ?? null,
    modifiedAtMs: file.modifiedTime ?? null,
    owner: owner?.emailAddress || owner?.displayName || '',
    editor: editor?.emailAddress || editor?.displayName || '',
    url: urlOf(file),
    isFolder,
    resourceKey: file.resourceKey ?? null,
    fingerprint: isFolder ? fingerprintOf(file) : null,
    parent: file.parents[0] ?? null,
    grant: grantOf(file, by),
    canDownload: file.capabilities.canDownload ?? true,
    askedAtMs: by.askedAtMs,
    sharing: sharingOf(file, by),
  }
}

function sharingOf({ mimeType, version, permissions }: DriveFile, by: ListedBy): Sharing | null {
  if (!permissions || mimeType === FOLDER) return null
  const { askedAtMs, nowMs } = by
  return { serial: version, askedAtMs, atMs: nowMs, grantees: granteesOf(permissions) }
}

/** Whoever opens a shortcut wants what it leads to; whether they see that is Drive's decision. */
function urlOf({ shortcutDetails: shortcut, webViewLink }: DriveFile): string {
  if (!shortcut) return webViewLink ?? ''
  const url = new URL('https://drive.google.com/open')
  url.searchParams.set('id', shortcut.targetId)
  if (shortcut.targetResourceKey) url.searchParams.set('resourcekey', shortcut.targetResourceKey)
  return url.href
}

/**
 * Of bytes and name, which are what a reading depends on. Google's own version also grows by what nobody can see; native
 * documents have no checksum, so the time of their last change stands for it.
 */
export function versionOf(
  file: Pick<DriveFile, 'md5Checksum' | 'modifiedTime' | 'name' | 'mimeType'>,
): string {
  const content = file.md5Checksum ? `md5:${file.md5Checksum}` : `time:${file.modifiedTime ?? 0}`
  return createHash('sha256')
    .update(JSON.stringify([content, file.name, file.mimeType]))
    .digest('hex')
    .slice(0, 32)
}

const NATIVE = 'application/vnd.google-apps.'

/** What a native document is exported as: with its headings, tables and notes where there is a format that keeps them. */
const EXPORTS: Readonly<Record<string, readonly ExportFormat[]>> = {
  [`${NATIVE}document`]: [{ mimeType: 'text/html', extension: 'html' }],
  // As CSV Google gives the first sheet only: better than nothing where all of them are too large.
  [`${NATIVE}spreadsheet`]: [
    {
      mimeType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      extension: 'xlsx',
    },
    { mimeType: 'text/csv', extension: 'csv' },
  ],
  [`${NATIVE}presentation`]: [{ mimeType: 'text/plain', extension: 'txt' }],
}

export type ExportFormat = { mimeType: string; extension: string }

/** What to ask for, each where the one before is too large for Google. Undefined of a file with bytes of its own. */
export function exportsOf(mimeType: string): readonly ExportFormat[] | undefined {
  return EXPORTS[mimeType]
}

export type Unread = { code: string; reason: string }

/** Why a document is not even fetched. */
export function unreadOf(
  { name, mimeType, sizeBytes }: { name: string; mimeType: string; sizeBytes: number | null },
  limits: { documentBytesMax: number },
): Unread | undefined {
  if (mimeType === SHORTCUT) {
    return { code: 'shortcut', reason: 'a shortcut: what it leads to is a document of its own' }
  }
  if (EXPORTS[mimeType]) return undefined
  if (mimeType.startsWith(NATIVE)) {
    return { code: 'unsupported-type', reason: `Google exports no text of ${mimeType}` }
  }
  const type = documentType(mimeType, name)
  if (type === 'image' || type === 'media' || type === 'archive') {
    return { code: 'unsupported-type', reason: `there is no text in ${mimeType}` }
  }
  if (sizeBytes !== null && sizeBytes > limits.documentBytesMax) {
    return { code: 'too-large', reason: `it is larger than ${limits.documentBytesMax} bytes` }
  }
  return undefined
}

/** Codes that hold for one account only: somebody else may be given what this one is refused. */
const REFUSED_TO_SOME: readonly string[] = [
  'cannotDownloadFile',
  'insufficientFilePermissions',
  'appNotAuthorizedToFile',
  'domainPolicy',
  'teamDriveMembershipRequired',
  'forbidden',
  'not-found',
  'no-reader',
]

export function mayAnotherRead(code: string | null): boolean {
  return code !== null && REFUSED_TO_SOME.includes(code)
}

/** That it is listed for the account is what lets it see the file; permissions, where it may read them, tell through what. */
function grantOf(
  file: DriveFile,
  { account, nowMs, drive }: ListedBy,
): Pick<Grant, 'kind' | 'via' | 'expiresAtMs'> {
  const { canEdit, canComment } = file.capabilities
  const kind = file.ownedByMe ? 'owner' : canEdit ? 'writer' : canComment ? 'commenter' : 'reader'
  if (file.ownedByMe) return { kind, via: 'own', expiresAtMs: null }
  if (drive) return { kind, via: `a member of the shared drive ${drive.name}`, expiresAtMs: null }
  const given = (file.permissions ?? []).filter(({ deleted }) => !deleted)
  const own = given.find((one) => one.type === 'user' && one.emailAddress?.toLowerCase() === account)
  const others = given.filter((one) => one !== own && canGive(one, account))
  return { kind, via: viaText(own, others), expiresAtMs: endOf(own, others, nowMs) }
}

function canGive({ type, domain, allowFileDiscovery }: Permission, account: string): boolean {
  if (type === 'group') return true
  if (type === 'domain') return allowFileDiscovery === true && account.endsWith(`@${domain}`)
  return type === 'anyone' && allowFileDiscovery === true
}

function viaText(own: Permission | undefined, others: readonly Permission[]): string {
  if (own) {
    const isInherited = own.permissionDetails?.some(({ inherited }) => inherited) ?? false
    return isInherited ? 'shared with them through a folder' : 'shared with them'
  }
  const [first] = others
  if (first?.type === 'group') return `shared with the group ${first.emailAddress ?? ''}`.trimEnd()
  if (first?.type === 'domain') return `shared with everybody at ${first.domain}`
  if (first) return 'shared with everybody'
  return 'shared; Google does not say through what'
}

/**
 * When an access ends by itself: only where nothing else could keep it. An end that has passed although the file is still
 * listed says that something else did.
 */
function endOf(own: Permission | undefined, others: readonly Permission[], nowMs: number): number | null {
  const endMs = own?.expirationTime
  return endMs === undefined || endMs <= nowMs || others.length > 0 ? null : endMs
}

/** Changes with what the account can tell of who may see the folder and what is in it. */
function fingerprintOf(file: DriveFile): string {
  const permissions = (file.permissions ?? [])
    .map(({ id, type, role, emailAddress, domain, allowFileDiscovery, expirationTime }) =>
      JSON.stringify([id, type, role, emailAddress, domain, allowFileDiscovery, expirationTime]),
    )
    .sort()
  const { canListChildren, canEdit, canDownload } = file.capabilities
  const seen = [file.inheritedPermissionsDisabled, file.ownedByMe, canListChildren, canEdit, canDownload]
  return createHash('sha256')
    .update(JSON.stringify([seen, permissions]))
    .digest('hex')
    .slice(0, 16)
}
