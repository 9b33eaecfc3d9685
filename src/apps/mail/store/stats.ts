/** How many messages an archive holds and how large they are: by year, sender, label or size. */
import type { Stats, StatsBy, StatsRow } from './contract.ts'
import type { ShardSource } from './search.ts'
import { isUnreadable } from './store-errors.ts'

export const STATS_ROWS_DEFAULT = 100

/** Upper bounds, exclusive; the last class has none. */
const SIZE_CLASSES = [
  { key: 'below 10 kB', bytesMax: 10_000 },
  { key: '10 kB to 100 kB', bytesMax: 100_000 },
  { key: '100 kB to 1 MB', bytesMax: 1_000_000 },
  { key: '1 MB to 10 MB', bytesMax: 10_000_000 },
  { key: '10 MB and more', bytesMax: Number.MAX_SAFE_INTEGER },
] as const

const SUMS = 'count(*) AS messages, sum(bytes) AS bytes'
const FACTS = 'messages INDEXED BY messages_facts'

/** A key is a year (UTC), an address in small letters, a label's id, or a class of sizes; '' stands for none. */
const STATEMENTS: Record<StatsBy, string> = {
  year: `SELECT coalesce(strftime('%Y', internal_ms / 1000, 'unixepoch'), '') AS key, ${SUMS} FROM ${FACTS} GROUP BY key`,
  sender: `SELECT coalesce(lower(sender ->> '$[0].address'), '') AS key, ${SUMS} FROM messages GROUP BY key`,
  label: `
    SELECT l.label AS key, count(*) AS messages, sum(f.bytes) AS bytes
    FROM message_labels l CROSS JOIN messages f INDEXED BY messages_facts ON f.pos = l.pos GROUP BY l.label
    UNION ALL
    SELECT '' AS key, count(*) AS messages, coalesce(sum(bytes), 0) AS bytes FROM messages WHERE labels = '[]'`,
  size: `
    SELECT CASE ${SIZE_CLASSES.map(({ key, bytesMax }) => `WHEN bytes < ${bytesMax} THEN '${key}'`).join(' ')} END AS key,
      ${SUMS} FROM ${FACTS} GROUP BY key`,
}

export function statsOfShards(source: ShardSource, by: StatsBy, limit = STATS_ROWS_DEFAULT): Stats {
  const totals = new Map<string, StatsRow>()
  const unsearched: { shard: string; reason: string }[] = []
  for (const { name } of source.shards()) {
    try {
      source.guarded(name, () => {
        for (const row of source.prepare(name, STATEMENTS[by]).iterate() as Iterable<StatsRow>) {
          if (row.messages > 0) add(totals, row)
        }
      })
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown
      unsearched.push({ shard: name, reason: thrown.message })
    }
  }
  const rows = [...totals.values()].sort(statsOrder(by))
  return { rows: rows.slice(0, Math.max(1, limit)), unsearched }
}

function add(totals: Map<string, StatsRow>, { key, messages, bytes }: StatsRow): void {
  const known = totals.get(key)
  totals.set(key, {
    key,
    messages: messages + (known?.messages ?? 0),
    bytes: bytes + (known?.bytes ?? 0),
  })
}

/** Years newest first, sizes smallest first, senders and labels by how many messages they have. */
export function statsOrder(by: StatsBy): (a: StatsRow, b: StatsRow) => number {
  if (by === 'year') return (a, b) => (a.key > b.key ? -1 : 1)
  if (by === 'size') return (a, b) => sizeClassOf(a) - sizeClassOf(b)
  return (a, b) => b.messages - a.messages || b.bytes - a.bytes || (a.key < b.key ? -1 : 1)
}

function sizeClassOf({ key }: StatsRow): number {
  return SIZE_CLASSES.findIndex((one) => one.key === key)
}
