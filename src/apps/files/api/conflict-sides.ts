/** The two versions of a conflict: where each is now, and what can be shown of it. */

import { notFound } from '../../../app/problem.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { redactText } from '../../../base/redaction.ts'
import type { Root } from '../local/root.ts'
import { type BrowsedNode, browsedNode } from '../store/browse.ts'
import type { ConflictRow, FolderPairRow } from '../store/contract.ts'
import { itemNode, type RemoteRow } from '../trees.ts'
import { rootOf } from './inputs.ts'
import {
  type Beginning,
  beginningHere,
  beginningThere,
  decodedText,
  IMAGE_BYTES_MAX,
  type ImageType,
  imageTypeOf,
  TEXT_BYTES_MAX,
} from './preview.ts'
import type { FilesServices } from './route.ts'
import type { ConflictSide } from './schemas.ts'

export type SideName = 'here' | 'there'

/** Where a version is: a path in the folder, an item of OneDrive, or nowhere that is known. */
type Place =
  | { in: 'folder'; names: string[] }
  | { in: 'onedrive'; remote: RemoteRow; path: string }
  | undefined

export type SideInput = { row: FolderPairRow; conflict: ConflictRow; side: SideName; signal: AbortSignal }

/**
 * What each side has now, decided or not: the file in the folder, and its item in OneDrive. Where both were kept, the
 * copy is the folder's, and the item OneDrive's, before as well as after it came here under the name. Only where the
 * copy went on with the item itself is OneDrive's to be found by the name alone.
 */
async function sidePlace(services: FilesServices, { row, conflict, side }: SideInput): Promise<Place> {
  const { files } = services
  const { copyPath, path } = conflict
  if (side === 'here' && copyPath !== null) return { in: 'folder', names: copyPath.split('/') }
  const known = await itemOf(services, row, conflict)
  const local = known?.local && !known.local.isMissing ? known.local : undefined
  const names = local && (await files.store.localPath(row.name, local.id))
  if (side === 'here') return names && { in: 'folder', names }
  const isCopy = copyPath !== null && (known?.remote === undefined || names?.join('/') === copyPath)
  if (isCopy) return { in: 'folder', names: path.split('/') }
  const remote = known?.remote?.isDeleted ? undefined : known?.remote
  return (
    remote && {
      in: 'onedrive',
      remote,
      path: await files.store.pathOfNode(row.name, itemNode(remote.itemId)),
    }
  )
}

/** With its item, also where that became known only after the conflict was met. */
async function itemOf(
  { ledger }: FilesServices,
  { name }: FolderPairRow,
  { node, copyPath }: ConflictRow,
): Promise<BrowsedNode | undefined> {
  const known = await browsedNode(ledger, name, node)
  const itemId = known?.local?.itemId
  if (known?.remote || !itemId || copyPath !== null) return known
  return (await browsedNode(ledger, name, itemNode(itemId))) ?? known
}

export async function conflictSide(services: FilesServices, input: SideInput): Promise<ConflictSide> {
  const place = await sidePlace(services, input)
  const path = place === undefined ? null : place.in === 'folder' ? place.names.join('/') : place.path
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
    return found ? { path, ...sideView(found) } : { ...nothing, note: GONE.here }
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
  services: FilesServices,
  input: SideInput,
): Promise<{ bytes: Buffer; type: ImageType }> {
  const place = await sidePlace(services, input)
  const found = place && (await beginningOf(services, input, place, IMAGE_BYTES_MAX))
  const type = found && imageTypeOf(found.bytes)
  if (found && type && found.size <= IMAGE_BYTES_MAX) return { bytes: found.bytes, type }
  throw notFound('There is no picture to show of this version.', { code: 'image-missing' })
}

async function beginningOf(
  services: FilesServices,
  { row, signal }: SideInput,
  place: NonNullable<Place>,
  bytesMax: number,
): Promise<Beginning | undefined> {
  if (place.in === 'folder') return beginningHere(rootOf(row) satisfies Root, place.names, bytesMax)
  const { client, driveId } = await services.files.pairs.get(row.name)
  const { itemId, size, modifiedMs } = place.remote
  const bytes = await beginningThere(client, { driveId, itemId }, { bytesMax, signal })
  return { bytes, size: Math.max(size, bytes.length), modifiedMs }
}

function sideView({ bytes, size, modifiedMs }: Beginning): Omit<ConflictSide, 'path'> {
  const facts = { bytes: size, modifiedMs, text: null, isWhole: false, note: null }
  if (imageTypeOf(bytes)) {
    if (size <= IMAGE_BYTES_MAX) return { ...facts, preview: 'image' }
    return { ...facts, preview: 'none', note: `The picture is larger than ${formatBytes(IMAGE_BYTES_MAX)}.` }
  }
  const text = decodedText(bytes)
  if (text === undefined) return { ...facts, preview: 'none', note: 'It is neither text nor a picture.' }
  return { ...facts, preview: 'text', text, isWhole: bytes.length >= size }
}
