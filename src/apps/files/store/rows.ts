/** Rows as the database gives them, and back. */
import type { Tx, Value } from '../../../ledger/contract.ts'
import { type BaseRow, type LocalRow, type NodeKey, nameKey, type RemoteRow } from '../trees.ts'
import type { ConflictRow } from './contract.ts'

type Raw = Record<string, Value>

const text = (value: Value | undefined): string => String(value ?? '')
const textOrNull = (value: Value | undefined): string | null => (value == null ? null : String(value))
const numberOrNull = (value: Value | undefined): number | null => (value == null ? null : Number(value))

export const REMOTE_COLUMNS =
  'item_id, parent_id, name, type, size, hash, etag, ctag, modified_ms, is_deleted' as const
export const BASE_COLUMNS =
  'item_id, parent_id, name, type, hash, size, remote_hash, remote_size, etag, ctag, sha256, is_unsure' as const
export const LOCAL_COLUMNS =
  'id, parent_id, name, type, dev, ino, birth_ns, mtime_ns, size, hash, item_id, is_missing, unreadable, ctime_ns, sha256' as const

export function toRemoteRow(raw: Raw): RemoteRow {
  return {
    itemId: text(raw.item_id),
    parentId: textOrNull(raw.parent_id),
    name: text(raw.name),
    type: raw.type as RemoteRow['type'],
    size: Number(raw.size),
    hash: textOrNull(raw.hash),
    eTag: textOrNull(raw.etag),
    cTag: textOrNull(raw.ctag),
    modifiedMs: numberOrNull(raw.modified_ms),
    isDeleted: Number(raw.is_deleted) !== 0,
  }
}

export function toBaseRow(raw: Raw): BaseRow {
  return {
    itemId: text(raw.item_id),
    parentId: text(raw.parent_id),
    name: text(raw.name),
    type: raw.type as BaseRow['type'],
    hash: textOrNull(raw.hash),
    size: Number(raw.size),
    remoteHash: textOrNull(raw.remote_hash),
    remoteSize: Number(raw.remote_size),
    eTag: textOrNull(raw.etag),
    cTag: textOrNull(raw.ctag),
    sha256: textOrNull(raw.sha256),
    isUnsure: Number(raw.is_unsure) === 1,
  }
}

export function toLocalRow(raw: Raw): LocalRow {
  return {
    id: Number(raw.id),
    parentId: numberOrNull(raw.parent_id),
    name: text(raw.name),
    type: raw.type as LocalRow['type'],
    dev: text(raw.dev),
    ino: text(raw.ino),
    birthNs: text(raw.birth_ns),
    mtimeNs: text(raw.mtime_ns),
    ctimeNs: text(raw.ctime_ns),
    size: Number(raw.size),
    hash: textOrNull(raw.hash),
    sha256: textOrNull(raw.sha256),
    itemId: textOrNull(raw.item_id),
    isMissing: Number(raw.is_missing) === 1,
    unreadable: textOrNull(raw.unreadable),
  }
}

export function toConflictRow(raw: Raw): ConflictRow {
  return {
    id: Number(raw.id),
    kind: raw.kind as ConflictRow['kind'],
    path: text(raw.path),
    node: raw.node as NodeKey,
    copyPath: textOrNull(raw.copy_path),
    localHash: textOrNull(raw.local_hash),
    remoteHash: textOrNull(raw.remote_hash),
    at: Number(raw.at),
    state: raw.state as ConflictRow['state'],
    resolvedAt: numberOrNull(raw.resolved_at),
  }
}

export async function putRemote(tx: Tx, pair: string, row: RemoteRow, generation: number): Promise<void> {
  await tx.run(
    `INSERT INTO file_remote(drive, item_id, parent_id, name, name_key, type, size, hash, etag, ctag, modified_ms, is_deleted, generation)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (drive, item_id) DO UPDATE SET parent_id = excluded.parent_id, name = excluded.name,
       name_key = excluded.name_key, type = excluded.type, size = excluded.size, hash = excluded.hash,
       etag = excluded.etag, ctag = excluded.ctag, modified_ms = excluded.modified_ms,
       is_deleted = excluded.is_deleted, generation = excluded.generation`,
    [
      pair,
      row.itemId,
      row.parentId,
      row.name,
      nameKey(row.name),
      row.type,
      row.size,
      row.hash,
      row.eTag,
      row.cTag,
      row.modifiedMs,
      row.isDeleted ? 1 : 0,
      generation,
    ],
  )
}

export async function putBase(tx: Tx, pair: string, row: BaseRow): Promise<void> {
  await tx.run(
    `INSERT INTO file_base(drive, ${BASE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (drive, item_id) DO UPDATE SET parent_id = excluded.parent_id, name = excluded.name,
       type = excluded.type, hash = excluded.hash, size = excluded.size, remote_hash = excluded.remote_hash,
       remote_size = excluded.remote_size, etag = excluded.etag, ctag = excluded.ctag, sha256 = excluded.sha256,
       is_unsure = excluded.is_unsure`,
    [
      pair,
      row.itemId,
      row.parentId,
      row.name,
      row.type,
      row.hash,
      row.size,
      row.remoteHash,
      row.remoteSize,
      row.eTag,
      row.cTag,
      row.sha256,
      row.isUnsure ? 1 : 0,
    ],
  )
}

/** The whole row; whoever had its place without being there any more keeps it. */
export async function putLocal(tx: Tx, pair: string, row: LocalRow): Promise<void> {
  await tx.run(
    `INSERT INTO file_local(drive, ${LOCAL_COLUMNS}, name_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (drive, id) DO UPDATE SET parent_id = excluded.parent_id, name = excluded.name,
       name_key = excluded.name_key, type = excluded.type, dev = excluded.dev, ino = excluded.ino,
       birth_ns = excluded.birth_ns, mtime_ns = excluded.mtime_ns, size = excluded.size, hash = excluded.hash,
       item_id = excluded.item_id, is_missing = excluded.is_missing, unreadable = excluded.unreadable,
       ctime_ns = excluded.ctime_ns, sha256 = excluded.sha256`,
    [
      pair,
      row.id,
      row.parentId,
      row.name,
      row.type,
      row.dev,
      row.ino,
      row.birthNs,
      row.mtimeNs,
      row.size,
      row.hash,
      row.itemId,
      row.isMissing ? 1 : 0,
      row.unreadable,
      row.ctimeNs,
      row.sha256,
      nameKey(row.name),
    ],
  )
}

/** A list as one parameter: `… IN (${listParameter(tx)})`. */
export function listParameter(tx: Tx): string {
  return tx.dialect === 'sqlite'
    ? `SELECT value FROM json_each(?)`
    : `SELECT value FROM json_array_elements_text(?::json)`
}

/** The same for numbers. */
export function numberListParameter(tx: Tx): string {
  return tx.dialect === 'sqlite'
    ? `SELECT value FROM json_each(?)`
    : `SELECT value::bigint FROM json_array_elements_text(?::json)`
}
