/** What the rows mean: the conditions they hold under, the ratios, and where the limit is. */
import type { Row } from '../bench.ts'
import { peerVersion } from '../peers.ts'
import { formatValue } from '../table.ts'
import { SUBJECTS } from './subjects.ts'

const PEERS = ['plainjob', 'better-sqlite3', 'better-queue', 'graphile-worker', 'pg-boss', 'pg']

export function conditions(input: {
  quick: boolean
  missing: ReadonlyMap<string, string>
  postgresVersion: string | undefined
}): string[] {
  const lines = [
    'equal durability: `sqlite full` is WAL with synchronous = FULL for all, `postgres` has fsync, full_page_writes and synchronous_commit on; `sqlite normal` (WAL, synchronous = NORMAL: a power cut may take the last commits) is there for reference',
    `PostgreSQL ${input.postgresVersion ?? 'not used'}, on this machine, otherwise with its default settings`,
    PEERS.map((name) => `${name} ${peerVersion(name)}`).join(', '),
    'each measurement in a fresh process on a fresh database; subjects take turns; the better of two runs, the best of three where ledgers are compared with each other, one for memory',
    'drain: no-op jobs that another process left, from the start of the workers to the last job durably completed',
    'pick-up: from calling enqueue to the start of the handler, one job at a time on an idle engine in the same process',
    ...SUBJECTS.flatMap((subject) => (subject.note ? [`\`${subject.name}\`: ${subject.note}`] : [])),
    ...[...input.missing].map(([name, reason]) => `\`${name}\` was left out: ${reason}`),
  ]
  if (input.quick) lines.unshift('**quick run: small sizes, one run each; not for quoting**')
  return lines
}

/** Markdown that also reads well in a terminal. */
export function explain(rows: readonly Row[]): string[] {
  const found = new Found(rows)
  const lines = [...ratioLines(found), ...growthLines(found)]
  const parts = lines.length > 0 ? [['### Ratios', '', ...lines.map((line) => `- ${line}`)].join('\n')] : []
  const limit = limitLines(found)
  if (limit.length > 0)
    parts.push(['### Where the limit is', '', ...limit.map((line) => `- ${line}`)].join('\n'))
  return parts
}

class Found {
  readonly rows: readonly Row[]

  constructor(rows: readonly Row[]) {
    this.rows = rows
  }

  value(name: string, subject: string): number | undefined {
    return this.rows.find((row) => row.case === name && row.subject === subject)?.value
  }

  get cases(): string[] {
    return [...new Set(this.rows.map((row) => row.case))]
  }
}

/** Tidemark against each other subject of the same case, where both were measured. */
function ratioLines(found: Found): string[] {
  return found.cases.flatMap((name) => {
    const own = found.value(name, 'tidemark')
    if (own === undefined) return []
    const others = found.rows.filter((row) => row.case === name && row.subject !== 'tidemark')
    if (others.length === 0) return []
    const parts = others.map((row) => `${formatValue(own / row.value)} × ${row.subject}`)
    return [`${name}: tidemark is ${parts.join(', ')}`]
  })
}

/** How a drain changes with what else is in the ledger. */
function growthLines(found: Found): string[] {
  const pairs = new Map<string, Row[]>()
  for (const row of found.rows) {
    const group = /^(.*: drain (?:over|beside)) \S+ (settled|blocked)$/.exec(row.case)
    if (!group) continue
    const key = `${group[1]} … ${group[2]} · ${row.subject}`
    pairs.set(key, [...(pairs.get(key) ?? []), row])
  }
  return [...pairs].flatMap(([key, [few, many]]) => {
    if (!few || !many) return []
    const change = (many.value / few.value - 1) * 100
    return [
      `${key}: ${change >= 0 ? '+' : '−'}${Math.abs(change).toFixed(0)} % from ${size(few)} to ${size(many)}`,
    ]
  })
}

function size(row: Row): string {
  return /(?:over|beside) (\S+)/.exec(row.case)?.[1] ?? row.case
}

function limitLines(found: Found): string[] {
  const disk = found.value('raw: disk, 4 KiB written and synced', 'limit')
  const commits = found.value('sqlite full: enqueue one by one', 'limit')
  const lines: string[] = []
  if (disk !== undefined && commits !== undefined) {
    lines.push(
      `The disk syncs ${formatValue(disk)} pages a second one after another, SQLite commits ${formatValue(commits)} times a second on it: what commits per job ends there, however fast it computes.`,
    )
  }
  const single = found.value('raw: sqlite full, claim + complete, 1 a transaction', 'limit')
  const hundred = found.value('raw: sqlite full, claim + complete, 100 a transaction', 'limit')
  const thousand = found.value('raw: sqlite full, claim + complete, 1,000 a transaction', 'limit')
  if (single !== undefined && hundred !== undefined && thousand !== undefined) {
    lines.push(
      `On SQLite, one job a transaction allows ${formatValue(single)} jobs/s, 100 allow ${formatValue(hundred)}, 1,000 allow ${formatValue(thousand)}: from there the processor is the limit, not the disk. This is a table of three columns and one index; every column and index that a job needs for leases, retries and dependencies comes off it.`,
    )
  }
  const postgres = found.rows.filter((row) => row.case.startsWith('raw: postgres, claim + complete'))
  const best = postgres.toSorted((a, b) => b.value - a.value)[0]
  const pgCommits = found.value('raw: postgres, commits on 1 connection', 'limit')
  if (best && pgCommits !== undefined) {
    lines.push(
      `PostgreSQL commits ${formatValue(pgCommits)} times a second on one connection; the best claim + complete found is ${formatValue(best.value)} jobs/s (${best.case.replace('raw: postgres, claim + complete, ', '')}). Server and client share the cores of this machine, so more connections soon gain nothing.`,
    )
  }
  return lines
}
