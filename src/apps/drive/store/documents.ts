/** What became of reading a file: published with all who may see it, in one transaction. */
import type { Tx } from '../../../ledger/contract.ts'
import type { IndexWriter, NewDocument } from '../../../search/contract.ts'
import { SERVICE, streamOf } from '../account.ts'
import type { Unread } from '../plan.ts'
import { UNLISTED } from '../sharing.ts'
import { grantsOf } from './access.ts'
import { documentOf, type FileRow } from './file-row.ts'
import { placesOf } from './places.ts'

export type Reading = { version: string } & (
  | { content: NonNullable<NewDocument['content']> }
  /**
   * `hasFailed`: it would not work; otherwise there is nothing to be read. `isForNow`: somebody who may be able to read it
   * is signed out.
   */
  | { unread: Unread; hasFailed?: boolean; isForNow?: boolean }
)

/**
 * Publishes a document with all that may see it. Where somebody has seen a newer version meanwhile, nothing happens: a job
 * for that one is on its way. Answers whether it was published.
 */
export async function publishReading(
  tx: Tx,
  index: IndexWriter,
  id: string,
  reading: Reading,
): Promise<boolean> {
  const { version } = reading
  const unread = 'unread' in reading ? reading.unread : undefined
  const state = !unread ? 'indexed' : 'unread' in reading && reading.hasFailed ? 'failed' : 'skipped'
  // The first statement: it locks the row, so that whoever gives or takes access waits for this.
  const row = await tx.get<FileRow>(
    `UPDATE drive_files SET state = ?, code = ?, reason = ?, read_version = ?, place_stale = 0
     WHERE id = ? AND version = ? RETURNING *`,
    [state, unread?.code ?? null, unread?.reason ?? null, version, id, version],
  )
  if (!row) return false
  // What was read of an older version is better than nothing, where all who see the document may see that.
  const isKept = 'unread' in reading && (reading.isForNow || reading.hasFailed)
  if (isKept && row.published && !(await isEarlyForSome(tx, row))) {
    // Where it lies is told all the same, and may have to be told to fewer.
    await tx.run(`UPDATE drive_files SET place_stale = 1 WHERE id = ?`, [id])
    return true
  }
  const place = (await placesOf(tx, [id])).get(id) ?? []
  const what =
    'content' in reading ? { content: reading.content } : { content: undefined, unread: reading.unread }
  await index.publish(tx, { ...documentOf(row, place), ...what })
  await tx.run(
    `UPDATE drive_files SET place = ?, published = 1, published_serial = version_serial, stale_serial = NULL
     WHERE id = ?`,
    [JSON.stringify(place), id],
  )
  for (const [account, grant] of (await grantsOf(tx, [id])).get(id) ?? []) {
    await index.grant(tx, { source: SERVICE, ref: id }, streamOf(account), grant)
  }
  return true
}

/** Whether somebody may see the document, and not what is published of it: see grantsOf. */
async function isEarlyForSome(tx: Tx, { id, stale_serial }: FileRow): Promise<boolean> {
  if (stale_serial === null) return false
  const row = await tx.get(
    `SELECT 1 AS one FROM drive_access WHERE file = ? AND since_serial >= ?
       AND (expires_at IS NULL OR expires_at > ${UNLISTED}) LIMIT 1`,
    [id, stale_serial],
  )
  return row !== undefined
}
