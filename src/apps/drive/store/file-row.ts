/** A file's row, and what of it is told as a document of the index. */
import type { NewDocument } from '../../../search/contract.ts'
import { documentType } from '../../../search/document-type.ts'
import { SERVICE } from '../account.ts'
import type { FileState } from './schema.ts'

export type FileRow = {
  id: string
  name: string
  mime_type: string
  md5: string | null
  sha256: string | null
  size_bytes: number | null
  serial: number
  version: string
  created_at: number | null
  modified_at: number | null
  owner: string
  editor: string
  url: string
  is_folder: number
  resource_key: string | null
  state: FileState
  code: string | null
  reason: string | null
  read_version: string | null
  published: number
  place: string
  place_stale: number
  /** The counter at which the present version was first seen. Of a folder, its name is its version. */
  version_serial: number
  /** The same of the version that is published. */
  published_serial: number
  /** The highest counter at which another version than the present one was seen. */
  older_serial: number
  /** The counter at which it was first seen that what is published is not the present version; null while it is. */
  stale_serial: number | null
  /** The grantees of the newest list of permissions, as JSON; null where nobody was told one. */
  sharing: string | null
  sharing_serial: number | null
  sharing_at: number | null
}

/** What is told of it, besides what is in it. */
export function documentOf(
  row: FileRow,
  folders: readonly string[],
): Omit<NewDocument, 'content' | 'unread'> {
  return {
    source: SERVICE,
    ref: row.id,
    title: row.name,
    type: documentType(row.mime_type, row.name),
    mimeType: row.mime_type,
    owner: row.owner,
    people: row.editor === '' ? [] : [{ role: 'editor', name: row.editor }],
    folders,
    url: row.url,
    createdAtMs: numberOf(row.created_at),
    modifiedAtMs: numberOf(row.modified_at),
    sizeBytes: numberOf(row.size_bytes),
    version: row.version,
  }
}

function numberOf(value: number | null): number | null {
  return value === null ? null : Number(value)
}
