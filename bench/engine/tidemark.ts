/** Tidemark itself, through its public interface only; what is left is read from the ledger as it is. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { z } from 'zod'
import { sleep, systemClock } from '../../src/clock.ts'
import { createEngine, defineJob, type Engine, type Ledger, openLedger } from '../../src/engine/index.ts'
import { payload, payloads, type StartOptions, type Subject, type SubjectOptions } from './subject.ts'

const POLL_MS = 1
const BATCH = 1000
const FAR_MS = 24 * 3600 * 1000
/**
 * Put so that both parts are read from an index that holds only such jobs, whatever else is in the ledger.
 * The engine has jobs of its own, which come and go on a schedule.
 */
const LEFT = `SELECT
  (SELECT count(*) FROM jobs WHERE state = 'claimed' AND owner > 0 AND kind NOT LIKE 'engine.%') +
  (SELECT count(*) FROM jobs WHERE state = 'pending' AND wait IS NULL AND lane IN ('interactive', 'bulk')
    AND kind NOT LIKE 'engine.%') AS count`

export function tidemarkSubject(options: SubjectOptions): Subject {
  const { target } = options
  let onJobs: StartOptions['onJobs'] = () => {}
  let ledger: Ledger
  let engine: Engine
  const noop = defineJob({ kind: 'bench.noop', payload: z.object({ n: z.number() }), run: () => onJobs(1) })
  const reader = createReader(options)

  return {
    async setup() {
      ledger =
        target.kind === 'sqlite'
          ? await openLedger(`sqlite:${target.file}`, { synchronous: target.synchronous })
          : await openLedger(target.url)
      engine = await createEngine({ ledger, jobs: [noop], workers: options.concurrency })
      await reader.open()
    },
    async enqueueOne(n) {
      await engine.enqueue(noop, payload(n))
    },
    async enqueueMany(count) {
      await engine.enqueueMany(noop, payloads(count))
    },
    async start(start) {
      onJobs = start.onJobs
      await engine.start()
    },
    async drained() {
      // Not `engine.drained()`: that also waits for what is blocked, and a claim is best checked by others.
      while ((await reader.left()) > 0) await sleep(systemClock, POLL_MS)
    },
    left: reader.left,
    async settle(count) {
      for (let sent = 0; sent < count; sent += BATCH) await engine.enqueueMany(noop, payloads(BATCH))
      await engine.start()
      await engine.drained()
    },
    async block(count) {
      const gate = await engine.enqueue(noop, payload(0), { runAt: systemClock.now() + FAR_MS })
      for (let sent = 0; sent < count; sent += BATCH) {
        await engine.enqueueMany(noop, payloads(BATCH), { after: [gate.id] })
      }
    },
    async teardown() {
      await engine.stop()
      await ledger.close()
      await reader.close()
    },
  }
}

type Reader = { open(): Promise<void>; left(): Promise<number>; close(): Promise<void> }

/** A connection of its own, so that only what is committed counts. */
function createReader({ target }: SubjectOptions): Reader {
  if (target.kind === 'sqlite') {
    let database: DatabaseSync
    return {
      async open() {
        database = new DatabaseSync(target.file, { readOnly: true })
      },
      async left() {
        return Number(database.prepare(LEFT).get()?.count)
      },
      async close() {
        database.close()
      },
    }
  }
  const client = new pg.Client({ connectionString: target.url, options: '-c search_path=tidemark' })
  return {
    async open() {
      await client.connect()
    },
    async left() {
      const { rows } = await client.query<{ count: string }>(LEFT)
      return Number(rows[0]?.count)
    },
    async close() {
      await client.end()
    },
  }
}
