/** The registry of bad messages, as the ledger keeps it for an account's stream. */
import type { BadRow } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'

const PAGE = 1_000
const PAGES_MAX = 10_000

/** All of them, as committed at this moment. */
export async function badMessages(ledger: Ledger, stream: string): Promise<BadRow[]> {
  const rows: BadRow[] = []
  for (let page = 0; page < PAGES_MAX; page++) {
    const more = await ledger.badItems({ stream, after: rows.at(-1)?.id ?? 0, limit: PAGE })
    rows.push(...more)
    if (more.length < PAGE) break
  }
  return rows
}
