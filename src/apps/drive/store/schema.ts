/**
 * What the Drive index keeps in the ledger's database besides jobs.
 *
 *   drive_accounts  one for each account: counter of listings, times, how long revocations took
 *   drive_feeds     one for each account and each drive that it sees ('' is what it owns and what is shared with it,
 *                   `domain` what everybody of its domain may find): its change token, and the listing under way
 *   drive_files     one for each file id, however many see it: what is told of it, and what became of reading it
 *   drive_access    one for each (account, feed, file): what the account's own listing shows. What the index lets a
 *                   principal see is written in the same transactions, so it is never more than this. With how new that
 *                   look was: a newer version, or a newer list of permissions, may leave it unconfirmed (../sharing.ts)
 *
 * Whoever changes who may see a file, or publishes it, locks the row of the file first: a document that is published
 * while somebody is given access would otherwise miss one of the two. Rows of several files are locked in the order of
 * their ids.
 */
import type { Tx } from '../../../ledger/contract.ts'

/** `listing`: changes wait until it is done. `unreachable`: the last listing could not be made; nothing was pruned. */
export type FeedState = 'new' | 'listing' | 'following' | 'unreachable'

/** The feed of what everybody of the domain may find. Its changes are told with those of the account itself. */
export const DOMAIN = 'domain'

/** `waiting`: a job reads it, or will. */
export type FileState = 'waiting' | 'indexed' | 'skipped' | 'failed'

export function driveSchema(dialect: Tx['dialect']): string[][] {
  const int = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  const withoutRowid = dialect === 'sqlite' ? ' WITHOUT ROWID' : ''
  return [
    [
      `CREATE TABLE drive_accounts (account TEXT PRIMARY KEY, generation ${int} NOT NULL DEFAULT 0,
         discovery_at ${int}, processing_at ${int}, completed_at ${int}, folders_at ${int}, checked_at ${int},
         revoked ${int} NOT NULL DEFAULT 0, revoked_timed ${int} NOT NULL DEFAULT 0,
         revoke_ms_sum ${int} NOT NULL DEFAULT 0, revoke_ms_max ${int} NOT NULL DEFAULT 0, revoke_ms_last ${int})`,
      `CREATE TABLE drive_feeds (account TEXT NOT NULL, drive TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
         token TEXT, next_token TEXT, generation ${int} NOT NULL DEFAULT 0, listing ${int} NOT NULL DEFAULT 0,
         wanted ${int} NOT NULL DEFAULT 0, listed_at ${int}, incomplete ${int} NOT NULL DEFAULT 0, problem TEXT,
         PRIMARY KEY (account, drive))${withoutRowid}`,
      `CREATE TABLE drive_files (id TEXT PRIMARY KEY, name TEXT NOT NULL, mime_type TEXT NOT NULL, md5 TEXT,
         size_bytes ${int}, serial ${int} NOT NULL, version TEXT NOT NULL, created_at ${int}, modified_at ${int},
         owner TEXT NOT NULL, editor TEXT NOT NULL, url TEXT NOT NULL, is_folder ${int} NOT NULL, resource_key TEXT,
         state TEXT NOT NULL, code TEXT, reason TEXT, read_version TEXT, published ${int} NOT NULL DEFAULT 0,
         place TEXT NOT NULL DEFAULT '[]', place_stale ${int} NOT NULL DEFAULT 0)${withoutRowid}`,
      `CREATE INDEX drive_files_stale ON drive_files(id) WHERE place_stale = 1`,
      `CREATE TABLE drive_access (account TEXT NOT NULL, drive TEXT NOT NULL, file TEXT NOT NULL, parent TEXT,
         generation ${int} NOT NULL, kind TEXT NOT NULL, via TEXT NOT NULL, expires_at ${int},
         can_download ${int} NOT NULL, is_folder ${int} NOT NULL, fingerprint TEXT, moved ${int} NOT NULL DEFAULT 0,
         PRIMARY KEY (account, drive, file))${withoutRowid}`,
      `CREATE INDEX drive_access_file ON drive_access(file)`,
      `CREATE INDEX drive_access_parent ON drive_access(parent, account)`,
      `CREATE INDEX drive_access_expiry ON drive_access(account, expires_at) WHERE expires_at IS NOT NULL`,
      `CREATE INDEX drive_access_moved ON drive_access(account) WHERE moved = 1`,
    ],
    [`ALTER TABLE drive_files ADD COLUMN sha256 TEXT`],
    // What was kept before counts as seen, until the next version.
    [
      `ALTER TABLE drive_files ADD COLUMN version_serial ${int} NOT NULL DEFAULT 0`,
      `ALTER TABLE drive_files ADD COLUMN sharing TEXT`,
      `ALTER TABLE drive_files ADD COLUMN sharing_serial ${int}`,
      `ALTER TABLE drive_files ADD COLUMN sharing_at ${int}`,
      `ALTER TABLE drive_files ADD COLUMN stale_serial ${int}`,
      `ALTER TABLE drive_access ADD COLUMN serial ${int} NOT NULL DEFAULT 0`,
      `ALTER TABLE drive_access ADD COLUMN since_serial ${int} NOT NULL DEFAULT 0`,
      `ALTER TABLE drive_access ADD COLUMN asked_at ${int} NOT NULL DEFAULT 0`,
    ],
    // What is published of a file that was not read as it is now may be an older version. Where it is not, the first who is
    // given it has it read once more.
    [
      `ALTER TABLE drive_files ADD COLUMN published_serial ${int} NOT NULL DEFAULT 0`,
      `ALTER TABLE drive_files ADD COLUMN older_serial ${int} NOT NULL DEFAULT 0`,
      `UPDATE drive_files SET stale_serial = serial
       WHERE published = 1 AND is_folder = 0 AND state <> 'indexed' AND stale_serial IS NULL`,
    ],
  ]
}
