/** The cases of the ingest bench. Each has a cloud, a ledger and a home of its own. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type PostgresServer, startPostgres } from '../../scripts/postgres.ts'
import type { Row } from '../bench.ts'
import { LAUNCHER } from '../processes.ts'
import { cpuSeconds, row } from '../session.ts'
import type { Pace, Place } from './ingesting.ts'
import type { CloudAt, CloudOrder } from './served-cloud.ts'
import type { Database, Session } from './session.ts'
import type { Looked } from './shard-table.ts'
import type { Swapped } from './swap.ts'

export const SPEED = 'speed'
export const PROCESSES = 'processes'
export const TINY = 'tiny'
export const MEMORY = 'memory'
export const SHARDS = 'shards'
export const SWAP = 'swap'

/** Of one process: a case that hangs fails, and the others are measured. */
const MS_MAX = 10 * 60_000
const MB = 1_000_000

/** Databases of a run; one server for all that need it. */
export class Places {
  readonly #session: Session
  #server: PostgresServer | undefined
  #n = 0

  constructor(session: Session) {
    this.#session = session
  }

  async make(database: Database): Promise<Place> {
    this.#n += 1
    const home = join(this.#session.folder, `home-${this.#n}`)
    mkdirSync(home)
    if (database === 'sqlite') return { home, url: `sqlite:${join(home, 'ledger.db')}` }
    this.#server ??= await startPostgres()
    const client = new pg.Client({ connectionString: this.#server.url })
    await client.connect()
    await client.query(`CREATE DATABASE bench_${this.#n}`)
    await client.end()
    const url = new URL(this.#server.url)
    url.pathname = `/bench_${this.#n}`
    return { home, url: url.href }
  }

  remove({ home }: Place): void {
    rmSync(home, { recursive: true, force: true })
  }

  async close(): Promise<void> {
    await this.#server?.stop()
  }
}

type Ingested = { paces: Pace[]; cloud: CloudAt; cloudCpuMs: number }

/** So many processes on one ledger, until all is stored; or one that carries all of it through and keeps nothing. */
async function ingestAll(
  { processes }: Session,
  place: Place,
  { count, how = 'ingest', ...order }: Omit<CloudOrder, 'do'> & { count: number; how?: 'ingest' | 'carry' },
): Promise<Ingested> {
  const cloud = await processes.serve<CloudAt>({ do: 'cloud', ...order }, { msMax: MS_MAX })
  try {
    await processes.order({ do: 'set up', ...place, cloud: cloud.ready }, { msMax: MS_MAX })
    const cloudPid = cloud.running.child.pid!
    const before = cpuSeconds(cloudPid)
    const objects = order.objects + (order.huge ? 1 : 0)
    const paces = await Promise.all(
      Array.from({ length: count }, () =>
        processes.order<Pace>({ do: how, ...place, objects }, { msMax: MS_MAX, ...LAUNCHER }),
      ),
    )
    return { paces, cloud: cloud.ready, cloudCpuMs: (cpuSeconds(cloudPid) - before) * 1_000 }
  } finally {
    await cloud.running.stop()
  }
}

const perS = (n: number, ms: number): number => (n * 1_000) / ms

/** Beside the same records that are appended to the same index, and nothing else; they take turns. */
export async function runSpeed(session: Session, places: Places, database: Database): Promise<Row[]> {
  const { objects, records, rounds } = session.sizes
  const name = `${SPEED}: ${database}`
  const best = { own: 0, ownCpu: 0, limit: 0, limitCpu: 0, mb: 0 }
  for (let round = 0; round < rounds; round++) {
    const limitPlace = await places.make(database)
    const limit = await session.processes.order<Pace>(
      { do: 'append', ...limitPlace, first: 0, objects, records },
      { msMax: MS_MAX, ...LAUNCHER },
    )
    places.remove(limitPlace)
    const place = await places.make(database)
    const { paces, cloud } = await ingestAll(session, place, { objects, records, count: 1 })
    places.remove(place)
    const own = paces[0]!
    session.say(
      `${name} · tidemark ${Math.round(perS(own.records, own.ms))}/s, limit ${Math.round(perS(limit.records, limit.ms))}/s`,
    )
    best.own = Math.max(best.own, perS(own.records, own.ms))
    best.ownCpu = Math.max(best.ownCpu, perS(own.records, own.cpuMs))
    best.limit = Math.max(best.limit, perS(limit.records, limit.ms))
    best.limitCpu = Math.max(best.limitCpu, perS(limit.records, limit.cpuMs))
    best.mb = Math.max(best.mb, perS(cloud.bytes / MB, own.ms))
  }
  return [
    row(name, 'tidemark', best.own, 'records/s'),
    row(name, 'limit append', best.limit, 'records/s'),
    row(`${name}, by processor time`, 'tidemark', best.ownCpu, 'records/s'),
    row(`${name}, by processor time`, 'limit append', best.limitCpu, 'records/s'),
    row(`${name}, bytes`, 'tidemark', best.mb, 'MB/s'),
  ]
}

/** Beside as many that only append: more than the database takes of these it takes of nobody. */
export async function runProcesses(session: Session, places: Places): Promise<Row[]> {
  const { objects, records } = session.sizes
  const rows: Row[] = []
  for (const count of [1, 2]) {
    const limits = await appendTogether(session, await places.make('postgres'), count)
    const { paces } = await ingestAll(session, await places.make('postgres'), { objects, records, count })
    const name = `${PROCESSES}: postgres, ${count}`
    for (const [subject, all] of Object.entries({ tidemark: paces, 'limit append': limits })) {
      const ms = Math.max(...all.map((pace) => pace.ms))
      rows.push(row(name, subject, perS(objects * records, ms), 'records/s'))
      session.say(`${name} · ${subject} ${Math.round(rows.at(-1)!.value)} records/s`)
    }
  }
  return rows
}

function appendTogether({ processes, sizes }: Session, place: Place, count: number): Promise<Pace[]> {
  const { objects, records } = sizes
  const each = objects / count
  return Promise.all(
    Array.from({ length: count }, (_, n) =>
      processes.order<Pace>(
        { do: 'append', ...place, first: n * each, objects: each, records },
        { msMax: MS_MAX, ...LAUNCHER },
      ),
    ),
  )
}

/** Each announced by a message of its own, read, published and acknowledged. */
export async function runTiny(session: Session, places: Places, database: Database): Promise<Row[]> {
  const { tiny } = session.sizes
  const place = await places.make(database)
  const order = { objects: tiny, records: 1, count: 1 }
  const { paces, cloudCpuMs } = await ingestAll(session, place, order)
  places.remove(place)
  const limitPlace = await places.make('sqlite')
  const limit = (await ingestAll(session, limitPlace, { ...order, how: 'carry' })).paces[0]!
  places.remove(limitPlace)
  const name = `${TINY}: ${database}, ${tiny.toLocaleString('en-US')} objects`
  const { ms, cpuMs } = paces[0]!
  session.say(`${name} · ${Math.round(perS(tiny, ms))}/s, limit ${Math.round(perS(tiny, limit.ms))}/s`)
  return [
    row(name, 'tidemark', perS(tiny, ms), 'notifications/s'),
    row(name, 'limit carry', perS(tiny, limit.ms), 'notifications/s'),
    row(`${name}, by processor time`, 'tidemark', perS(tiny, cpuMs), 'notifications/s'),
    row(`${name}, by processor time`, 'limit carry', perS(tiny, limit.cpuMs), 'notifications/s'),
    row(`${name}, by processor time`, 'simulated cloud', perS(tiny, cloudCpuMs), 'notifications/s'),
  ]
}

/** One object at a time, each in a process of its own. */
export async function runMemory(session: Session, places: Places): Promise<Row[]> {
  const { hugeBytes, hugeRecordBytes } = session.sizes
  const rows: Row[] = []
  for (const sizeBytes of hugeBytes) {
    const place = await places.make('sqlite')
    const huge = { sizeBytes, recordBytes: hugeRecordBytes }
    const { paces } = await ingestAll(session, place, { objects: 0, records: 0, huge, count: 1 })
    places.remove(place)
    rows.push(row(`${MEMORY}: an object of ${sizeBytes / MB} MB`, 'tidemark', paces[0]!.peakMb, 'MB'))
    session.say(
      `${rows.at(-1)!.case} · ${Math.round(rows.at(-1)!.value)} MB, ${Math.round(perS(sizeBytes / MB, paces[0]!.ms))} MB/s`,
    )
  }
  return rows
}

export async function runShards(session: Session, places: Places, database: Database): Promise<Row[]> {
  const rows: Row[] = []
  for (const shards of session.sizes.shards) {
    const place = await places.make(database)
    const looked = await session.processes.order<Looked>(
      { do: 'shards', url: place.url, shards },
      { msMax: MS_MAX },
    )
    places.remove(place)
    const name = `${SHARDS}: ${database}, ${shards.toLocaleString('en-US')}`
    rows.push(
      row(`${name}, open`, 'tidemark', looked.openMs, 'ms of processor'),
      row(`${name}, lookup`, 'tidemark', looked.lookupMs, 'ms of processor'),
      row(`${name}, status`, 'tidemark', looked.statusMs, 'ms of processor'),
      row(`${name}, status, by the clock`, 'tidemark', looked.statusClockMs, 'ms'),
    )
  }
  return rows
}

export async function runSwap(session: Session, places: Places, database: Database): Promise<Row[]> {
  const { swap } = session.sizes
  const place = await places.make(database)
  const { ms } = await session.processes.order<Swapped>(
    { do: 'swap', url: place.url, records: swap },
    { msMax: MS_MAX },
  )
  places.remove(place)
  const name = `${SWAP}: ${database}, ${swap.toLocaleString('en-US')} records`
  session.say(`${name} · ${Math.round(ms)} ms`)
  return [row(name, 'tidemark', ms, 'ms')]
}
