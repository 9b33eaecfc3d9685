/**
 * Changes that a watch has seen and that nobody was asked to look at yet: a program that saves in ten steps is looked at
 * once, so they are collected for some seconds. Until then the folder is not in step, whoever asks, and whatever becomes
 * of the process that watches.
 */
import type { Tx } from '../../../ledger/contract.ts'

/** Not noted again before: changes come by the thousand. */
export const NOTED_EVERY_MS = 1_000

export async function noteChangeSeen(tx: Tx, pair: string, atMs: number): Promise<void> {
  await tx.run(`UPDATE file_drives SET stirred_at = ? WHERE name = ?`, [atMs, pair])
}

/** A look was asked for. */
export async function clearChangeSeen(tx: Tx, pair: string): Promise<void> {
  await tx.run(`UPDATE file_drives SET stirred_at = NULL WHERE name = ?`, [pair])
}

/** A whole look has seen all that was noted before it began, by whoever; the clock may have been put back since. */
export async function forgetOldChangeSeen(
  tx: Tx,
  pair: string,
  { beganAt, atMs }: { beganAt: number; atMs: number },
): Promise<void> {
  await tx.run(
    `UPDATE file_drives SET stirred_at = NULL WHERE name = ? AND (stirred_at <= ? OR stirred_at > ?)`,
    [pair, beganAt - NOTED_EVERY_MS, atMs],
  )
}
