/** The tables of the Drive index, for whoever reads them; what is written with a job is in the other files of this folder. */
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { Grant } from '../../../search/contract.ts'
import { UNCONFIRMED, UNLISTED } from '../sharing.ts'
import type { FileRow } from './file-row.ts'
import { textsFrom } from './rows.ts'
import { driveSchema, type FeedState, type FileState } from './schema.ts'

export type AccountRow = {
  account: string
  generation: number
  discovery_at: number | null
  processing_at: number | null
  completed_at: number | null
  folders_at: number | null
  checked_at: number | null
  revoked: number
  revoked_timed: number
  revoke_ms_sum: number
  revoke_ms_max: number
  revoke_ms_last: number | null
}

export type FeedRow = {
  account: string
  /** '' for what the account owns and what is shared with it. */
  drive: string
  name: string
  state: FeedState
  token: string | null
  /** Taken before the listing under way began. */
  next_token: string | null
  /** Of the last complete listing. */
  generation: number
  /** Of the listing under way. */
  listing: number
  /** To be listed anew. */
  wanted: number
  listed_at: number | null
  /** Google did not look everywhere the last time. */
  incomplete: number
  problem: string | null
}

/** Who could fetch a file. */
export type FileReader = { account: string; kind: Grant['kind']; can_download: number }

export type FileCount = {
  drive: string
  state: FileState
  code: string | null
  n: number
}

const FEEDS_MAX = 10_000
const WAITING_MAX = 200
export const EXPIRED_MAX = 200
/** Accounts that are asked to look because of one document, or one page; others do when it is their time. */
const LOOKS_MAX = 100

export class DriveTables {
  readonly ledger: Ledger

  private constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  static async open(ledger: Ledger): Promise<DriveTables> {
    await ledger.migrateApp('drive', driveSchema(ledger.dialect))
    return new DriveTables(ledger)
  }

  account(account: string): Promise<AccountRow | undefined> {
    return this.#get<AccountRow>(`SELECT * FROM drive_accounts WHERE account = ?`, [account])
  }

  /** Of which something is kept, connected or not. */
  async accounts(): Promise<string[]> {
    const rows = await this.#all<{ account: string }>(
      `SELECT account FROM drive_accounts UNION SELECT account FROM drive_feeds ORDER BY account`,
    )
    return rows.map(({ account }) => account)
  }

  feeds(account: string): Promise<FeedRow[]> {
    return this.#all<FeedRow>(
      `SELECT * FROM drive_feeds WHERE account = ? ORDER BY drive LIMIT ${FEEDS_MAX}`,
      [account],
    )
  }

  feed(account: string, drive: string): Promise<FeedRow | undefined> {
    return this.#get<FeedRow>(`SELECT * FROM drive_feeds WHERE account = ? AND drive = ?`, [account, drive])
  }

  file(id: string): Promise<FileRow | undefined> {
    return this.#get<FileRow>(`SELECT * FROM drive_files WHERE id = ?`, [id])
  }

  async files(ids: readonly string[]): Promise<ReadonlyMap<string, FileRow>> {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<FileRow>(`SELECT * FROM drive_files WHERE id IN (${textsFrom(tx)})`, [JSON.stringify(ids)]),
    )
    return new Map(rows.map((row) => [row.id, row]))
  }

  /** Those who may download it first, owners before others. */
  readers(id: string, limit: number): Promise<FileReader[]> {
    return this.#all<FileReader>(
      `SELECT account, MAX(CASE kind WHEN 'owner' THEN 'owner' ELSE 'reader' END) AS kind,
         MAX(can_download) AS can_download
       FROM drive_access WHERE file = ? GROUP BY account
       ORDER BY MAX(can_download) DESC, MAX(CASE kind WHEN 'owner' THEN 1 ELSE 0 END) DESC, account LIMIT ${limit}`,
      [id],
    )
  }

  /** Folders of a feed with their fingerprints. */
  async fingerprints(account: string, drive: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#all<{ file: string; fingerprint: string }>(
      `SELECT file, COALESCE(fingerprint, '') AS fingerprint FROM drive_access
       WHERE account = ? AND drive = ? AND is_folder = 1`,
      [account, drive],
    )
    return new Map(rows.map(({ file, fingerprint }) => [file, fingerprint]))
  }

  /** By file: whether it is a folder, where the account's listing has it, and how new that look was. */
  async access(
    account: string,
    drive: string,
    ids: readonly string[],
  ): Promise<
    ReadonlyMap<
      string,
      { isFolder: boolean; parent: string | null; fingerprint: string | null; serial: number }
    >
  > {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<{
        file: string
        is_folder: number
        parent: string | null
        fingerprint: string | null
        serial: number
      }>(
        `SELECT file, is_folder, parent, fingerprint, serial FROM drive_access
         WHERE account = ? AND drive = ? AND file IN (${textsFrom(tx)})`,
        [account, drive, JSON.stringify(ids)],
      ),
    )
    return new Map(
      rows.map(({ file, is_folder, parent, fingerprint, serial }) => [
        file,
        { isFolder: Boolean(is_folder), parent, fingerprint, serial: Number(serial) },
      ]),
    )
  }

  /** Whose time has passed, and first those that are unconfirmed, of feeds in which Google can be asked for them. */
  expired(account: string, nowMs: number): Promise<{ drive: string; file: string }[]> {
    return this.#all(
      `SELECT a.drive, a.file FROM drive_access a JOIN drive_feeds g ON g.account = a.account AND g.drive = a.drive
       WHERE a.account = ? AND a.expires_at IS NOT NULL AND a.expires_at <= ? AND g.state = 'following'
       ORDER BY a.expires_at, a.file LIMIT ${EXPIRED_MAX}`,
      [account, nowMs],
    )
  }

  /** Accounts that are to look at one of these files themselves before they find it, and can. */
  async unconfirmed(files: readonly string[]): Promise<string[]> {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<{ account: string }>(
        `SELECT DISTINCT a.account FROM drive_access a JOIN drive_feeds g ON g.account = a.account AND g.drive = a.drive
         WHERE a.file IN (${textsFrom(tx)}) AND a.expires_at = ${UNCONFIRMED} AND g.state = 'following'
         ORDER BY a.account LIMIT ${LOOKS_MAX}`,
        [JSON.stringify(files)],
      ),
    )
    return rows.map(({ account }) => account)
  }

  async waitingCount(account: string): Promise<number> {
    const row = await this.#get<{ n: number }>(
      `SELECT COUNT(DISTINCT a.file) AS n FROM drive_access a JOIN drive_files f ON f.id = a.file
       WHERE a.account = ? AND f.state = 'waiting'`,
      [account],
    )
    return Number(row?.n ?? 0)
  }

  /** Some of those that wait. */
  waiting(account: string): Promise<{ id: string; version: string; size_bytes: number | null }[]> {
    return this.#all(
      `SELECT DISTINCT f.id, f.version, f.size_bytes FROM drive_access a JOIN drive_files f ON f.id = a.file
       WHERE a.account = ? AND f.state = 'waiting' ORDER BY f.id LIMIT ${WAITING_MAX}`,
      [account],
    )
  }

  /** Files of an account by feed, state and reason; folders, and what Google does not list, are left out. */
  async counts(account: string): Promise<FileCount[]> {
    const rows = await this.#all<FileCount>(
      `SELECT a.drive, f.state, f.code, COUNT(*) AS n FROM drive_access a JOIN drive_files f ON f.id = a.file
       WHERE a.account = ? AND a.is_folder = 0 AND (a.expires_at IS NULL OR a.expires_at <> ${UNLISTED})
       GROUP BY a.drive, f.state, f.code`,
      [account],
    )
    return rows.map((row) => ({ ...row, n: Number(row.n) }))
  }

  /** The same for the account as a whole, in which a file that two feeds list is one. */
  async totals(account: string): Promise<Omit<FileCount, 'drive'>[]> {
    const rows = await this.#all<Omit<FileCount, 'drive'>>(
      `SELECT f.state, f.code, COUNT(*) AS n FROM drive_files f WHERE f.is_folder = 0 AND f.id IN (
         SELECT file FROM drive_access WHERE account = ? AND (expires_at IS NULL OR expires_at <> ${UNLISTED}))
       GROUP BY f.state, f.code`,
      [account],
    )
    return rows.map((row) => ({ ...row, n: Number(row.n) }))
  }

  /** Files that are found by their names only, with the reason; a page in the order of ids. All accounts if left out. */
  skipped(page: {
    accounts: readonly string[] | undefined
    code: string | undefined
    after: string
    limit: number
  }): Promise<
    Pick<FileRow, 'id' | 'name' | 'mime_type' | 'size_bytes' | 'url' | 'state' | 'code' | 'reason'>[]
  > {
    const { accounts, code, after, limit } = page
    const params: (string | number)[] = code === undefined ? [after] : [after, code]
    // An access whose time has passed tells no names either, though its row is there until somebody asks Google.
    if (accounts) params.push(JSON.stringify(accounts), this.ledger.now())
    return this.ledger.driver.read((tx) =>
      tx.all(
        `SELECT f.id, f.name, f.mime_type, f.size_bytes, f.url, f.state, f.code, f.reason FROM drive_files f
         WHERE f.id > ? AND f.is_folder = 0 AND f.state IN ('skipped', 'failed')
         ${code === undefined ? '' : 'AND f.code = ?'}
         ${
           accounts
             ? `AND EXISTS (SELECT 1 FROM drive_access a WHERE a.file = f.id AND a.account IN (${textsFrom(tx)})
                  AND (a.expires_at IS NULL OR a.expires_at > ?))`
             : ''
         }
         ORDER BY f.id LIMIT ${limit}`,
        params,
      ),
    )
  }

  named(name: string, limit: number): Promise<{ id: string }[]> {
    return this.#all(
      `SELECT id FROM drive_files WHERE name = ? AND is_folder = 0 ORDER BY id LIMIT ${limit}`,
      [name],
    )
  }

  #get<T extends object>(sql: string, params: Parameters<Tx['get']>[1] = []): Promise<T | undefined> {
    return this.ledger.driver.read((tx) => tx.get<T>(sql, params))
  }

  #all<T extends object>(sql: string, params: Parameters<Tx['all']>[1] = []): Promise<T[]> {
    return this.ledger.driver.read((tx) => tx.all<T>(sql, params))
  }
}
