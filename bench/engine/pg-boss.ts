/**
 * pg-boss with what it has for speed: LISTEN/NOTIFY, several fetchers, batches, and fetching again at once
 * after a full batch. Of 1 … 10 fetchers with batches of 10 … 4,000, four with 500 were among the fastest here;
 * from about a thousand jobs in flight on, the differences are within the noise.
 * A handler gets a whole batch, so that far more jobs are in flight than the workers that others have.
 */
import pg from 'pg'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { loadPeer } from '../peers.ts'
import { payload, payloads, postgresUrl, type Subject, type SubjectOptions } from './subject.ts'

type Job = { id: string; data: { n: number } }
type Boss = {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  stop(options: object): Promise<void>
  createQueue(name: string, options: object): Promise<void>
  send(name: string, data: object): Promise<unknown>
  insert(name: string, jobs: { data: object }[]): Promise<unknown>
  flow(jobs: object[]): Promise<unknown>
  work(name: string, options: object, handler: (jobs: Job[]) => Promise<void>): Promise<unknown>
}

const QUEUE = 'noop'
const GATE = 'gate'
const FETCHERS = 4
const BATCH = 500
const POLL_MS = 1
const FLOW_MAX = 1000
/** Every fetcher has at most one batch uncompleted, so the jobs to wait for are among the last handed out. */
const RECENT_BATCHES = 4 * FETCHERS

export function pgBossSubject(options: SubjectOptions): Subject {
  const connectionString = postgresUrl(options.target)
  const client = new pg.Client({ connectionString })
  const pool = new pg.Pool({ connectionString, max: FETCHERS, pipeline: true } as pg.PoolConfig)
  const recent: string[][] = []
  let boss: Boss

  return {
    async setup() {
      const { PgBoss } = await loadPeer<{ PgBoss: new (options: object) => Boss }>('pg-boss')
      boss = new PgBoss({
        connectionString,
        max: 10,
        useListenNotify: true,
        schedule: false,
        supervise: false,
      })
      boss.on('error', (error) => console.error(error.message))
      await boss.start()
      await boss.createQueue(QUEUE, { notify: true })
      await client.connect()
    },
    async enqueueOne(n) {
      await boss.send(QUEUE, payload(n))
    },
    async enqueueMany(count) {
      await boss.insert(
        QUEUE,
        payloads(count).map((data) => ({ data })),
      )
    },
    async start({ onJobs, each }) {
      const work = {
        batchSize: BATCH,
        localConcurrency: Math.min(FETCHERS, options.concurrency),
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
      }
      await boss.work(QUEUE, work, async (jobs) => {
        recent.push(jobs.map((job) => job.id))
        if (recent.length > RECENT_BATCHES) recent.shift()
        onJobs(jobs.length)
        if (each === 'insert') await insertEffects(jobs)
      })
    },
    async drained() {
      const sql = `SELECT 1 FROM pgboss.job WHERE name = $1 AND id = ANY($2::uuid[]) AND state < 'completed' LIMIT 1`
      while ((await client.query(sql, [QUEUE, recent.flat()])).rowCount) await sleep(systemClock, POLL_MS)
    },
    async left() {
      const sql = `SELECT 1 FROM pgboss.job WHERE name = $1 AND state < 'completed' AND NOT blocked LIMIT 1`
      return (await client.query(sql, [QUEUE])).rowCount ?? 0
    },
    async settle(count) {
      // Copies of one job that it completed itself: what a drain of so many would leave, in less time.
      await boss.send(QUEUE, payload(0))
      await client.query(
        `UPDATE pgboss.job SET state = 'completed', started_on = now(), completed_on = now()`,
      )
      const { rows } = await client.query<{ columns: string }>(
        `SELECT string_agg(quote_ident(column_name), ', ') AS columns FROM information_schema.columns
         WHERE table_schema = 'pgboss' AND table_name = 'job' AND column_name <> 'id' AND is_generated = 'NEVER'`,
      )
      const columns = rows[0]?.columns ?? ''
      await client.query(
        `INSERT INTO pgboss.job (id, ${columns})
         SELECT gen_random_uuid(), ${columns} FROM pgboss.job, generate_series(1, $1::int)`,
        [count],
      )
    },
    async block(count) {
      await boss.createQueue(GATE, {})
      for (let made = 0; made < count; made += FLOW_MAX) {
        const children = payloads(Math.min(FLOW_MAX, count - made)).map((data, index) => ({
          ref: `child-${index}`,
          name: QUEUE,
          data,
          dependsOn: ['gate'],
        }))
        await boss.flow([{ ref: 'gate', name: GATE, data: {} }, ...children])
      }
    },
    async teardown() {
      await boss.stop({ graceful: true, close: true, timeout: 5000 })
      await client.end()
      await pool.end()
    },
  }

  /** A batch shares a transaction, and no statement of it waits for the one before. */
  async function insertEffects(jobs: readonly Job[]): Promise<void> {
    const connection = await pool.connect()
    try {
      const insert = { name: 'effect', text: 'INSERT INTO effects(n) VALUES ($1)' }
      await Promise.all([
        connection.query('BEGIN'),
        ...jobs.map(({ data }) => connection.query({ ...insert, values: [data.n] })),
        connection.query('COMMIT'),
      ])
    } finally {
      connection.release()
    }
  }
}
