/** graphile-worker. It deletes a job when it is done, so it keeps no record that could grow. */
import pg from 'pg'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { loadPeer } from '../peers.ts'
import { payload, payloads, postgresUrl, type Subject, type SubjectOptions } from './subject.ts'

type WorkerUtils = {
  migrate(): Promise<void>
  addJob(identifier: string, payload: unknown): Promise<unknown>
  addJobs(jobs: { identifier: string; payload: unknown }[]): Promise<unknown>
  release(): Promise<void>
}
type Helpers = { query(sql: string, values: unknown[]): Promise<unknown> }
type Runner = { stop(): Promise<void> }
type Graphile = {
  Logger: new (factory: () => () => void) => object
  makeWorkerUtils(options: object): Promise<WorkerUtils>
  run(options: object): Promise<Runner>
}

const KIND = 'noop'
const POLL_MS = 1
/** Enough for each of 10 workers; a connection for each of 100 is more than the server's default allows. */
const POOL_MAX = 20

/**
 * With `localQueue` jobs are claimed that many at a time and completed in batches without delay: its fastest
 * form. Of 500 … 16,000, 4,000 was as fast as any here, and no delay up to 250 ms was clearly better than 0.
 * Without it, every job is claimed and completed on its own: the default.
 */
export function graphileSubject(options: SubjectOptions & { localQueue: number | undefined }): Subject {
  const pool = new pg.Pool({ connectionString: postgresUrl(options.target), max: POOL_MAX })
  pool.on('error', () => {}) // It asks for these two; a lost connection shows as a failed query.
  pool.on('connect', (client) => client.on('error', () => {}))
  let peer: Graphile
  let utils: WorkerUtils
  let runner: Runner | undefined
  let logger: object

  async function left(): Promise<number> {
    const result = await pool.query('SELECT 1 FROM graphile_worker._private_jobs LIMIT 1')
    return result.rowCount ?? 0
  }

  return {
    async setup() {
      peer = await loadPeer<Graphile>('graphile-worker')
      logger = new peer.Logger(() => () => {})
      utils = await peer.makeWorkerUtils({ pgPool: pool, logger })
      await utils.migrate()
    },
    async enqueueOne(n) {
      await utils.addJob(KIND, payload(n))
    },
    async enqueueMany(count) {
      await utils.addJobs(payloads(count).map((job) => ({ identifier: KIND, payload: job })))
    },
    async start({ onJobs, each }) {
      const fast = {
        localQueue: { size: options.localQueue },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      }
      const insertEffect = async ({ n }: { n: number }, { query }: Helpers): Promise<void> => {
        onJobs(1)
        await query('INSERT INTO effects(n) VALUES ($1)', [n])
      }
      runner = await peer.run({
        pgPool: pool,
        logger,
        concurrency: options.concurrency,
        noHandleSignals: true,
        parsedCronItems: [],
        taskList: {
          [KIND]: each === 'insert' ? insertEffect : () => onJobs(1),
        },
        preset: { worker: options.localQueue ? fast : {} },
      })
    },
    async drained() {
      // Its `job:complete` event comes before the batched DELETE: only the table tells.
      while ((await left()) > 0) await sleep(systemClock, POLL_MS)
    },
    left,
    async teardown() {
      await runner?.stop()
      await utils.release()
      await pool.end()
    },
  }
}
