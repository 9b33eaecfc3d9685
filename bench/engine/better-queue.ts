/**
 * better-queue with its SQLite store, for reference only. The store hard-codes synchronous = OFF with the
 * journal in memory and acknowledges before it writes, so no setting of it is durable; the adapter reaches
 * into its private connection to make the drain comparable, and leaves out enqueueing and pick-up, which
 * cannot be made so. A handler takes `concurrency` jobs as one batch (its fastest form at that number of
 * jobs in flight), which succeed or fail together.
 */
import { sleep, systemClock } from '../../src/base/clock.ts'
import { loadPeer } from '../peers.ts'
import { payload, type StartOptions, type Subject, type SubjectOptions, sqliteTarget } from './subject.ts'

type Callback = (error: unknown, row?: Record<string, number>) => void
type Store = { _db: { exec(sql: string, done: Callback): void; get(sql: string, done: Callback): void } }
type Queue = {
  _connected: boolean
  push(task: object): void
  resume(): void
  destroy(done: () => void): void
}
type QueueClass = new (run: (tasks: unknown, done: Callback) => void, options: object) => Queue

const POLL_MS = 1

export function betterQueueSubject(options: SubjectOptions): Subject {
  const { file, synchronous } = sqliteTarget(options.target)
  let queue: Queue
  let store: Store
  let onJobs: StartOptions['onJobs'] = () => {}

  async function count(): Promise<number> {
    return await new Promise((resolve, reject) => {
      store._db.get('SELECT count(*) AS count FROM task', (error, row) =>
        error ? reject(error) : resolve(row?.count ?? 0),
      )
    })
  }

  return {
    async setup() {
      const { default: Queue } = await loadPeer<{ default: QueueClass }>('better-queue')
      const { default: Sqlite } = await loadPeer<{ default: new (options: object) => Store }>(
        'better-queue-sqlite',
      )
      store = new Sqlite({ path: file })
      const run = (tasks: unknown, done: Callback): void => {
        onJobs(Array.isArray(tasks) ? tasks.length : 1)
        done(null)
      }
      queue = new Queue(run, { store, autoResume: false, batchSize: options.concurrency, concurrent: 1 })
      // It starts paused only when told so before it has connected, and offers no event for that moment.
      Object.assign(queue, { _stopped: true })
      while (!queue._connected) await sleep(systemClock, POLL_MS)
      await new Promise<void>((resolve, reject) => {
        const settings = `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`
        store._db.exec(settings, (error) => (error ? reject(error) : resolve()))
      })
    },
    async enqueueOne(n) {
      queue.push(payload(n))
    },
    async enqueueMany(jobs) {
      const before = await count()
      for (let n = 0; n < jobs; n++) queue.push({ id: `${before + n}`, ...payload(n) })
      while ((await count()) < before + jobs) await sleep(systemClock, POLL_MS)
    },
    async start(start) {
      onJobs = start.onJobs
      queue.resume()
    },
    async drained() {
      while ((await count()) > 0) await sleep(systemClock, POLL_MS)
    },
    left: count,
    async teardown() {
      await new Promise<void>((resolve) => queue.destroy(resolve))
    },
  }
}
