/**
 * Who may see what, in the app's own tables and in the index: written together, or not at all. All of it runs inside the
 * transaction that commits the page or the change which proved it.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { Grant, IndexWriter } from '../../../search/contract.ts'
import { SERVICE, streamOf } from '../account.ts'
import type { Listed } from '../plan.ts'
import { endOfAccess, type KeptSharing, type KnownFile, newestSharing, UNCONFIRMED } from '../sharing.ts'
import { wantBelow } from './feeds.ts'
import type { FileRow } from './file-row.ts'
import { describeMoved } from './places.ts'
import { rowsFrom, textsFrom } from './rows.ts'

export type AccessOf = { account: string; drive: string }

type AccessRow = {
  account: string
  drive: string
  file: string
  parent: string | null
  generation: number
  kind: Grant['kind']
  via: string
  expires_at: number | null
  is_folder: number
  fingerprint: string | null
  serial: number
  asked_at: number
  /** Of the first own look since the access was confirmed without a break. */
  since_serial: number
}

const FILE_COLUMNS = {
  id: 'text',
  name: 'text',
  mime_type: 'text',
  md5: 'text',
  sha256: 'text',
  size_bytes: 'bigint',
  serial: 'bigint',
  version: 'text',
  created_at: 'bigint',
  modified_at: 'bigint',
  owner: 'text',
  editor: 'text',
  url: 'text',
  is_folder: 'bigint',
  resource_key: 'text',
  state: 'text',
  version_serial: 'bigint',
} as const

const ACCESS_COLUMNS = {
  file: 'text',
  parent: 'text',
  kind: 'text',
  via: 'text',
  expires_at: 'bigint',
  can_download: 'bigint',
  is_folder: 'bigint',
  fingerprint: 'text',
  serial: 'bigint',
  asked_at: 'bigint',
  since_serial: 'bigint',
  moved: 'bigint',
} as const

const END_COLUMNS = { account: 'text', drive: 'text', file: 'text', expires_at: 'bigint' } as const

const SHARING_COLUMNS = {
  id: 'text',
  sharing: 'text',
  sharing_serial: 'bigint',
  sharing_at: 'bigint',
} as const

/**
 * Takes in what a page or a change shows: files by their newest look, access of this account. Documents that are in the
 * index already are granted at once; others when they are published. What the look proves of the access of others holds
 * from here on, before any newer version is read.
 */
export async function takeIn(
  tx: Tx,
  index: IndexWriter,
  of: AccessOf & { generation: number },
  listed: readonly Listed[],
): Promise<void> {
  if (listed.length === 0) return
  const seen = [...new Map(listed.map((one) => [one.id, one])).values()].sort((a, b) =>
    a.id < b.id ? -1 : 1,
  )
  const ids = JSON.stringify(seen.map(({ id }) => id))
  await putFiles(tx, seen)
  const known = await putSharing(tx, seen)
  const files = seen.map((one) => proven(of.account, one, known.get(one.id)))
  const before = new Map(
    (
      await tx.all<AccessRow & { name: string }>(
        `SELECT a.*, f.name FROM drive_access a JOIN drive_files f ON f.id = a.file
         WHERE a.account = ? AND a.drive = ? AND a.file IN (${textsFrom(tx)})`,
        [of.account, of.drive, ids],
      )
    ).map((row) => [row.file, row]),
  )
  await putAccess(tx, of, files, before)
  const changed = files.filter((one) => !one.isFolder && isOtherGrant(before.get(one.id), one))
  await grantAgain(
    tx,
    index,
    of.account,
    changed.map(({ id }) => id),
  )
  await endOthers(tx, index, of, known)
}

type StoredFile = KnownFile & { staleSerial: number | null }

/** `sinceSerial`: where the access begins with this look. Whether that was before what is stale, a late look cannot tell. */
type Proven = Listed & { sinceSerial: number }

/** The account's own look, by what is known of the file: somebody else's may be newer. */
function proven(account: string, one: Listed, known: StoredFile | undefined): Proven {
  if (!known) return { ...one, sinceSerial: one.serial }
  const { serial, grant } = one
  const endsAtMs = endOfAccess(
    { account, serial, askedAtMs: lookedAtMs(one), endsAtMs: grant.expiresAtMs },
    known,
  )
  const sinceSerial = Math.max(serial, known.staleSerial ?? 0)
  return { ...one, grant: { ...grant, expiresAtMs: endsAtMs }, sinceSerial }
}

/** A look that brought the list itself is as new as the list, whether that names the account as it is called here or not. */
function lookedAtMs({ sharing, askedAtMs }: Listed): number {
  return sharing?.atMs ?? askedAtMs
}

type SharingColumns = Pick<FileRow, 'sharing' | 'sharing_serial' | 'sharing_at'>

/** Keeps the newest lists of permissions, and answers what is known now of each document. The rows are locked. */
async function putSharing(tx: Tx, files: readonly Listed[]): Promise<Map<string, StoredFile>> {
  const documents = files.filter(({ isFolder }) => !isFolder)
  const rows = await tx.all<
    Pick<FileRow, 'id' | 'owner' | 'version_serial' | 'stale_serial' | keyof SharingColumns>
  >(
    `SELECT id, owner, version_serial, stale_serial, sharing, sharing_serial, sharing_at FROM drive_files
     WHERE id IN (${textsFrom(tx)})`,
    [JSON.stringify(documents.map(({ id }) => id))],
  )
  const seen = new Map(documents.map((one) => [one.id, one.sharing]))
  const news: object[] = []
  const known = new Map<string, StoredFile>()
  for (const row of rows) {
    const kept = keptSharing(row)
    const told = seen.get(row.id)
    const sharing = told ? newestSharing(kept, told) : kept
    const staleSerial = row.stale_serial === null ? null : Number(row.stale_serial)
    const versionSerial = Number(row.version_serial)
    known.set(row.id, { versionSerial, staleSerial, owner: row.owner, sharing })
    if (!sharing || sharing === kept) continue
    const { serial, atMs, grantees } = sharing
    news.push({ id: row.id, sharing: JSON.stringify(grantees), sharing_serial: serial, sharing_at: atMs })
  }
  if (news.length === 0) return known
  await tx.run(
    `UPDATE drive_files SET sharing = given.sharing, sharing_serial = given.sharing_serial,
       sharing_at = given.sharing_at FROM ${rowsFrom(tx, SHARING_COLUMNS)} WHERE given.id = drive_files.id`,
    [JSON.stringify(news)],
  )
  return known
}

function keptSharing({ sharing, sharing_serial, sharing_at }: SharingColumns): KeptSharing | null {
  if (sharing === null) return null
  const grantees = JSON.parse(sharing) as KeptSharing['grantees']
  return { serial: Number(sharing_serial), atMs: Number(sharing_at), grantees }
}

/** Ends what others have of these documents and is not confirmed any more. It begins anew only by their own looks. */
async function endOthers(
  tx: Tx,
  index: IndexWriter,
  { account, drive }: AccessOf,
  known: ReadonlyMap<string, KnownFile>,
): Promise<void> {
  const rows = await tx.all<AccessRow>(
    `SELECT a.* FROM drive_access a JOIN drive_files f ON f.id = a.file
     WHERE a.file IN (${textsFrom(tx)}) AND NOT (a.account = ? AND a.drive = ?)
       AND (a.expires_at IS NULL OR a.expires_at <> ${UNCONFIRMED})
       AND (a.serial < f.version_serial OR a.serial < f.sharing_serial
         OR (a.serial = f.sharing_serial AND a.asked_at < f.sharing_at))
     ORDER BY a.file, a.account, a.drive`,
    [JSON.stringify([...known.keys()]), account, drive],
  )
  const ends: object[] = []
  const ended = new Map<string, Set<string>>()
  for (const row of rows) {
    const was = row.expires_at === null ? null : Number(row.expires_at)
    const look = {
      account: row.account,
      serial: Number(row.serial),
      askedAtMs: Number(row.asked_at),
      endsAtMs: was,
    }
    const endsAtMs = endOfAccess(look, known.get(row.file)!)
    if (endsAtMs === was) continue
    ends.push({ account: row.account, drive: row.drive, file: row.file, expires_at: endsAtMs })
    ended.getOrInsertComputed(row.file, () => new Set()).add(row.account)
  }
  if (ends.length === 0) return
  await tx.run(
    `UPDATE drive_access SET expires_at = given.expires_at FROM ${rowsFrom(tx, END_COLUMNS)}
     WHERE given.account = drive_access.account AND given.drive = drive_access.drive
       AND given.file = drive_access.file`,
    [JSON.stringify(ends)],
  )
  // An account may see the document in another feed as well.
  const left = await grantsOf(tx, [...ended.keys()])
  const inIndex = [...ended].flatMap(([ref, accounts]) =>
    [...accounts].map((other) => ({
      ref,
      principal: streamOf(other),
      expiresAtMs: left.get(ref)!.get(other)!.expiresAtMs,
    })),
  )
  await index.expire(tx, SERVICE, inIndex)
}

async function putFiles(tx: Tx, files: readonly Listed[]): Promise<void> {
  const names = Object.keys(FILE_COLUMNS)
  const told = names.filter((name) => !['id', 'state', 'version_serial'].includes(name))
  const rows = files.map((one) => ({
    id: one.id,
    name: one.name,
    mime_type: one.mimeType,
    md5: one.md5,
    sha256: one.sha256,
    size_bytes: one.sizeBytes,
    serial: one.serial,
    version: one.version,
    created_at: one.createdAtMs,
    modified_at: one.modifiedAtMs,
    owner: one.owner,
    editor: one.editor,
    url: one.url,
    is_folder: one.isFolder ? 1 : 0,
    resource_key: one.resourceKey,
    state: one.isFolder ? 'indexed' : 'waiting',
    version_serial: one.serial,
  }))
  // Locks every row, also those that have been seen newer.
  await tx.run(
    `INSERT INTO drive_files(${names.join(', ')})
     SELECT ${names.join(', ')} FROM ${rowsFrom(tx, FILE_COLUMNS)} WHERE true ORDER BY id
     ON CONFLICT (id) DO UPDATE SET ${told.map((name) => `${name} = excluded.${name}`).join(', ')},
       state = CASE WHEN drive_files.version = excluded.version THEN drive_files.state ELSE excluded.state END,
       version_serial = CASE WHEN drive_files.version = excluded.version THEN drive_files.version_serial
         ELSE excluded.version_serial END,
       stale_serial = CASE WHEN drive_files.published = 1 AND drive_files.version <> excluded.version
         THEN COALESCE(drive_files.stale_serial, excluded.serial) ELSE drive_files.stale_serial END,
       place_stale = CASE WHEN drive_files.published = 1 AND (drive_files.modified_at <> excluded.modified_at
         OR drive_files.owner <> excluded.owner) THEN 1 ELSE drive_files.place_stale END
     WHERE excluded.serial >= drive_files.serial`,
    [JSON.stringify(rows)],
  )
}

async function putAccess(
  tx: Tx,
  { account, drive, generation }: AccessOf & { generation: number },
  files: readonly Proven[],
  before: ReadonlyMap<string, AccessRow & { name: string }>,
): Promise<void> {
  const rows = files.map((one) => {
    const was = before.get(one.id)
    const isMoved = one.isFolder && (was === undefined || was.parent !== one.parent || was.name !== one.name)
    return {
      file: one.id,
      parent: one.parent,
      kind: one.grant.kind,
      via: one.grant.via,
      expires_at: one.grant.expiresAtMs,
      can_download: one.canDownload ? 1 : 0,
      is_folder: one.isFolder ? 1 : 0,
      fingerprint: one.fingerprint,
      serial: one.serial,
      asked_at: lookedAtMs(one),
      since_serial: one.sinceSerial,
      moved: isMoved ? 1 : 0,
    }
  })
  const names = Object.keys(ACCESS_COLUMNS)
  const kept = names.filter((name) => !['file', 'moved', 'since_serial'].includes(name))
  await tx.run(
    `INSERT INTO drive_access(account, drive, generation, ${names.join(', ')})
     SELECT ?, ?, CAST(? AS BIGINT), ${names.join(', ')} FROM ${rowsFrom(tx, ACCESS_COLUMNS)} WHERE true
     ON CONFLICT (account, drive, file) DO UPDATE SET generation = excluded.generation,
       ${kept.map((name) => `${name} = excluded.${name}`).join(', ')},
       since_serial = CASE WHEN drive_access.expires_at <= excluded.asked_at THEN excluded.since_serial
         ELSE drive_access.since_serial END,
       moved = CASE WHEN excluded.moved = 1 THEN 1 ELSE drive_access.moved END`,
    [account, drive, generation, JSON.stringify(rows)],
  )
  // A document that lies elsewhere now is told anew.
  const elsewhere = files.filter((one) => {
    const was = before.get(one.id)
    return !one.isFolder && was !== undefined && was.parent !== one.parent
  })
  if (elsewhere.length === 0) return
  await tx.run(`UPDATE drive_files SET place_stale = 1 WHERE published = 1 AND id IN (${textsFrom(tx)})`, [
    JSON.stringify(elsewhere.map(({ id }) => id)),
  ])
}

function isOtherGrant(was: AccessRow | undefined, { grant }: Listed): boolean {
  if (!was) return true
  const endsAtMs = was.expires_at === null ? null : Number(was.expires_at)
  return was.kind !== grant.kind || was.via !== grant.via || endsAtMs !== grant.expiresAtMs
}

/** Writes the account's access to these documents as it is now, where they are in the index. */
async function grantAgain(
  tx: Tx,
  index: IndexWriter,
  account: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  const published = await tx.all<{ id: string }>(
    `SELECT id FROM drive_files WHERE published = 1 AND id IN (${textsFrom(tx)}) ORDER BY id`,
    [JSON.stringify(ids)],
  )
  if (published.length === 0) return
  const there = published.map(({ id }) => id)
  const grants = await grantsOf(tx, there)
  for (const id of there) {
    const grant = grants.get(id)?.get(account)
    if (grant) await index.grant(tx, { source: SERVICE, ref: id }, streamOf(account), grant)
  }
  // Names of folders that the new reader does not see must not be told any more.
  await describeMoved(tx, index, there)
}

/**
 * By file and account: what all of the account's listings together prove. While a newer version is still to be read, what
 * is published is only for those who had access before it: others were never let see it.
 */
export async function grantsOf(
  tx: Tx,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, Grant>>> {
  const rows = await tx.all<AccessRow & { is_early: number }>(
    `SELECT a.*, CASE WHEN a.since_serial >= f.stale_serial THEN 1 ELSE 0 END AS is_early
     FROM drive_access a JOIN drive_files f ON f.id = a.file
     WHERE a.file IN (${textsFrom(tx)}) ORDER BY a.file, a.account, a.drive`,
    [JSON.stringify(ids)],
  )
  const grants = new Map<string, Map<string, Grant>>()
  for (const row of rows) {
    const byAccount = grants.getOrInsertComputed(row.file, () => new Map())
    const known = byAccount.get(row.account)
    const grant = row.is_early ? { ...grantOfRow(row), expiresAtMs: UNCONFIRMED } : grantOfRow(row)
    byAccount.set(row.account, known ? joined(known, grant) : grant)
  }
  return grants
}

const KINDS: readonly Grant['kind'][] = ['reader', 'commenter', 'writer', 'owner']

function grantOfRow({ kind, via, generation, expires_at }: AccessRow): Grant {
  return {
    kind,
    via,
    generation: Number(generation),
    expiresAtMs: expires_at === null ? null : Number(expires_at),
  }
}

/** Two ways to the same document. */
function joined(one: Grant, other: Grant): Grant {
  const [stronger, weaker] = KINDS.indexOf(other.kind) > KINDS.indexOf(one.kind) ? [other, one] : [one, other]
  const isEndless = one.expiresAtMs === null || other.expiresAtMs === null
  return {
    kind: stronger.kind,
    via: stronger.via === weaker.via ? stronger.via : `${stronger.via}; ${weaker.via}`,
    generation: Math.max(one.generation, other.generation),
    expiresAtMs: isEndless ? null : Math.max(one.expiresAtMs!, other.expiresAtMs!),
  }
}

/**
 * Takes away what one listing of an account had. A document goes with the last that could see it, and its row with it.
 * Answers how many documents the account does not see any more.
 */
export async function takeAway(
  tx: Tx,
  index: IndexWriter,
  { account, drive }: AccessOf,
  ids: readonly string[],
): Promise<number> {
  if (ids.length === 0) return 0
  const given = JSON.stringify([...new Set(ids)].sort())
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  const files = await tx.all<{ id: string; published: number; is_folder: number }>(
    `SELECT id, published, is_folder FROM drive_files WHERE id IN (${textsFrom(tx)}) ORDER BY id${lock}`,
    [given],
  )
  // Before the rows go that tell what lies in them: somebody else may see it, and hear nothing of what happened above.
  await wantBelow(
    tx,
    { account, drive },
    files.filter(({ is_folder }) => is_folder).map(({ id }) => id),
  )
  const taken = await tx.all<{ file: string }>(
    `DELETE FROM drive_access WHERE account = ? AND drive = ? AND file IN (${textsFrom(tx)}) RETURNING file`,
    [account, drive, given],
  )
  if (taken.length === 0) return 0
  const gone = new Set(taken.map(({ file }) => file))
  const left = await grantsOf(tx, [...gone])
  let revoked = 0
  for (const { id, published, is_folder } of files) {
    if (!gone.has(id)) continue
    const grant = left.get(id)?.get(account)
    if (!is_folder && !grant) revoked += 1
    if (!published) continue
    if (grant) await index.grant(tx, { source: SERVICE, ref: id }, streamOf(account), grant)
    else await index.revoke(tx, { source: SERVICE, ref: id }, streamOf(account))
  }
  await tx.run(
    `DELETE FROM drive_files WHERE id IN (${textsFrom(tx)})
       AND NOT EXISTS (SELECT 1 FROM drive_access WHERE drive_access.file = drive_files.id)`,
    [given],
  )
  const folders = files.filter(({ id, is_folder }) => is_folder && gone.has(id)).map(({ id }) => id)
  if (folders.length > 0) await staleBelow(tx, account, folders)
  return revoked
}

/** Nobody finds what lies in the trash, whoever saw it there first. */
export async function takeFromAll(tx: Tx, index: IndexWriter, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const rows = await tx.all<AccessOf & { file: string }>(
    `SELECT account, drive, file FROM drive_access WHERE file IN (${textsFrom(tx)}) ORDER BY file, account, drive`,
    [JSON.stringify([...ids].sort())],
  )
  for (const { account, drive, file } of rows) await takeAway(tx, index, { account, drive }, [file])
}

/** The name of a folder that is not seen any more is told of no document in it. */
async function staleBelow(tx: Tx, account: string, folders: readonly string[]): Promise<void> {
  await tx.run(
    `UPDATE drive_files SET place_stale = 1 WHERE published = 1 AND id IN (
       SELECT file FROM drive_access WHERE account = ? AND parent IN (${textsFrom(tx)}))`,
    [account, JSON.stringify(folders)],
  )
}

/** What older listings of a feed had and its newest has not; at most so many at a time, folders before what is in them. */
export async function staleAccess(
  tx: Tx,
  { account, drive, before, limit }: AccessOf & { before: number; limit: number },
): Promise<string[]> {
  const rows = await tx.all<{ file: string }>(
    `SELECT file FROM drive_access WHERE account = ? AND drive = ? AND generation < ?
     ORDER BY is_folder DESC, file LIMIT ${limit}`,
    [account, drive, before],
  )
  return rows.map(({ file }) => file)
}
