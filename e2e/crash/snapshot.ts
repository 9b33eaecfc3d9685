/**
 * The ledger as it stands at one instant, read by a connection of its own in one read-only transaction: the
 * oracle must not depend on the code that it judges, and other processes may be writing meanwhile.
 */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { sqliteFile } from '../../src/ledger/open.ts'

export type StreamFact = {
  id: number
  name: string
  mark: string | null
  mark_at: number
  tail_at: number
  cursor: string | null
}
export type SegmentFact = {
  id: number
  stream_id: number
  from_at: number
  to_at: number
  mark: string | null
  state: 'open' | 'sealed' | 'settled'
  open_jobs: number
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
}
export type JobFact = {
  id: number
  kind: string
  state: string
  wait: string | null
  deps_left: number
  owner: number | null
  segment_id: number | null
  payload: string
  checkpoint: string | null
  attempt: number
  failures: number
}
export type CountedFact = { name: string; value: string; times: number }
export type BadFact = { item: string; reason: string; tries: number; segment_id: number }

/** Every table that the oracle looks at. The workload keeps them small. */
const QUERIES = {
  streams: 'SELECT id, name, mark, mark_at, tail_at, cursor FROM streams ORDER BY name',
  segments: `SELECT id, stream_id, from_at, to_at, mark, state, open_jobs, listed, stored, gone, skipped, bad
    FROM segments ORDER BY stream_id, from_at`,
  jobs: `SELECT id, kind, state, wait, deps_left, owner, segment_id, payload, checkpoint, attempt, failures FROM jobs ORDER BY id`,
  workers: 'SELECT id, state FROM workers',
  errors: 'SELECT message, count(*) AS n FROM job_errors GROUP BY message ORDER BY message',
  unmet: 'SELECT job_id, count(*) AS n FROM job_deps WHERE met = 0 GROUP BY job_id',
  tallies: 'SELECT kind, stage, sum(n) AS n FROM tallies GROUP BY kind, stage',
  bad: 'SELECT item, reason, tries, segment_id FROM bad_items ORDER BY item',
  entries: 'SELECT name FROM ledger_entries ORDER BY name',
  violations: 'SELECT what FROM violations ORDER BY id',
  applied: 'SELECT name, value, times FROM applied ORDER BY name',
  told: 'SELECT name, value, times FROM told ORDER BY name',
  pages: 'SELECT name, value, times FROM pages ORDER BY name',
  parts: 'SELECT name, value, times FROM parts ORDER BY name',
  steps: 'SELECT name, value, times FROM steps ORDER BY name',
  digests: 'SELECT name, value, times FROM digests ORDER BY name',
  published: 'SELECT name, value, times FROM published ORDER BY name',
}

export type Snapshot = {
  streams: StreamFact[]
  segments: SegmentFact[]
  jobs: JobFact[]
  workers: { id: number; state: string }[]
  errors: { message: string; n: number }[]
  unmet: { job_id: number; n: number }[]
  tallies: { kind: string; stage: string; n: number }[]
  bad: BadFact[]
  entries: { name: string }[]
  violations: { what: string }[]
  applied: CountedFact[]
  told: CountedFact[]
  pages: CountedFact[]
  parts: CountedFact[]
  steps: CountedFact[]
  digests: CountedFact[]
  published: CountedFact[]
}

/** Undefined as long as the ledger or the workload's tables are not there yet. */
export async function takeSnapshot(url: string): Promise<Snapshot | undefined> {
  const read = async (): Promise<Record<string, unknown[]> | undefined> => {
    if (url.startsWith('postgres')) return readPostgres(url)
    return url.startsWith('http') ? readLibsql(url) : readSqlite(sqliteFile(url))
  }
  return (await read()) as Snapshot | undefined
}

function readSqlite(file: string): Record<string, unknown[]> | undefined {
  const db = new DatabaseSync(file, { timeout: 5_000 })
  try {
    db.exec('PRAGMA query_only = ON')
    if (!db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'violations'`).get()) return undefined
    db.exec('BEGIN')
    return Object.fromEntries(Object.entries(QUERIES).map(([name, sql]) => [name, db.prepare(sql).all()]))
  } finally {
    db.close()
  }
}

const NUMBERS = new Set([20, 21, 23, 1700])

async function readPostgres(url: string): Promise<Record<string, unknown[]> | undefined> {
  const types = { getTypeParser: (oid: number) => (NUMBERS.has(oid) ? Number : (text: string) => text) }
  const client = new pg.Client({ connectionString: url, types: types as pg.ClientConfig['types'] })
  client.on('error', () => {}) // the query that is under way gets the error too
  await client.connect()
  try {
    const there = await client.query(`SELECT to_regclass('tidemark.violations') AS found`)
    if (there.rows[0].found === null) return undefined
    await client.query('SET search_path = tidemark, public')
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const tables: Record<string, unknown[]> = {}
    for (const [name, sql] of Object.entries(QUERIES)) tables[name] = (await client.query(sql)).rows
    return tables
  } finally {
    await client.end()
  }
}

/** All statements of one request, between BEGIN and ROLLBACK, see the same. */
async function readLibsql(url: string): Promise<Record<string, unknown[]> | undefined> {
  const names = Object.keys(QUERIES)
  const there = `SELECT name FROM sqlite_schema WHERE name = 'violations'`
  const [found] = await libsqlRows(url, [there])
  if (found!.length === 0) return undefined
  const lists = await libsqlRows(url, ['BEGIN', ...Object.values(QUERIES), 'ROLLBACK'])
  return Object.fromEntries(names.map((name, at) => [name, lists[at + 1]!]))
}

type LibsqlValue = { type: string; value?: string | number }
type LibsqlResult = { cols: { name: string }[]; rows: LibsqlValue[][] }
type LibsqlAnswer = { results: { type: string; response?: { result?: LibsqlResult } }[] }

async function libsqlRows(url: string, statements: readonly string[]): Promise<Record<string, unknown>[][]> {
  const requests = [...statements.map((sql) => ({ type: 'execute', stmt: { sql } })), { type: 'close' }]
  const answer = await fetch(`${url}/v3/pipeline`, { method: 'POST', body: JSON.stringify({ requests }) })
  const { results } = (await answer.json()) as LibsqlAnswer
  return results.slice(0, -1).map(({ type, response }, at) => {
    if (type !== 'ok') throw new Error(`${statements[at]} failed: ${JSON.stringify(results[at])}`)
    const { cols, rows } = response!.result!
    const plain = ({ type, value = null }: { type: string; value?: string | number | null }): unknown =>
      type === 'integer' ? Number(value) : value
    return rows.map((row) => Object.fromEntries(cols.map(({ name }, n) => [name, plain(row[n]!)])))
  })
}

/** Does nobody hold a lock that a write would have to wait for? */
export async function isBetweenTransactions(url: string): Promise<boolean> {
  // A libSQL server ends a transaction whose process stands still.
  if (url.startsWith('http')) return true
  if (!url.startsWith('postgres')) return isSqliteFree(sqliteFile(url))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const open = await client.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`,
    )
    return open.rowCount === 0
  } finally {
    await client.end()
  }
}

function isSqliteFree(file: string): boolean {
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec('BEGIN IMMEDIATE')
    db.exec('ROLLBACK')
    return true
  } catch {
    return false // busy: somebody writes
  } finally {
    db.close()
  }
}
