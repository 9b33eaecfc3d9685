/**
 * The bare limit on PostgreSQL: prepared statements over pg, a table of three columns, and statements that
 * complete the last batch and claim the next. Each is one transaction and one round trip.
 */
import pg from 'pg'
import { systemClock } from '../../src/base/clock.ts'
import {
  payload,
  payloads,
  postgresUrl,
  type StartOptions,
  type Subject,
  type SubjectOptions,
} from './subject.ts'

const BATCH = 1000
const CONNECTIONS = 4
const STATE = { ready: 0, claimed: 1, done: 2 }

const TABLE = `
  CREATE TABLE IF NOT EXISTS jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state smallint NOT NULL DEFAULT ${STATE.ready},
    payload jsonb NOT NULL);
  CREATE INDEX IF NOT EXISTS jobs_ready ON jobs (id) WHERE state = ${STATE.ready}`
/** As an array, the selection is made once: joined by IN, it was seen to run into deadlocks. */
const TURN = `
  WITH completed AS (UPDATE jobs SET state = ${STATE.done} WHERE id = ANY($1::bigint[]))
  UPDATE jobs SET state = ${STATE.claimed}
  WHERE id = ANY(ARRAY(SELECT id FROM jobs WHERE state = ${STATE.ready} ORDER BY id FOR UPDATE SKIP LOCKED LIMIT $2))
  RETURNING id, payload`
const DEADLOCK = '40P01'
const INSERT_MANY = 'INSERT INTO jobs (payload) SELECT value FROM jsonb_array_elements($1::jsonb)'
const INSERT_READY = 'INSERT INTO jobs (payload) VALUES ($1)'
const INSERT_CLAIMED = `INSERT INTO jobs (state, payload) VALUES (${STATE.claimed}, $1) RETURNING id`

export function postgresLimit(options: SubjectOptions): Subject {
  const connectionString = postgresUrl(options.target)
  const clients: pg.Client[] = []
  let onJobs: StartOptions['onJobs'] | undefined
  let loop: Promise<unknown> | undefined
  let stopped = false

  async function connect(count: number): Promise<void> {
    while (clients.length < count) {
      const client = new pg.Client({ connectionString })
      await client.connect()
      clients.push(client)
    }
  }

  async function work(client: pg.Client, batch: number): Promise<void> {
    let ids: string[] = []
    do {
      const { rows } = await turn(client, ids, batch)
      ids = rows.map((row) => row.id)
      if (ids.length > 0) onJobs?.(ids.length)
    } while (ids.length > 0 && !stopped)
  }

  /** Settles and claims. Two of them may lock each other's rows: then nothing of one has happened. */
  async function turn(
    client: pg.Client,
    ids: string[],
    batch: number,
  ): Promise<pg.QueryResult<{ id: string }>> {
    for (;;) {
      try {
        return await client.query<{ id: string }>({ name: 'turn', text: TURN, values: [ids, batch] })
      } catch (thrown) {
        if ((thrown as { code?: string }).code !== DEADLOCK) throw thrown
      }
    }
  }

  const first = (): pg.Client => {
    const client = clients[0]
    if (!client) throw new Error('not connected')
    return client
  }

  return {
    async setup() {
      await connect(1)
      await first().query(TABLE)
    },
    async enqueueOne(n) {
      // With workers started this is the floor of a pick-up: one durable commit that stores and claims.
      const text = onJobs ? INSERT_CLAIMED : INSERT_READY
      await first().query({ name: text, text, values: [JSON.stringify(payload(n))] })
      onJobs?.(1)
    },
    async enqueueMany(count) {
      await first().query({ name: 'many', text: INSERT_MANY, values: [JSON.stringify(payloads(count))] })
    },
    async start(start) {
      onJobs = start.onJobs
      await connect(CONNECTIONS)
      loop = Promise.all(clients.map((client) => work(client, BATCH)))
    },
    async drained() {
      await loop
    },
    async left() {
      // Those that nobody has claimed by an index; claimed ones are some thousands at the end of the table.
      const sql = `SELECT 1 FROM jobs WHERE state = ${STATE.ready} LIMIT 1`
      if ((await first().query(sql)).rowCount) return 1
      return (await first().query(`SELECT 1 FROM jobs WHERE state <> ${STATE.done} LIMIT 1`)).rowCount ?? 0
    },
    async teardown() {
      stopped = true
      await loop
      await Promise.all(clients.map((client) => client.end()))
    },
    /** `commits` or `<batch> on <connections>`. */
    async raw(variant, count) {
      const [batch, connections] = variant.split(' on ').map(Number)
      await connect(connections ?? 1)
      const from = systemClock.monotonicMs()
      if (variant === 'commits') {
        const insert = { name: 'one', text: INSERT_READY, values: [JSON.stringify(payload(1))] }
        for (let n = 0; n < count; n++) await first().query(insert)
      } else {
        await Promise.all(clients.map((client) => work(client, batch ?? 1)))
      }
      return count / ((systemClock.monotonicMs() - from) / 1000)
    },
  }
}
