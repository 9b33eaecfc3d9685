/** Tidemark itself, through its public interface only; what is left is read from the ledger as it is. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { z } from 'zod'
import { sleep, systemClock } from '../../src/base/clock.ts'
import {
  createEngine,
  defineJob,
  type Engine,
  type Ledger,
  openLedger,
  request,
  TidemarkError,
} from '../../src/engine/index.ts'
import { Connection, parseTarget } from '../../src/ledger/libsql/connection.ts'
import {
  EFFECTS_TABLE,
  payload,
  payloads,
  type StartOptions,
  type Subject,
  type SubjectOptions,
} from './subject.ts'

const POLL_MS = 1
const BATCH = 1000
const INSERT_EFFECT = 'INSERT INTO effects(n) VALUES (?)'
const FAR_MS = 24 * 3600 * 1000
/** Of the books first, which are a few rows. The engine has jobs of its own, which come and go on a schedule. */
const BOOKED = `SELECT coalesce(sum(n), 0) AS count FROM tallies
  WHERE stage IN ('ready', 'claimed') AND kind NOT LIKE 'engine.%'`
/** Put so that both parts are read from an index that holds only such jobs, whatever else is in the ledger. */
const LEFT = `SELECT
  (SELECT count(*) FROM jobs WHERE state = 'claimed' AND owner > 0 AND kind NOT LIKE 'engine.%') +
  (SELECT count(*) FROM jobs WHERE state = 'pending' AND wait IS NULL AND lane IN ('interactive', 'bulk')
    AND kind NOT LIKE 'engine.%') AS count`
const FAILS_EVERY = 1000

export function tidemarkSubject(options: SubjectOptions): Subject {
  const { target } = options
  let onJobs: StartOptions['onJobs'] = () => {}
  let each: StartOptions['each']
  let onLast = (): void => {}
  let ledger: Ledger
  let engine: Engine
  const schema = z.object({ n: z.number() })
  const leaf = defineJob({ kind: 'bench.leaf', payload: schema, run: () => undefined })
  const last = defineJob({ kind: 'bench.last', payload: schema, run: () => onLast() })
  const keyed = defineJob({
    kind: 'bench.keyed',
    payload: schema,
    key: ({ n }) => `key ${n}`,
    run: () => undefined,
  })
  const noop = defineJob({
    kind: 'bench.noop',
    payload: schema,
    run: ({ payload: { n } }) => {
      onJobs(1)
      if (each === 'fail' && n % FAILS_EVERY === 0) return { effects: failForGood }
      if (each !== 'child' && each) return { effects: async (tx) => void (await tx.run(INSERT_EFFECT, [n])) }
      return each === 'child' ? { jobs: [request(leaf, { n })] } : undefined
    },
  })
  let keys = 0
  const reader = createReader(options)

  return {
    async setup() {
      ledger =
        target.kind === 'sqlite'
          ? await openLedger(`sqlite:${target.file}`, { synchronous: target.synchronous })
          : await openLedger(target.url)
      // On PostgreSQL it is there for everybody.
      if (target.kind !== 'postgres') await ledger.migrateApp('bench', [[EFFECTS_TABLE]])
      engine = await createEngine({ ledger, jobs: [noop, leaf, last, keyed], workers: options.concurrency })
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
      each = start.each
      await engine.start()
    },
    async enqueueKeyed(count) {
      await engine.enqueueMany(
        keyed,
        payloads(count).map(() => ({ n: keys++ })),
      )
    },
    async fanIn(count, ran) {
      onLast = ran
      await engine.write({
        jobs: payloads(count).map((one) => request(leaf, one)),
        followUp: request(last, payload(0)),
      })
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

async function failForGood(): Promise<void> {
  throw new TidemarkError('meant to fail', { kind: 'permanent' })
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
        const booked = Number(database.prepare(BOOKED).get()?.count)
        return booked > 0 ? booked : Number(database.prepare(LEFT).get()?.count)
      },
      async close() {
        database.close()
      },
    }
  }
  if (target.kind === 'libsql') {
    const connection = new Connection(parseTarget(target.url, undefined))
    const stream = connection.stream()
    const count = async (sql: string): Promise<number> => {
      const { results } = await stream.batch([{ sql }], { isFirst: true })
      return Number(results[0]!.rows()[0]![0])
    }
    return {
      open: async () => {},
      async left() {
        const booked = await count(BOOKED)
        return booked > 0 ? booked : await count(LEFT)
      },
      close: async () => connection.close(),
    }
  }
  const client = new pg.Client({ connectionString: target.url, options: '-c search_path=tidemark' })
  const count = async (sql: string): Promise<number> => {
    const { rows } = await client.query<{ count: string }>(sql)
    return Number(rows[0]?.count)
  }
  return {
    async open() {
      await client.connect()
    },
    async left() {
      const booked = await count(BOOKED)
      return booked > 0 ? booked : await count(LEFT)
    },
    async close() {
      await client.end()
    },
  }
}
