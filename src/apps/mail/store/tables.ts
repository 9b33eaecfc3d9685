/**
 * What the mail archive keeps in the ledger's database, beside the ledger's own tables: which ids were ever listed,
 * what labels are called, and which archive belongs to an account. Messages are in the archive's own files.
 */
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { Verification } from '../message.ts'
import { type ArchivePast, fromJson, missingSchema } from './missing-messages.ts'
import { staleSchema } from './stale-labels.ts'

export type MailboxRow = ArchivePast & {
  account: string
  archive_id: string
  /** Set when the slices were planned. */
  granularity: string | null
  since_s: number | null
  planned_at: number | null
  /** What happened to the mailbox before is taken in. */
  checked_at: number | null
  /** What was wanted when it was last planned or compared, as JSON. */
  choices: string | null
  /** See missing-messages.ts. */
  older: number
  /** The last check of the archive, as JSON. */
  verified: string | null
  /** How many messages Gmail says there are, as JSON: see mailbox-totals.ts. */
  totals: string | null
  /** The watermark and its time from before the news that are not settled yet; see watermark.ts. */
  held_mark_s: number | null
  held_as_of: number | null
  /** The number of the last note in stale-labels.ts. */
  stale_notes: number
}

export type LabelRow = { id: string; name: string }

const MAILBOXES_MAX = 10_000

export function schemaOf(dialect: Tx['dialect']): string[][] {
  const withoutRowid = dialect === 'sqlite' ? ' WITHOUT ROWID' : ''
  const integer = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  return [
    [
      `CREATE TABLE mail_boxes (account TEXT PRIMARY KEY, archive_id TEXT NOT NULL, granularity TEXT, since_s ${integer}, planned_at ${integer}, checked_at ${integer}, choices TEXT)`,
      `CREATE TABLE mail_listed (account TEXT NOT NULL, id TEXT NOT NULL, gone_at ${integer}, PRIMARY KEY (account, id))${withoutRowid}`,
      `CREATE TABLE mail_labels (account TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (account, id))`,
    ],
    missingSchema(integer),
    [`ALTER TABLE mail_boxes ADD COLUMN tip TEXT NOT NULL DEFAULT ''`],
    [`ALTER TABLE mail_boxes ADD COLUMN totals TEXT`],
    [
      `ALTER TABLE mail_boxes ADD COLUMN held_mark_s ${integer}`,
      `ALTER TABLE mail_boxes ADD COLUMN held_as_of ${integer}`,
    ],
    staleSchema(dialect, integer),
  ]
}

export class MailTables {
  readonly #ledger: Ledger

  private constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  static async open(ledger: Ledger): Promise<MailTables> {
    await ledger.migrateApp('mail-archive', schemaOf(ledger.dialect))
    return new MailTables(ledger)
  }

  /** The account's row; made on first use, with an archive id of its own. */
  async mailbox(account: string, newArchiveId: () => string): Promise<MailboxRow> {
    const found = await this.findMailbox(account)
    if (found) return found
    await this.#ledger.transaction(async (tx) => {
      await tx.run(
        `INSERT INTO mail_boxes(account, archive_id) VALUES (?, ?) ON CONFLICT (account) DO NOTHING`,
        [account, newArchiveId()],
      )
    })
    return (await this.findMailbox(account))!
  }

  /** Of an account that was never synced by this ledger: its archive is the one that is there already. */
  async takeOver(account: string, archiveId: string): Promise<void> {
    const changed = await this.#ledger.transaction((tx) =>
      tx.run(`UPDATE mail_boxes SET archive_id = ? WHERE account = ? AND planned_at IS NULL`, [
        archiveId,
        account,
      ]),
    )
    if (changed !== 1) throw new UsageError(`${account} has an archive already.`)
  }

  findMailbox(account: string): Promise<MailboxRow | undefined> {
    return this.#ledger.driver.read((tx) =>
      tx.get<MailboxRow>(`SELECT * FROM mail_boxes WHERE account = ?`, [account]),
    )
  }

  /** Archives that were never synced: of imports, or of an account that is new. */
  async unplanned(): Promise<string[]> {
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ account: string }>(
        `SELECT account FROM mail_boxes WHERE planned_at IS NULL ORDER BY account LIMIT ${MAILBOXES_MAX}`,
      ),
    )
    return rows.map(({ account }) => account)
  }

  /** Which of these ids were never listed before, in their order. */
  async unlisted(account: string, ids: readonly string[]): Promise<string[]> {
    const known = await this.listed(account, ids)
    return ids.filter((id) => !known.has(id))
  }

  async listed(account: string, ids: readonly string[]): Promise<Set<string>> {
    if (ids.length === 0) return new Set()
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ id: string }>(`SELECT id FROM mail_listed WHERE account = ? AND id IN (${fromJson(tx)})`, [
        account,
        JSON.stringify(ids),
      ]),
    )
    return new Set(rows.map(({ id }) => id))
  }

  /** Which of these the cloud was seen not to have any more, and when. */
  async gone(account: string, ids: readonly string[]): Promise<Map<string, number>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#ledger.driver.read((tx) =>
      tx.all<{ id: string; gone_at: number }>(
        `SELECT id, gone_at FROM mail_listed WHERE account = ? AND gone_at IS NOT NULL AND id IN (${fromJson(tx)})`,
        [account, JSON.stringify(ids)],
      ),
    )
    return new Map(rows.map((row) => [row.id, Number(row.gone_at)]))
  }

  listedCount(account: string): Promise<number> {
    return this.#ledger.driver.read(async (tx) => {
      const row = await tx.get<{ n: number }>(`SELECT count(*) AS n FROM mail_listed WHERE account = ?`, [
        account,
      ])
      return Number(row?.n ?? 0)
    })
  }

  labels(account: string): Promise<LabelRow[]> {
    return this.#ledger.driver.read((tx) =>
      tx.all<LabelRow>(`SELECT id, name FROM mail_labels WHERE account = ? ORDER BY name`, [account]),
    )
  }

  /** What the ledger's database takes, in bytes. */
  metadataBytes(): Promise<number> {
    return this.#ledger.driver.read(async (tx) => {
      const row = await tx.get<{ bytes: number }>(
        tx.dialect === 'sqlite'
          ? `SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()`
          : `SELECT pg_database_size(current_database()) AS bytes`,
      )
      return Number(row?.bytes ?? 0)
    })
  }
}

// What jobs write, as effects in their commit's transaction.

/** Ids that were unlisted a moment ago, and are counted in the same transaction: once, although others may look too. */
export async function noteFresh(tx: Tx, account: string, ids: readonly string[]): Promise<void> {
  const added = await noteListed(tx, account, ids)
  if (added === ids.length) return
  throw new TidemarkError('another process has just listed some of these messages', { kind: 'transient' })
}

/** How many of them were not listed before. */
export async function noteListed(tx: Tx, account: string, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0
  return tx.run(
    `INSERT INTO mail_listed(account, id) SELECT ?, value FROM (${fromJson(tx, 'value')}) AS listed WHERE true ON CONFLICT (account, id) DO NOTHING`,
    [account, JSON.stringify(ids)],
  )
}

export async function noteGone(tx: Tx, account: string, ids: readonly string[], atMs: number): Promise<void> {
  if (ids.length === 0) return
  await tx.run(
    `UPDATE mail_listed SET gone_at = ? WHERE account = ? AND gone_at IS NULL AND id IN (${fromJson(tx)})`,
    [atMs, account, JSON.stringify(ids)],
  )
}

/** It is there after all. */
export async function noteReturned(tx: Tx, account: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.run(
    `UPDATE mail_listed SET gone_at = NULL WHERE account = ? AND gone_at IS NOT NULL AND id IN (${fromJson(tx)})`,
    [account, JSON.stringify(ids)],
  )
}

export async function noteLabels(tx: Tx, account: string, labels: readonly LabelRow[]): Promise<void> {
  for (const { id, name } of labels) {
    await tx.run(
      `INSERT INTO mail_labels(account, id, name) VALUES (?, ?, ?)
       ON CONFLICT (account, id) DO UPDATE SET name = excluded.name`,
      [account, id, name],
    )
  }
}

export async function notePlan(
  tx: Tx,
  plan: { account: string; granularity: string; sinceS: number | null; atMs: number; choices: object },
): Promise<void> {
  const changed = await tx.run(
    `UPDATE mail_boxes SET granularity = ?, since_s = ?, planned_at = ?, checked_at = ?, choices = ? WHERE account = ?`,
    [plan.granularity, plan.sinceS, plan.atMs, plan.atMs, JSON.stringify(plan.choices), plan.account],
  )
  if (changed !== 1) throw new UsageError(`There is no mailbox for ${plan.account} in the ledger.`)
}

export async function noteChecked(tx: Tx, account: string, atMs: number): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET checked_at = ? WHERE account = ?`, [atMs, account])
}

export async function noteVerified(tx: Tx, account: string, verification: Verification): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET verified = ? WHERE account = ?`, [
    JSON.stringify(verification),
    account,
  ])
}

export async function noteTotals(tx: Tx, account: string, totals: object | undefined): Promise<void> {
  if (totals === undefined) return
  await tx.run(`UPDATE mail_boxes SET totals = ? WHERE account = ?`, [JSON.stringify(totals), account])
}

/** As it stands before the news that this transaction adds. */
export async function holdWatermark(tx: Tx, account: string, markS: number): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET held_mark_s = ?, held_as_of = checked_at WHERE account = ?`, [
    markS,
    account,
  ])
}

export async function noteChoices(tx: Tx, account: string, choices: object): Promise<void> {
  await tx.run(`UPDATE mail_boxes SET choices = ? WHERE account = ?`, [JSON.stringify(choices), account])
}
