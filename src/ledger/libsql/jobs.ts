/**
 * The hot statements on libSQL: one for a batch, whatever its size, since each costs its share of a request: 1,000 rows
 * in one JSON text took 16 ms to insert, as rows of one VALUES 28, and as 1,000 statements of one request 120 (measured).
 */
import type {
  ClaimedJob,
  ClaimShare,
  Edge,
  InsertRow,
  Lane,
  ReadyQueue,
  Taking,
  Tx,
  Value,
} from '../contract.ts'
import { chunks } from '../dependencies.ts'
import {
  INSERT_EDGES,
  INSERT_JOBS,
  IS_OWN,
  IS_READY,
  jobValues,
  KIND_ORDER,
  SET_DONE,
  TAKE_ROWS,
  UNLESS_KEY_TAKEN,
} from '../sqlite-sql.ts'
import { claimedJob, TAKEN_BYTES, type TakenRow, takenColumns } from '../taken-row.ts'
import type { Statements } from './tx.ts'

const COLUMNS = 15
/**
 * Of one statement; several go into one request as long as it is not too large (tx.ts). A value may have 5 MB on the
 * server, by default.
 */
const ROWS_PER_STATEMENT_MAX = 1_000
const CHARACTERS_PER_STATEMENT_MAX = 1_000_000
const EDGES_PER_STATEMENT_MAX = 10_000

export const INSERT = `${INSERT_JOBS}
  SELECT ${Array.from({ length: COLUMNS }, (_, at) => `value ->> ${at}`).join(', ')} FROM json_each(?) WHERE true
  ${UNLESS_KEY_TAKEN} RETURNING id, kind, key`
/** For one whose payload, written as JSON once more, might be too large a value. */
const INSERT_LARGE = `${INSERT_JOBS} VALUES (${Array(COLUMNS).fill('?').join(', ')})
  ${UNLESS_KEY_TAKEN} RETURNING id, kind, key`

/**
 * Rows are inserted, and told, in the order of the list. Where a key is taken a row is left out; the rest match up by
 * kind and key. The second of two with one key is never sent: the first may have been refused.
 */
export async function insertJobs(tx: Tx, rows: readonly InsertRow[]): Promise<(number | null)[]> {
  const seen = new Set<string>()
  const sent = rows.filter((row) => {
    if (row.key === null) return true
    const name = `${row.kind}\n${row.key}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
  const inserts = [...insertsOf(sent)].map(([sql, params]) =>
    (tx as Statements).arrays<[number, string, string | null]>(sql, params),
  )
  const added = (await Promise.all(inserts)).flat()
  const kept = new Set(sent)
  let at = 0
  return rows.map((row) => {
    const next = added[at]
    if (!next || next[1] !== row.kind || next[2] !== row.key || !kept.has(row)) return null
    at += 1
    return next[0]
  })
}

function* insertsOf(rows: readonly InsertRow[]): Generator<[sql: string, params: Value[]]> {
  let texts: string[] = []
  let characters = 0
  for (const row of rows) {
    const values = jobValues(row)
    const text = JSON.stringify(values)
    const isLarge = text.length > CHARACTERS_PER_STATEMENT_MAX
    const isFull =
      texts.length === ROWS_PER_STATEMENT_MAX || characters + text.length > CHARACTERS_PER_STATEMENT_MAX
    if (texts.length > 0 && isFull) {
      yield [INSERT, [`[${texts.join()}]`]]
      texts = []
      characters = 0
    }
    if (isLarge) yield [INSERT_LARGE, values]
    else texts.push(text)
    characters += isLarge ? 0 : text.length
  }
  if (texts.length > 0) yield [INSERT, [`[${texts.join()}]`]]
}

const EDGES = `${INSERT_EDGES} SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true
  ON CONFLICT DO NOTHING`

export async function insertEdges(tx: Tx, edges: readonly Edge[]): Promise<void> {
  const inserts = [...chunks(edges, EDGES_PER_STATEMENT_MAX)].map((part) => {
    const rows = part.map(({ depId, jobId, onFailure, met }) => [depId, jobId, onFailure, met])
    return tx.run(EDGES, [JSON.stringify(rows)])
  })
  await Promise.all(inserts)
}

/** Those of one attempt, which nearly all are; each other attempt is a statement more. */
export const DONE = `${SET_DONE} WHERE id IN (SELECT value FROM json_each(?)) AND attempt = ? AND ${IS_OWN} RETURNING id`

export async function settleDone(
  tx: Tx,
  owner: number,
  jobs: readonly ClaimedJob[],
  now: number,
): Promise<Set<number>> {
  const updates = [...Map.groupBy(jobs, (job) => job.attempt)].map(([attempt, group]) =>
    (tx as Statements).arrays<[number]>(DONE, [
      now,
      JSON.stringify(group.map(({ id }) => id)),
      attempt,
      owner,
    ]),
  )
  return new Set((await Promise.all(updates)).flat().map(([id]) => id))
}

const NEXT = `SELECT id FROM jobs WHERE ${IS_READY} AND lane = ?1`

/** From one (stream, kind) to the next with a seek or two each, as sqlite/jobs.ts does it in a loop. */
const QUEUES = `WITH RECURSIVE head(id) AS (
    SELECT (${NEXT} AND stream_id >= ?2 ORDER BY stream_id, ${KIND_ORDER} LIMIT 1)
    UNION ALL
    SELECT coalesce(
      (${NEXT} AND stream_id = at.stream_id AND kind > at.kind ORDER BY ${KIND_ORDER} LIMIT 1),
      (${NEXT} AND stream_id > at.stream_id ORDER BY stream_id, ${KIND_ORDER} LIMIT 1))
    FROM head JOIN jobs AS at ON at.id = head.id LIMIT ?3)
  SELECT stream_id, kind, priority FROM head JOIN jobs ON jobs.id = head.id`

export async function readyQueues(
  tx: Tx,
  lane: Lane,
  { fromStream, max }: { fromStream: number; max: number },
): Promise<ReadyQueue[]> {
  const rows = await (tx as Statements).arrays<[number, string, number]>(QUEUES, [lane, fromStream, max])
  return rows.map(([streamId, kind, priority]) => ({ streamId, kind, priority }))
}

const IS_LARGE = `${TAKEN_BYTES} > ${256 * 1024}`

/**
 * A row is one text, and a checkpoint, where there is one. As 13 values, each with its type, 2,000 rows took this process
 * 7.6 µs each to read and not 3.7, and the server 14 µs and not 12 to take and settle (measured). The payload stands
 * behind the first line as it is: written as JSON once more, it might be twice as long.
 *
 * Of a large job it is told how large it is, in place of its payload: its texts are asked for once it is kept. So an
 * answer, which may have 10 MB on the server by default, has at most the bytes of a claim, 4 MB, and one job that is not
 * large for each share of a wave; or the bytes of a claim and one job.
 */
export const TAKE = `${TAKE_ROWS} RETURNING json_array(${takenColumns(`iif(${IS_LARGE}, ${TAKEN_BYTES}, NULL)`, 'NULL')})
  || char(10) || iif(${IS_LARGE}, '', payload), iif(${IS_LARGE}, NULL, checkpoint)`

type Taken = { row: TakenRow; largeBytes: number | null }

export function takenRow([text, checkpoint]: readonly Value[]): Taken {
  const lineEnd = (text as string).indexOf('\n')
  const row = JSON.parse((text as string).slice(0, lineEnd)) as TakenRow
  const largeBytes = row[5] as unknown as number | null
  row[5] = (text as string).slice(lineEnd + 1)
  row[10] = checkpoint as string | null
  return { row, largeBytes }
}

const TEXTS = `SELECT id, payload, checkpoint FROM jobs WHERE id IN (SELECT value FROM json_each(?))`

async function readTexts(tx: Tx, jobs: ReadonlySet<ClaimedJob>): Promise<void> {
  const ids = JSON.stringify([...jobs].map(({ id }) => id))
  const rows = await (tx as Statements).arrays<[number, string, string | null]>(TEXTS, [ids])
  const texts = new Map(rows.map(([id, payload, checkpoint]) => [id, { payload, checkpoint }]))
  for (const job of jobs) Object.assign(job, texts.get(job.id)!)
}

/** Of what a wave has brought beyond the bytes that were asked for, all but one job is given back. */
const GIVE_BACK = `UPDATE jobs SET state = 'pending', owner = NULL, attempt = attempt - 1, claimed_at = NULL
  WHERE id IN (SELECT value FROM json_each(?))`
/** Shares that are asked for together; each may bring one job more than its bytes. */
const WAVE_MAX = 16

export async function take(
  tx: Tx,
  lane: Lane,
  shares: readonly ClaimShare[],
  { owner, now, bytesMax }: Taking,
): Promise<ClaimedJob[]> {
  const jobs: ClaimedJob[] = []
  let left = bytesMax
  for (const wave of chunks(shares, WAVE_MAX)) {
    if (left <= 0) break
    const most = left
    const large = new Set<ClaimedJob>()
    const taken = wave.map(async ({ streamId, kind, n, priorityMin, bytesMax: shareMax }) => {
      const params = [owner, now, lane, streamId, kind, priorityMin, n, Math.min(most, shareMax)]
      const rows = await (tx as Statements).arrays<[string, string | null]>(TAKE, params)
      return rows.map((values) => {
        const { row, largeBytes } = takenRow(values)
        const job = claimedJob(row, lane, streamId, kind)
        if (largeBytes === null) return job
        job.bytes = largeBytes
        large.add(job)
        return job
      })
    })
    const surplus: number[] = []
    for (const job of (await Promise.all(taken)).flat()) {
      if (left > 0) jobs.push(job)
      else {
        surplus.push(job.id)
        large.delete(job)
      }
      left -= job.bytes
    }
    if (surplus.length > 0) await tx.run(GIVE_BACK, [JSON.stringify(surplus)])
    if (large.size > 0) await readTexts(tx, large)
  }
  return jobs
}
