/** What it costs that one version of an object takes the place of another, in one transaction, however many records they have. */
import { SERVICE, shardRange, streamOf } from '../../src/apps/ingest/pipeline.ts'
import { RECORD_GRANT } from '../../src/apps/ingest/record-document.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Tx } from '../../src/ledger/contract.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { openSearch } from '../../src/search/search.ts'

export type SwapOrder = { do: 'swap'; url: string; records: number }
export type Swapped = { ms: number }

const PIPELINE = 'bench'
const [OLD, NEW] = ['a'.repeat(32), 'b'.repeat(32)]

export async function swapVersions({ url, records }: SwapOrder): Promise<Swapped> {
  const ledger = await openLedger(url)
  const search = openSearch({ ledger })
  await search.prepare()
  const principal = streamOf(PIPELINE)
  await ledger.transaction(async (tx) => {
    for (const shard of [OLD, NEW]) await fill(tx, shard, records)
    await search.reveal(tx, shardRange(PIPELINE, OLD), principal, RECORD_GRANT)
  })
  const fromMs = systemClock.monotonicMs()
  const counts = await ledger.transaction(async (tx) => [
    await search.reveal(tx, shardRange(PIPELINE, NEW), principal, RECORD_GRANT),
    await search.hide(tx, shardRange(PIPELINE, OLD), principal),
  ])
  const ms = systemClock.monotonicMs() - fromMs
  if (counts.some((n) => n !== records)) throw new Error(`${counts.join(' and ')} records of ${records}`)
  await search.close()
  await ledger.close()
  return { ms }
}

/** Without contents, at which neither of the two looks. */
async function fill(tx: Tx, shard: string, records: number): Promise<void> {
  const { prefix } = shardRange(PIPELINE, shard)
  const isSqlite = tx.dialect === 'sqlite'
  const numbers = isSqlite
    ? `(WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < ${records}) SELECT n FROM t)`
    : `generate_series(0, ${records - 1}) AS t(n)`
  const ref = isSqlite ? `printf('%s%012d', '${prefix}', n)` : `'${prefix}' || lpad(n::text, 12, '0')`
  await tx.run(
    `INSERT INTO search_documents(source, ref, type, title, owner, folders, people, mime_type, url, version)
     SELECT '${SERVICE}', ${ref}, 'record', 'a title', '', '[]', '[]', '', '', 'v' FROM ${numbers}`,
  )
}
