/**
 * Who may see what, in the app's own tables and in the index: written together, or not at all. All of it runs inside the
 * transaction that commits the page or the change which proved it.
 */
import { TidemarkError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Grant, IndexWriter } from '../../../search/contract.ts'
import { SERVICE, streamOf } from '../account.ts'
import type { Listed } from '../plan.ts'
import {
  confirmedUntil,
  endOfAccess,
  type KeptSharing,
  type KnownFile,
  newestSharing,
  UNCONFIRMED,
  UNLISTED,
} from '../sharing.ts'
import { wantBelow } from './feeds.ts'
import type { FileRow } from './file-row.ts'
import { describeMoved } from './places.ts'
import { rowsFrom, textsFrom } from './rows.ts'
import { EXPIRED_MAX } from './tables.ts'

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
  /** Of the first own look since when the account has been let see whatever was published meanwhile. */
  since_serial: number
}

type KnownAccess = AccessRow & { version_serial: number }

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

const END_COLUMNS = {
  account: 'text',
  drive: 'text',
  file: 'text',
  expires_at: 'bigint',
  since_serial: 'bigint',
} as const

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
  const before = new Map(
    (
      await tx.all<KnownAccess>(
        `SELECT a.*, f.version_serial FROM drive_access a JOIN drive_files f ON f.id = a.file
         WHERE a.account = ? AND a.drive = ? AND a.file IN (${textsFrom(tx)})`,
        [of.account, of.drive, ids],
      )
    ).map((row) => [row.file, row]),
  )
  const files = seen.map((one) => proven(of.account, one, known.get(one.id), before.get(one.id)))
  await putAccess(tx, of, files, before)
  const changed = files.filter((one) => !one.isFolder && isOtherGrant(before.get(one.id), one))
  await grantAgain(
    tx,
    index,
    of.account,
    changed.map(({ id }) => id),
  )
  await endOthers(tx, index, of, known)
  await readForEarly(tx, ids)
}

type StoredFile = KnownFile & { publishedSerial: number; staleSerial: number | null }

type Proven = Listed & { look: { serial: number; askedAtMs: number }; sinceSerial: number }

/** By what is known of the file, and of the account's own looks: somebody else's may be newer, and Google's answer old. */
function proven(
  account: string,
  one: Listed,
  known: StoredFile | undefined,
  was: AccessRow | undefined,
): Proven {
  const look =
    was && Number(was.serial) > one.serial
      ? { serial: Number(was.serial), askedAtMs: Number(was.asked_at) }
      : { serial: one.serial, askedAtMs: lookedAtMs(one) }
  if (!known) return { ...one, look, sinceSerial: one.serial }
  const { grant } = one
  const endsAtMs = endOfAccess({ account, ...look, endsAtMs: grant.expiresAtMs }, known)
  const hasEnded = was !== undefined && was.expires_at !== null && Number(was.expires_at) <= look.askedAtMs
  const sinceSerial =
    was && !(hasEnded && isBreak(was, known)) ? Number(was.since_serial) : sinceNow(one.serial, known)
  return { ...one, look, grant: { ...grant, expiresAtMs: endsAtMs }, sinceSerial }
}

/** Whether an access that had ended, and begins again, has missed what is published. Who had seen that may see it again. */
function isBreak({ serial }: AccessRow, { publishedSerial }: StoredFile): boolean {
  return Number(serial) < publishedSerial
}

/** Whether an access that begins now was there before what is stale, a late look cannot tell. */
function sinceNow(serial: number, { staleSerial }: StoredFile): number {
  return Math.max(serial, staleSerial ?? 0)
}

/**
 * Where somebody sees a document, and not what is published of it because the newer version could not be read: it is tried
 * once more, and what was there before goes (publishReading).
 */
async function readForEarly(tx: Tx, ids: string): Promise<void> {
  await tx.run(
    `UPDATE drive_files SET state = 'waiting' WHERE id IN (${textsFrom(tx)}) AND state IN ('failed', 'skipped')
       AND stale_serial IS NOT NULL AND EXISTS (
         SELECT 1 FROM drive_access a WHERE a.file = drive_files.id AND a.since_serial >= drive_files.stale_serial
           AND (a.expires_at IS NULL OR a.expires_at > ${UNLISTED}))`,
    [ids],
  )
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
    Pick<
      FileRow,
      'id' | 'owner' | 'version_serial' | 'published_serial' | 'stale_serial' | keyof SharingColumns
    >
  >(
    `SELECT id, owner, version_serial, published_serial, stale_serial, sharing, sharing_serial, sharing_at
     FROM drive_files WHERE id IN (${textsFrom(tx)})`,
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
    const publishedSerial = Number(row.published_serial)
    known.set(row.id, { versionSerial, publishedSerial, staleSerial, owner: row.owner, sharing })
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

/**
 * Ends what others have of these documents and is not confirmed any more. It begins anew by their own looks, or by a list
 * that is as new as the version and names them.
 */
async function endOthers(
  tx: Tx,
  index: IndexWriter,
  { account, drive }: AccessOf,
  known: ReadonlyMap<string, StoredFile>,
): Promise<void> {
  const rows = await tx.all<AccessRow>(
    `SELECT a.* FROM drive_access a JOIN drive_files f ON f.id = a.file
     WHERE a.file IN (${textsFrom(tx)}) AND NOT (a.account = ? AND a.drive = ?)
       AND (a.expires_at IS NULL OR a.expires_at <> ${UNLISTED})
       AND (a.serial < f.version_serial OR a.serial < f.sharing_serial
         OR (a.serial = f.sharing_serial AND a.asked_at < f.sharing_at))
     ORDER BY a.file, a.account, a.drive`,
    [JSON.stringify([...known.keys()]), account, drive],
  )
  const ends: object[] = []
  const ended = new Map<string, Set<string>>()
  for (const row of rows) {
    const was = row.expires_at === null ? null : Number(row.expires_at)
    const look = { account: row.account, serial: Number(row.serial), askedAtMs: Number(row.asked_at) }
    const file = known.get(row.file)!
    const endsAtMs =
      was === UNCONFIRMED ? confirmedUntil(look, file) : endOfAccess({ ...look, endsAtMs: was }, file)
    if (endsAtMs === was || endsAtMs === undefined) continue
    const isBegun = was === UNCONFIRMED && isBreak(row, file)
    const since = isBegun ? sinceNow(file.sharing!.serial, file) : Number(row.since_serial)
    ends.push({
      account: row.account,
      drive: row.drive,
      file: row.file,
      expires_at: endsAtMs,
      since_serial: since,
    })
    ended.getOrInsertComputed(row.file, () => new Set()).add(row.account)
  }
  if (ends.length === 0) return
  await tx.run(
    `UPDATE drive_access SET expires_at = given.expires_at, since_serial = given.since_serial
     FROM ${rowsFrom(tx, END_COLUMNS)} WHERE given.account = drive_access.account AND given.drive = drive_access.drive
       AND given.file = drive_access.file`,
    [JSON.stringify(ends)],
  )
  await endInIndex(tx, index, ended)
}

/** By file, the accounts. Each may see the document in another feed as well. */
async function endInIndex(
  tx: Tx,
  index: IndexWriter,
  ended: ReadonlyMap<string, Iterable<string>>,
): Promise<void> {
  const left = await grantsOf(tx, [...ended.keys()])
  const inIndex = [...ended].flatMap(([ref, accounts]) =>
    [...accounts].map((account) => ({
      ref,
      principal: streamOf(account),
      expiresAtMs: left.get(ref)!.get(account)!.expiresAtMs,
    })),
  )
  await index.expire(tx, SERVICE, inIndex)
}

/** What Google lets the account read and does not list for it: hidden, and kept until a complete listing decides. */
export async function hideUnlisted(
  tx: Tx,
  index: IndexWriter,
  { account, drive }: AccessOf,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  const given = JSON.stringify([...new Set(ids)].sort())
  await lockFiles(tx, given)
  const hidden = await tx.all<{ file: string }>(
    `UPDATE drive_access SET expires_at = ${UNLISTED}
     WHERE account = ? AND drive = ? AND file IN (${textsFrom(tx)}) RETURNING file`,
    [account, drive, given],
  )
  if (hidden.length > 0) await endInIndex(tx, index, new Map(hidden.map(({ file }) => [file, [account]])))
}

/**
 * In the transaction in which a sync ends. Whoever leaves the account unconfirmed while its sync is there gets no other by
 * its key: either this sees it, and the sync goes on, or he finds the key free.
 */
export async function refuseUnconfirmed(
  tx: Tx,
  account: string,
  asked: readonly { drive: string; file: string }[],
): Promise<void> {
  // What is beyond that is found by a listing (checkExpired).
  if (asked.length >= EXPIRED_MAX) return
  const rows = await tx.all<{ drive: string; file: string }>(
    `SELECT a.drive, a.file FROM drive_access a JOIN drive_feeds g ON g.account = a.account AND g.drive = a.drive
     WHERE a.account = ? AND a.expires_at = ${UNCONFIRMED} AND g.state = 'following' LIMIT ${EXPIRED_MAX + 1}`,
    [account],
  )
  const known = new Set(asked.map(({ drive, file }) => `${drive} ${file}`))
  if (rows.every(({ drive, file }) => known.has(`${drive} ${file}`))) return
  throw new TidemarkError('Another account has seen something newer meanwhile.', {
    // Goes on at once, which costs no try.
    kind: 'throttled',
    code: 'unconfirmed-meanwhile',
    retryAfterMs: 0,
  })
}

function lockFiles(tx: Tx, given: string): Promise<Pick<FileRow, 'id' | 'published' | 'is_folder'>[]> {
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  return tx.all(
    `SELECT id, published, is_folder FROM drive_files WHERE id IN (${textsFrom(tx)}) ORDER BY id${lock}`,
    [given],
  )
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
       version_serial = CASE WHEN ${isSameAs('excluded')} THEN drive_files.version_serial
         ELSE excluded.version_serial END,
       older_serial = CASE WHEN ${isSameAs('excluded')} THEN drive_files.older_serial ELSE drive_files.serial END,
       stale_serial = CASE WHEN drive_files.published = 1 AND drive_files.version <> excluded.version
         THEN COALESCE(drive_files.stale_serial, excluded.serial) ELSE drive_files.stale_serial END,
       place_stale = CASE WHEN drive_files.published = 1 AND (drive_files.modified_at <> excluded.modified_at
         OR drive_files.owner <> excluded.owner) THEN 1 ELSE drive_files.place_stale END
     WHERE excluded.serial >= drive_files.serial`,
    [JSON.stringify(rows)],
  )
  await putLate(tx, JSON.stringify(rows))
}

/**
 * Looks that are older than what is known. One at the present version tells that this was there earlier, unless another one
 * was between. One at another version tells that the present one came later: what was the same before it was there twice.
 */
async function putLate(tx: Tx, rows: string): Promise<void> {
  const serial = `CASE WHEN ${isSameAs('given')} THEN given.serial ELSE drive_files.serial END`
  await tx.run(
    `UPDATE drive_files SET version_serial = CASE WHEN ${isSameAs('given')} OR given.serial >= drive_files.version_serial
         THEN ${serial} ELSE drive_files.version_serial END,
       published_serial = CASE WHEN drive_files.stale_serial IS NULL
           AND (${isSameAs('given')} OR given.serial >= drive_files.version_serial)
         THEN ${serial} ELSE drive_files.published_serial END,
       older_serial = CASE WHEN ${isSameAs('given')} THEN drive_files.older_serial ELSE given.serial END
     FROM ${rowsFrom(tx, FILE_COLUMNS)}
     WHERE given.id = drive_files.id AND given.serial < drive_files.serial AND given.serial > drive_files.older_serial
       AND NOT (${isSameAs('given')} AND given.serial >= drive_files.version_serial)`,
    [rows],
  )
}

/** Of a folder only its name is told. */
function isSameAs(other: 'excluded' | 'given'): string {
  return `(drive_files.version = ${other}.version OR (drive_files.is_folder = 1 AND drive_files.name = ${other}.name))`
}

async function putAccess(
  tx: Tx,
  { account, drive, generation }: AccessOf & { generation: number },
  files: readonly Proven[],
  before: ReadonlyMap<string, KnownAccess>,
): Promise<void> {
  const rows = files.map((one) => {
    const was = before.get(one.id)
    // Its name is another one, or had not been seen by this account, whoever saw it first.
    const isRenamed = was !== undefined && Number(was.serial) < Number(was.version_serial)
    const isMoved = one.isFolder && (was === undefined || was.parent !== one.parent || isRenamed)
    return {
      file: one.id,
      parent: one.parent,
      kind: one.grant.kind,
      via: one.grant.via,
      expires_at: one.grant.expiresAtMs,
      can_download: one.canDownload ? 1 : 0,
      is_folder: one.isFolder ? 1 : 0,
      fingerprint: one.fingerprint,
      serial: one.look.serial,
      asked_at: one.look.askedAtMs,
      since_serial: one.sinceSerial,
      moved: isMoved ? 1 : 0,
    }
  })
  const names = Object.keys(ACCESS_COLUMNS)
  const kept = names.filter((name) => !['file', 'moved'].includes(name))
  await tx.run(
    `INSERT INTO drive_access(account, drive, generation, ${names.join(', ')})
     SELECT ?, ?, CAST(? AS BIGINT), ${names.join(', ')} FROM ${rowsFrom(tx, ACCESS_COLUMNS)} WHERE true
     ON CONFLICT (account, drive, file) DO UPDATE SET generation = excluded.generation,
       ${kept.map((name) => `${name} = excluded.${name}`).join(', ')},
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
 * is published is only for those who had access before it, or had seen what is published: others were never let see it.
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
  const files = await lockFiles(tx, given)
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
