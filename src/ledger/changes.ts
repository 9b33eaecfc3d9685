/**
 * What one transaction has changed so far, added up in memory and written once before its commit:
 * tallies (jobs per kind and stage, exact because they commit with the jobs), counters per minute,
 * and the deltas of each touched segment.
 */
import type { MarkMove, SegmentRow, Tx, Value } from './contract.ts'
import type { JobState, Stage } from './states.ts'

export type SegmentDelta = {
  jobs: number
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
  /** Items that another job has taken over: skipped, as far as they turn out to be open. */
  left: number
  seal: boolean
}

export const COUNTER_MS = 60_000
/** A cycle may touch thousands of streams; SQLite takes 32,766 parameters, PostgreSQL 65,535. */
const ROWS_PER_STATEMENT_MAX = 1_000

export class Changes {
  readonly tallies = new Map<string, Map<Stage, number>>()
  readonly counters = new Map<string, { streamId: number; name: string; n: number }>()
  /** The last one: what comes in a row is mostly of one stream. */
  #counted: { streamId: number; name: string; n: number } | undefined
  readonly segments = new Map<number, SegmentDelta>()
  /** Jobs that reached a state which their dependents care about. */
  readonly ended: { id: number; state: JobState }[] = []
  readonly marks: MarkMove[] = []
  readonly unbalanced: SegmentRow[] = []
  readonly toStop: { id: number; owner: number }[] = []
  nextDueAt: number | null = null
  becameReady = 0
  control = false

  tally(kind: string, stage: Stage, n: number): void {
    let stages = this.tallies.get(kind)
    if (!stages) {
      stages = new Map()
      this.tallies.set(kind, stages)
    }
    stages.set(stage, (stages.get(stage) ?? 0) + n)
  }

  moved(kind: string, from: Stage, to: Stage, n = 1): void {
    this.tally(kind, from, -n)
    this.tally(kind, to, n)
  }

  count(name: string, streamId: number, n = 1): void {
    const last = this.#counted
    if (last && last.name === name && last.streamId === streamId) {
      last.n += n
      return
    }
    const key = `${streamId} ${name}`
    let counter = this.counters.get(key)
    if (!counter) {
      counter = { streamId, name, n: 0 }
      this.counters.set(key, counter)
    }
    counter.n += n
    this.#counted = counter
  }

  segment(id: number): SegmentDelta {
    let delta = this.segments.get(id)
    if (!delta) {
      delta = { jobs: 0, listed: 0, stored: 0, gone: 0, skipped: 0, bad: 0, left: 0, seal: false }
      this.segments.set(id, delta)
    }
    return delta
  }

  /** What a part of the transaction has changed, once it is sure to stay. */
  add(part: Changes): void {
    for (const [kind, stages] of part.tallies) for (const [stage, n] of stages) this.tally(kind, stage, n)
    for (const { name, streamId, n } of part.counters.values()) this.count(name, streamId, n)
    for (const [id, { seal, ...counts }] of part.segments) {
      const delta = this.segment(id)
      for (const [name, n] of Object.entries(counts)) delta[name as keyof typeof counts] += n
      delta.seal ||= seal
    }
    this.ended.push(...part.ended)
    this.marks.push(...part.marks)
    this.unbalanced.push(...part.unbalanced)
    this.toStop.push(...part.toStop)
    this.due(part.nextDueAt)
    this.becameReady += part.becameReady
    this.control ||= part.control
  }

  due(at: number | null): void {
    if (at !== null && (this.nextDueAt === null || at < this.nextDueAt)) this.nextDueAt = at
  }

  /** Writes tallies and counters; `slot` keeps processes out of each other's rows. */
  async flush(tx: Tx, slot: number, now: number): Promise<void> {
    const tallyRows: [number, string, string, number][] = []
    for (const [kind, stages] of this.tallies) {
      for (const [stage, n] of stages) if (n !== 0) tallyRows.push([slot, kind, stage, n])
    }
    // The same order everywhere, so that two processes never wait for each other's rows.
    tallyRows.sort((a, b) => (a[1] < b[1] || (a[1] === b[1] && a[2] < b[2]) ? -1 : 1))
    const writes: { sql: string; params: Value[] }[] = []
    if (tallyRows.length > 0) {
      writes.push({
        sql: `INSERT INTO tallies(slot, kind, stage, n) VALUES ${placeholders(tallyRows.length, 4)}
         ON CONFLICT (slot, kind, stage) DO UPDATE SET n = tallies.n + excluded.n`,
        params: tallyRows.flat(),
      })
    }
    const minute = Math.floor(now / COUNTER_MS)
    const counterRows = [...this.counters.values()]
      .filter((c) => c.n !== 0)
      .sort((a, b) => a.streamId - b.streamId || (a.name < b.name ? -1 : 1))
    for (let at = 0; at < counterRows.length; at += ROWS_PER_STATEMENT_MAX) {
      const part = counterRows.slice(at, at + ROWS_PER_STATEMENT_MAX)
      writes.push({
        sql: `INSERT INTO counters(slot, minute, stream_id, name, n) VALUES ${placeholders(part.length, 5)}
         ON CONFLICT (minute, stream_id, name, slot) DO UPDATE SET n = counters.n + excluded.n`,
        params: part.flatMap((c) => [slot, minute, c.streamId, c.name, c.n]),
      })
    }
    await sendEach(tx, writes, ({ sql, params }) => tx.run(sql, params))
  }
}

/**
 * One behind the other. On a server all are waited for together, and nothing is done there after one that failed. On a
 * file of SQLite one that fails may have ended the transaction (a full disk does), so that none follows it.
 */
export async function sendEach<T, R>(tx: Tx, list: readonly T[], send: (one: T) => Promise<R>): Promise<R[]> {
  if (tx.isRemote) return Promise.all(list.map(send))
  const results: R[] = []
  for (const one of list) results.push(await send(one))
  return results
}

export function placeholders(rows: number, columns: number): string {
  const row = `(${Array(columns).fill('?').join(',')})`
  return Array(rows).fill(row).join(',')
}

/**
 * `column` is one of `ids`. On a server that is one parameter: the text stays the same whatever the length, so
 * PostgreSQL prepares it once (500 parameters cost 0.7 ms to parse and plan, every time).
 */
export function oneOf(tx: Tx, ids: readonly number[]): { sql: string; params: Value[] } {
  if (tx.dialect === 'postgres') return { sql: '= ANY(?::bigint[])', params: [`{${ids.join(',')}}`] }
  if (tx.isRemote) return { sql: ONE_OF_LIST, params: [JSON.stringify(ids)] }
  return { sql: `IN (${marks(ids.length)})`, params: [...ids] }
}

const ONE_OF_LIST = 'IN (SELECT value FROM json_each(?))'

/** The same for texts. */
export function oneOfTexts(tx: Tx, texts: readonly string[]): { sql: string; params: Value[] } {
  if (tx.dialect === 'postgres') {
    return { sql: '= ANY(?::text[])', params: [textArray(texts)] }
  }
  if (tx.isRemote) return { sql: ONE_OF_LIST, params: [JSON.stringify(texts)] }
  return { sql: `IN (${marks(texts.length)})`, params: [...texts] }
}

/** Of PostgreSQL. */
export function textArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`
}

/** SQLite has one writer at a time: what a transaction has read stays so. */
export function forUpdate(tx: Tx): string {
  return tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
}

export function marks(n: number): string {
  return Array(n).fill('?').join(',')
}
