/** How many announced objects are not settled: those of a listing wait for no message, and must not keep messages waiting. */
import type { Ledger } from '../../../ledger/ledger.ts'

export async function announcedOpen(ledger: Ledger, pipeline: string): Promise<number> {
  const row = await ledger.driver.read((tx) =>
    tx.get<{ n: number }>(
      `SELECT count(*) AS n FROM ingest_shards
       WHERE pipeline = ? AND state = 'open' AND announced_at IS NOT NULL`,
      [pipeline],
    ),
  )
  return Number(row?.n ?? 0)
}
