/** The two versions of a conflict: where each is now, and what can be shown of it. */
import type { Root } from '../../apps/file-sync/local/root.ts'
import { browsedNode } from '../../apps/file-sync/store/browse.ts'
import type { ConflictRow, DriveRow } from '../../apps/file-sync/store/contract.ts'
import { asTidemarkError } from '../../errors.ts'
import { formatBytes } from '../../format.ts'
import { redactText } from '../../redaction.ts'
import { notFound } from '../problem.ts'
import type { Services } from '../services.ts'
import { rootOf } from './inputs.ts'
import {
  type Beginning,
  beginningHere,
  beginningThere,
  IMAGE_BYTES_MAX,
  type ImageType,
  imageTypeOf,
  TEXT_BYTES_MAX,
  textOf,
} from './preview.ts'
import type { ConflictSide } from './schemas.ts'

export type SideName = 'here' | 'there'

/** Where a version is: a path in the folder, an item of OneDrive, or nowhere that is known. */
type Place =
  | { in: 'folder'; names: string[] }
  | { in: 'onedrive'; itemId: string; path: string | null }
  | undefined

export type SideInput = { row: DriveRow; conflict: ConflictRow; side: SideName; signal: AbortSignal }

/**
 * Nobody has decided: the folder has one version and OneDrive the other. Both were kept: the copy is the folder's,
 * and OneDrive's has the name, so it is in the folder as well. One was kept: the other is in the trash or among
 * OneDrive's own versions, and there is nothing to compare with.
 */
async function placeOf({ ledger, files }: Services, { row, conflict, side }: SideInput): Promise<Place> {
  const { copyPath, node, path, state } = conflict
  if (copyPath !== null) {
    return { in: 'folder', names: (side === 'here' ? copyPath : path).split('/') }
  }
  const known = await browsedNode(ledger, row.name, node)
  const local = known?.local && !known.local.isMissing ? known.local : undefined
  const remote = known?.remote && !known.remote.isDeleted ? known.remote : undefined
  if (side === 'here') {
    const names = local && (await files.store.localPath(row.name, local.id))
    return names && { in: 'folder', names }
  }
  return remote && state === 'open' ? { in: 'onedrive', itemId: remote.itemId, path: null } : undefined
}

export async function conflictSide(services: Services, input: SideInput): Promise<ConflictSide> {
  const place = await placeOf(services, input)
  const path = place?.in === 'folder' ? place.names.join('/') : null
  const nothing = {
    path,
    bytes: null,
    modifiedMs: null,
    preview: 'none',
    text: null,
    isWhole: false,
  } as const
  if (!place) return { ...nothing, note: GONE[input.side] }
  try {
    const found = await beginningOf(services, input, place, TEXT_BYTES_MAX)
    return found ? { path, ...viewOf(found) } : { ...nothing, note: GONE[input.side] }
  } catch (thrown) {
    // The facts and the decision are worth having also where a version cannot be read.
    const error = asTidemarkError(thrown)
    const why = error.kind === 'bug' ? 'It cannot be read just now.' : redactText(error.message)
    return { ...nothing, note: why }
  }
}

const GONE: Record<SideName, string> = {
  here: 'It is not in the folder any more.',
  there: 'It is not in OneDrive any more.',
}

/** For the picture itself: only what is one, and whole. */
export async function conflictImage(
  services: Services,
  input: SideInput,
): Promise<{ bytes: Buffer; type: ImageType }> {
  const place = await placeOf(services, input)
  const found = place && (await beginningOf(services, input, place, IMAGE_BYTES_MAX))
  const type = found && imageTypeOf(found.bytes)
  if (found && type && found.size <= IMAGE_BYTES_MAX) return { bytes: found.bytes, type }
  throw notFound('There is no picture to show of this version.', { code: 'image-missing' })
}

async function beginningOf(
  services: Services,
  { row, conflict, signal }: SideInput,
  place: NonNullable<Place>,
  bytesMax: number,
): Promise<Beginning | undefined> {
  if (place.in === 'folder') return beginningHere(rootOf(row) satisfies Root, place.names, bytesMax)
  const { client, driveId } = await services.files.drives.get(row.name)
  const known = await browsedNode(services.ledger, row.name, conflict.node)
  const { size = 0, modifiedMs = null } = known?.remote ?? {}
  const bytes = await beginningThere(client, { driveId, itemId: place.itemId }, { bytesMax, signal })
  return { bytes, size: Math.max(size, bytes.length), modifiedMs }
}

function viewOf({ bytes, size, modifiedMs }: Beginning): Omit<ConflictSide, 'path'> {
  const facts = { bytes: size, modifiedMs, text: null, isWhole: false, note: null }
  if (imageTypeOf(bytes)) {
    if (size <= IMAGE_BYTES_MAX) return { ...facts, preview: 'image' }
    return { ...facts, preview: 'none', note: `The picture is larger than ${formatBytes(IMAGE_BYTES_MAX)}.` }
  }
  const text = textOf(bytes)
  if (text === undefined) return { ...facts, preview: 'none', note: 'It is neither text nor a picture.' }
  return { ...facts, preview: 'text', text, isWhole: bytes.length >= size }
}
