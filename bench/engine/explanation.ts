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
    'equal durability: `sqlite full` is WAL with synchronous = FULL for all, `postgres` has fsync, full_page_writes and synchronous_commit on; `sqlite normal` (WAL, synchronous = NORMAL: a power cut may take the last commits) is there for reference; `libsql` is a server with NORMAL, over HTTP on this machine',
    `PostgreSQL ${input.postgresVersion ?? 'not used'}, on this machine, otherwise with its default settings`,
    PEERS.map((name) => `${name} ${peerVersion(name)}`).join(', '),
    'each measurement in a fresh process on a fresh database; subjects take turns; the better of two runs, the best of three where ledgers are compared with each other, one for memory',
    'drain: no-op jobs that another process left, from the start of the workers to the last job durably completed',
    'one INSERT each: every job writes one row by a statement of its own. For tidemark it is in the transaction that completes the job; for graphile-worker it is a transaction of its own; for pg-boss a batch shares a transaction, apart from the completion, and its statements do not wait for each other',
    'processes: the same jobs are drained by one process and by two, which begin at the same moment; the last to find nothing left decides. Server and clients share the cores, so what a second process can add is what one alone leaves idle: `limit` shows it for a bare loop',
    '1 in 1,000 fails: the effect of one job in 1,000 throws for good; the others commit with the same transactions',
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
  const lines = [...ratioLines(found), ...growthLines(found), ...processLines(found)]
  const parts = lines.length > 0 ? [['### Ratios', '', ...lines.map((line) => `- ${line}`)].join('\n')] : []
  const limit = limitLines(found)
  const aims = aimLines(found)
  if (aims.length > 0)
    parts.unshift(['### Against the aims', '', ...aims.map((line) => `- ${line}`)].join('\n'))
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

const AIMS = {
  drainMin: 1.3,
  processesMin: 1.6,
  fanInSMax: 2,
  settledMin: 0.9,
  failingMin: 0.8,
}

/** Each aim on PostgreSQL beside what was reached; peers at their best, whichever is the best of them. */
function aimLines(found: Found): string[] {
  const settled = found.cases.filter((name) => /^postgres: drain over .* settled$/.test(name))
  return found.cases.flatMap((name) => {
    const own = found.value(name, 'tidemark')
    if (own === undefined || !name.startsWith('postgres: ')) return []
    const peers = found.rows.filter(
      (row) => row.case === name && !['tidemark', 'limit'].includes(row.subject),
    )
    const against = (other: number | undefined, what: string, min: number): string[] =>
      other === undefined
        ? []
        : [line(name, `${formatValue(own / other)} × ${what}`, `at least ${min} ×`, own / other >= min)]
    if (/drain.*, \d+ workers$/.test(name) && peers.length > 0)
      return against(Math.max(...peers.map((row) => row.value)), 'the best peer', AIMS.drainMin)
    if (name.endsWith('pick-up p99') && peers.length > 0) {
      const best = Math.min(...peers.map((row) => row.value))
      return [line(name, `${formatValue(own / best)} × the best peer`, 'at most 1 ×', own <= best)]
    }
    if (name.endsWith(', 2 processes')) {
      const alone = name.replace('2 processes', '1 process')
      const bare = [found.value(name, 'limit'), found.value(alone, 'limit')] as const
      // Where server and clients share two cores, a bare loop has little to gain from a second process either.
      const most = bare[0] && bare[1] ? `, the bare database ${formatValue(bare[0] / bare[1])} ×` : ''
      return against(found.value(alone, 'tidemark'), `one process${most}`, AIMS.processesMin)
    }
    if (name.endsWith('1 in 1,000 fails'))
      return against(
        found.value(name.replace('1 in 1,000', 'none'), 'tidemark'),
        'the rate without',
        AIMS.failingMin,
      )
    if (/one job after .*, stored after$/.test(name))
      return [line(name, `${formatValue(own)} s`, `at most ${AIMS.fanInSMax} s`, own <= AIMS.fanInSMax)]
    if (name === settled[1])
      return against(found.value(settled[0]!, 'tidemark'), `the rate of "${settled[0]}"`, AIMS.settledMin)
    return []
  })
}

function line(name: string, reached: string, aim: string, isMet: boolean): string {
  return `${name}: ${reached} (${aim}: ${isMet ? 'met' : '**missed**'})`
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

/** What a second process adds. */
function processLines(found: Found): string[] {
  return found.rows.flatMap((row) => {
    if (!row.case.endsWith(', 2 processes')) return []
    const alone = found.value(row.case.replace(', 2 processes', ', 1 process'), row.subject)
    if (alone === undefined) return []
    return [`${row.case} · ${row.subject}: ${formatValue(row.value / alone)} × one process`]
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
