/** What a table of so many shards costs: to open it, to look for what a message announces, and to say how far it is. */
import { shardId } from '../../src/apps/ingest/pipeline.ts'
import { pipelineStatus } from '../../src/apps/ingest/status.ts'
import { IngestTables } from '../../src/apps/ingest/store/tables.ts'
import { systemClock } from '../../src/base/clock.ts'
import { openLedger } from '../../src/ledger/open.ts'

export type ShardsOrder = { do: 'shards'; url: string; shards: number }
export type Looked = { openMs: number; lookupMs: number; statusMs: number; statusClockMs: number }

const PIPELINE = 'bench'
const ROWS = 10_000
const LOOKUPS = 500
/** As many as a message of S3 and those received with it announce. */
const ASKED = 10

const uriOf = (n: number): string => `s3://bench/logs/${n}.ndjson`

export async function lookAtShards({ url, shards }: ShardsOrder): Promise<Looked> {
  await fill(url, shards)
  const opening = process.cpuUsage()
  const ledger = await openLedger(url)
  const tables = await IngestTables.open(ledger)
  const openMs = cpuMsSince(opening)
  const ids = (n: number): string[] =>
    Array.from({ length: ASKED }, (_, at) => shardId(uriOf((n * 7_919 + at * 104_729) % shards), 'v'))
  await tables.states(PIPELINE, ids(0))
  const looking = process.cpuUsage()
  for (let n = 0; n < LOOKUPS; n++) {
    const known = await tables.states(PIPELINE, ids(n))
    if (known.size === 0) throw new Error('a shard is not found')
    await tables.versions(PIPELINE, uriOf((n * 31) % shards))
    await tables.openCount(PIPELINE)
  }
  const lookupMs = cpuMsSince(looking) / LOOKUPS
  const telling = process.cpuUsage()
  const fromMs = systemClock.monotonicMs()
  await pipelineStatus(tables, PIPELINE)
  const statusMs = cpuMsSince(telling)
  const statusClockMs = systemClock.monotonicMs() - fromMs
  await ledger.close()
  return { openMs, lookupMs, statusMs, statusClockMs }
}

async function fill(url: string, shards: number): Promise<void> {
  const ledger = await openLedger(url, { synchronous: 'NORMAL' })
  await IngestTables.open(ledger)
  for (let first = 0; first < shards; first += ROWS) {
    const count = Math.min(ROWS, shards - first)
    await ledger.transaction(async (tx) => {
      for (let at = 0; at < count; at += 500) {
        const some = Array.from({ length: Math.min(500, count - at) }, (_, n) => first + at + n)
        await tx.run(
          `INSERT INTO ingest_shards(pipeline, id, uri, version, state, eof, records, published, created_at, updated_at)
           VALUES ${some.map(() => `(?, ?, ?, 'v', 'stored', 1, 10, 10, 1, 1)`).join(', ')}`,
          some.flatMap((n) => [PIPELINE, shardId(uriOf(n), 'v'), uriOf(n)]),
        )
      }
    })
  }
  await ledger.close()
}

function cpuMsSince(from: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1_000
}
