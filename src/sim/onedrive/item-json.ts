/** Items as Microsoft Graph shows them, with the quirks that are on. */
import type { Drive } from './drive.ts'
import { type Item, itemPath, type Remote, sizeOf } from './item.ts'
import { isChosen, type Quirks } from './quirks.ts'

export type ItemJson = Record<string, unknown>

export type ShowOptions = {
  /** Delta gives a path of the parent where `deltaPaths` is on only. */
  isDelta?: boolean
  isDeleted?: boolean
  isStale?: boolean
  /** A listing, where some names come encoded by a quirk. */
  isRow?: boolean
  downloadUrl?: string | undefined
}

const YEAR_ONE = '0001-01-01T00:00:00Z'
const HEIC_SIZE_SHARE = 0.7
const MIME_TYPES: Record<string, string> = {
  txt: 'text/plain',
  md: 'text/markdown',
  pdf: 'application/pdf',
  jpg: 'image/jpeg',
  png: 'image/png',
  heic: 'image/heic',
  json: 'application/json',
  zip: 'application/zip',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
}

export function eTagOf(drive: Drive, item: Item): string {
  return drive.type === 'business' ? `"{${item.id}},${item.eVersion}"` : `a${item.id}.${item.eVersion}`
}

export function cTagOf(drive: Drive, item: Item): string {
  return drive.type === 'business' ? `"c:{${item.id}},${item.cVersion}"` : `c${item.id}.${item.cVersion}`
}

export function showItem(drive: Drive, item: Item, quirks: Quirks, options: ShowOptions = {}): ItemJson {
  if (options.isDeleted) return showDeleted(drive, item, quirks)
  const json: ItemJson = {
    id: item.id,
    name: shownName(item, quirks, options),
    size: shownSize(item, quirks),
    eTag: options.isStale ? `${eTagOf(drive, item)}-before` : eTagOf(drive, item),
    ...(isCTagShown(drive, item, quirks) ? { cTag: cTagOf(drive, item) } : {}),
    createdDateTime: time(item.createdMs, quirks),
    lastModifiedDateTime: time(item.modifiedMs, quirks),
    webUrl: `https://onedrive.example/${encodeURIComponent(item.id)}`,
    parentReference: parentReference(drive, item, quirks, options),
    fileSystemInfo: fileTimes(item, quirks),
  }
  if (item.kind === 'file') json.file = fileFacet(item, quirks)
  else if (item.remote) json.remoteItem = remoteItem(item.remote)
  else if (item.kind === 'package') json.package = { type: 'oneNote' }
  else json.folder = { childCount: item.children!.size }
  if (!item.parent) json.root = {}
  if (item.isShared) json.shared = sharedFacet(drive)
  if (item.specialName !== undefined) json.specialFolder = { name: item.specialName }
  if (options.downloadUrl !== undefined) json['@microsoft.graph.downloadUrl'] = options.downloadUrl
  return json
}

/** What is said of something in another drive. */
export function remoteItem({ drive, item }: Remote): ItemJson {
  return {
    id: item.id,
    name: item.name,
    size: sizeOf(item),
    webUrl: `https://onedrive.example/${encodeURIComponent(item.id)}`,
    parentReference: { driveId: drive.id, driveType: drive.type },
    shared: sharedFacet(drive),
    ...(item.kind === 'file' ? { file: {} } : { folder: { childCount: item.children!.size } }),
  }
}

function sharedFacet({ owner }: Pick<Drive, 'owner'>): ItemJson {
  const identity = { user: { displayName: owner.split('@')[0], email: owner } }
  return { scope: 'users', owner: identity, sharedBy: identity }
}

export function showDriveId(drive: Drive, quirks: Quirks, item?: Item): string {
  let id = drive.id
  if (quirks.driveIdLosesZero && (!item || isChosen(item, 2, 1))) id = id.replace(/^0/, '')
  if (quirks.driveIdChangesCase && (!item || isChosen(item, 2, 2))) {
    // The part after b! of a Business drive tells apart what only differs in case.
    id = id.startsWith('b!') ? id.replace('b!', 'B!') : id.toUpperCase()
  }
  return id
}

function showDeleted(drive: Drive, item: Item, quirks: Quirks): ItemJson {
  const json: ItemJson = { id: item.id }
  if (!quirks.deletedNameMissing) json.name = item.name
  if (!quirks.deletedSizeMissing) json.size = sizeOf(item)
  if (item.parent) {
    json.parentReference = {
      driveId: showDriveId(drive, quirks, item),
      driveType: drive.type,
      id: item.parent.id,
    }
  }
  if (item.kind === 'folder') json.folder = {}
  if (item.kind === 'file') {
    json.file = quirks.hashBogusOnDeleted ? { hashes: { quickXorHash: `${'A'.repeat(27)}=` } } : {}
  }
  json.deleted = { state: 'deleted' }
  return json
}

function shownName(item: Item, quirks: Quirks, { isRow, isStale }: ShowOptions): string {
  const name = isStale ? (item.nameBefore ?? item.name) : item.name
  return quirks.namesEncoded && isRow && item.parent ? encodeURIComponent(name) : name
}

/** A converted picture is announced with another size than it is delivered with. */
function shownSize(item: Item, quirks: Quirks): number {
  const size = sizeOf(item)
  return quirks.heicSizeWrong && item.key.endsWith('.heic') ? Math.floor(size * HEIC_SIZE_SHARE) : size
}

function isCTagShown(drive: Drive, item: Item, quirks: Quirks): boolean {
  if (quirks.cTagMissing) return false
  return drive.type === 'personal' || item.kind === 'file'
}

function parentReference(drive: Drive, item: Item, quirks: Quirks, options: ShowOptions): ItemJson {
  const reference: ItemJson = { driveId: showDriveId(drive, quirks, item), driveType: drive.type }
  const { parent } = item
  // The root is in nothing, yet it says in which drive it is.
  if (!parent) return reference
  reference.id = parent.id
  if (quirks.pathMissing || (options.isDelta && !quirks.deltaPaths)) return reference
  const path = itemPath(parent)
  const encoded = path === '' ? '' : `/${path.split('/').map(encodeURIComponent).join('/')}`
  reference.path = `/drives/${drive.id}/root:${encoded}`
  return reference
}

function fileFacet(item: Item, quirks: Quirks): ItemJson {
  const { size, hash } = item.content!
  const dot = item.key.lastIndexOf('.')
  const mimeType = MIME_TYPES[item.key.slice(dot + 1)] ?? 'application/octet-stream'
  const isMissing = (quirks.hashMissing && isChosen(item, 3)) || (quirks.hashMissingOnEmpty && size === 0)
  return isMissing ? { mimeType } : { mimeType, hashes: { quickXorHash: hash } }
}

function fileTimes(item: Item, quirks: Quirks): ItemJson {
  if (quirks.yearOneDates && isChosen(item, 3, 3)) {
    return { createdDateTime: YEAR_ONE, lastModifiedDateTime: YEAR_ONE }
  }
  return {
    createdDateTime: time(item.fsCreatedMs, quirks),
    lastModifiedDateTime: time(item.fsModifiedMs, quirks),
  }
}

function time(ms: number, quirks: Quirks): string {
  const text = new Date(ms).toISOString()
  return quirks.wholeSecondTimes ? `${text.slice(0, 19)}Z` : text
}
