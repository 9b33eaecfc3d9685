/**
 * The bare limit on libSQL: the statements of the ledger, on its tables, for 1,000 jobs in one request that is a
 * transaction. What the ledger does besides (leases, tallies, fair shares, dependents, the witness) is not in it.
 */
import { Connection, parseTarget, type Step, type StepResult } from '../../src/ledger/libsql/connection.ts'
import { DONE, INSERT, TAKE, takenRow } from '../../src/ledger/libsql/jobs.ts'
import { openLedger } from '../../src/ledger/open.ts'
import {
  libsqlUrl,
  payload,
  payloads,
  type StartOptions,
  type Subject,
  type SubjectOptions,
} from './subject.ts'

const BATCH = 1_000
const OWNER = 1
const KIND = 'bench'
const NOW = 1

export function libsqlLimit(options: SubjectOptions): Subject {
  const url = libsqlUrl(options.target)
  const connection = new Connection(parseTarget(url, undefined))
  const stream = connection.stream()
  let onJobs: StartOptions['onJobs'] | undefined
  let loop: Promise<unknown> | undefined
  let stopped = false

  async function transaction(steps: readonly Step[]): Promise<StepResult[]> {
    const all: Step[] = [{ sql: 'BEGIN IMMEDIATE' }, ...steps, { sql: 'COMMIT' }]
    const chained = all.map((step, at): Step => (at === 0 ? step : { ...step, when: 'open' }))
    const { results, errors } = await stream.batch(chained, { isFirst: true })
    for (const error of errors) if (error) throw error
    return results.slice(1, -1).map((result) => result!)
  }

  function insert(list: readonly { n: number }[]): Step {
    const rows = list.map((one) => [
      ...[KIND, null, 0, null, null, 'bulk', 0, null, null, 0],
      ...[JSON.stringify(one), null, 1, null, NOW],
    ])
    return { sql: INSERT, args: [JSON.stringify(rows)] }
  }

  const take = (n: number): Step => ({
    sql: TAKE,
    args: [OWNER, NOW, 'bulk', 0, KIND, Number.MIN_SAFE_INTEGER, n, Number.MAX_SAFE_INTEGER],
  })

  async function work(): Promise<void> {
    let ids: number[] = []
    do {
      const done: Step = { sql: DONE, args: [NOW, JSON.stringify(ids), 1, OWNER] }
      const results = await transaction(ids.length > 0 ? [done, take(BATCH)] : [take(BATCH)])
      ids = results
        .at(-1)!
        .rows()
        .map((row) => takenRow(row).row[0])
      if (ids.length > 0) onJobs?.(ids.length)
    } while (ids.length > 0 && !stopped)
  }

  return {
    async setup() {
      await (await openLedger(url)).close()
    },
    async enqueueOne(n) {
      await transaction(onJobs ? [insert([payload(n)]), take(1)] : [insert([payload(n)])])
      onJobs?.(1)
    },
    async enqueueMany(count) {
      await transaction([insert(payloads(count))])
    },
    async start(start) {
      onJobs = start.onJobs
      loop = work()
    },
    async drained() {
      await loop
    },
    async left() {
      const sql = `SELECT count(*) FROM jobs WHERE state <> 'done'`
      const { results } = await stream.batch([{ sql }], { isFirst: true })
      return Number(results[0]!.rows()[0]![0])
    },
    async teardown() {
      stopped = true
      await loop
      connection.close()
    },
  }
}
