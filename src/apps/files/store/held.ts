/** What waits for a yes, and what a yes does: see guard.ts. */
import type { Tx } from '../../../ledger/contract.ts'
import { type Held, heldTotal } from '../guard.ts'

/** Of rows of file_open: they wait for a yes. */
export const IS_HELD = `code IN ('held-delete', 'held-overwrite')`

/** A yes to many of them holds until they are done, and not for the next ones. */
export async function endForced(tx: Tx, pair: string): Promise<void> {
  await tx.run(
    `UPDATE file_drives SET forced_deletes = 0, forced_overwrites = 0 WHERE name = ? AND NOT EXISTS (
       SELECT 1 FROM file_open WHERE drive = ? AND (planned IS NOT NULL OR because IS NULL))`,
    [pair, pair],
  )
}

/** A yes to what waits: to so many, and not one more. */
export async function sayYes(tx: Tx, pair: string, held: Held): Promise<void> {
  const { deleted, replaced } = heldTotal(held)
  await tx.run(
    `UPDATE file_drives SET forced_deletes = ?, forced_overwrites = ?, held_deletes = NULL WHERE name = ?`,
    [deleted, replaced, pair],
  )
  await freeHeld(tx, pair)
}

/** Someone said yes to what waited for it, or it is looked at anew. */
export async function freeHeld(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL WHERE drive = ? AND ${IS_HELD}`,
    [pair],
  )
}

/**
 * Whoever wants the name of something whose deletion does not wait for a yes any more, because somebody said it or has
 * put the thing back, looks again: before each plan, so that one and the other are decided together.
 */
export async function freeHeldNames(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL
     WHERE drive = ? AND code = 'held-name' AND planned IS NULL AND NOT EXISTS (SELECT 1 FROM file_open held
       WHERE held.drive = file_open.drive AND held.node = file_open.waits_for AND held.code = 'held-delete')`,
    [pair],
  )
}

export async function hasHeldNames(tx: Tx, pair: string): Promise<boolean> {
  const found = await tx.get(
    `SELECT 1 AS yes FROM file_open WHERE drive = ? AND code = 'held-name' LIMIT 1`,
    [pair],
  )
  return found !== undefined
}
