/**
 * plainjob on better-sqlite3, its driver on Node. It sets synchronous = NORMAL itself; the wanted
 * setting is put back after it. Each of its workers claims and completes one job per transaction.
 */
import { loadPeer } from '../peers.ts'
import {
  payload,
  payloads,
  type StartOptions,
  type Subject,
  type SubjectOptions,
  sqliteTarget,
} from './subject.ts'

type Database = {
  pragma(statement: string): unknown
  prepare(sql: string): { run(...values: unknown[]): unknown; get(): unknown }
}
type Queue = {
  add(type: string, data: unknown): unknown
  addMany(type: string, data: unknown[]): unknown
  countJobs(options: { status: number }): number
  close(): void
}
type Worker = { start(): Promise<void>; stop(): Promise<void> }
type Plainjob = {
  better(database: Database): unknown
  defineQueue(options: object): Queue
  defineWorker(type: string, run: () => void, options: object): Worker
}

const KIND = 'noop'
const STATUS = { pending: 0, processing: 1, done: 2 }
const QUIET = { error: console.error, warn: ignore, info: ignore, debug: ignore }

/** `pollMs` is the only way that an idle plainjob learns of a new job; 1,000 is its default. */
export function plainjobSubject(options: SubjectOptions & { pollMs: number }): Subject {
  const { file, synchronous } = sqliteTarget(options.target)
  let database: Database
  let queue: Queue
  let peer: Plainjob
  let workers: { worker: Worker; ended: Promise<void> }[] = []

  function unsettled(): number {
    return queue.countJobs({ status: STATUS.pending }) + queue.countJobs({ status: STATUS.processing })
  }

  return {
    async setup() {
      const driver = await loadPeer<{ default: new (file: string) => Database }>('better-sqlite3')
      peer = await loadPeer<Plainjob>('plainjob')
      database = new driver.default(file)
      queue = peer.defineQueue({ connection: peer.better(database), logger: QUIET })
      database.pragma(`synchronous = ${synchronous}`)
    },
    async enqueueOne(n) {
      queue.add(KIND, payload(n))
    },
    async enqueueMany(count) {
      queue.addMany(KIND, payloads(count))
    },
    async start({ onJobs }: StartOptions) {
      workers = Array.from({ length: options.concurrency }, () => {
        const worker = peer.defineWorker(KIND, () => onJobs(1), {
          queue,
          pollIntervall: options.pollMs,
          logger: QUIET,
        })
        return { worker, ended: worker.start() }
      })
    },
    async drained() {
      // The last handlers have run; their completions follow within the same turns of the loop.
      while (unsettled() > 0) await new Promise((resolve) => setImmediate(resolve))
    },
    async left() {
      return unsettled()
    },
    async settle(count) {
      for (let stored = 0; stored < count; stored += 1000) queue.addMany(KIND, payloads(1000))
      // What a drain would leave: it keeps finished jobs and only changes their status.
      database.prepare(`UPDATE plainjob_jobs SET status = ${STATUS.done}`).run()
    },
    async teardown() {
      await Promise.all(workers.map(({ worker }) => worker.stop()))
      await Promise.all(workers.map(({ ended }) => ended))
      queue.close()
    },
  }
}

function ignore(): void {}
