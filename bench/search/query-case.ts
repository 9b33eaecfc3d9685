/** How long searches take on indexes of several sizes, of which readers see more or less, on both databases. */
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../../scripts/postgres.ts'
import type { Row } from '../bench.ts'
import { benchFolder } from '../machine.ts'
import { percentile, row } from '../session.ts'
import type { Asked, AskOrder } from './asked-index.ts'
import { FILLED_VERSION, type Filled, type FillOrder } from './filled-index.ts'
import type { Session } from './session.ts'

export const QUERY = 'query'
export const MEMORY = 'memory'
export const DATABASES = ['sqlite', 'postgres'] as const
export type Database = (typeof DATABASES)[number]

/** A fill that takes longer is left, and said to be: the next run goes on there, where the index is kept. A server's is not. */
const FILL_MS_MAX = 10 * 60_000
const ASK_MS_MAX = 10 * 60_000
/** Filling a million chunks takes minutes, and gives the same each time: large indexes are kept for the next run. */
const KEPT_CHUNKS_MIN = 100_000

export function caseName(database: Database, chunks: number): string {
  return `${QUERY}: ${database}, ${count(chunks)} chunks`
}

export async function runQueries(session: Session, database: Database, chunks: number): Promise<Row[]> {
  const visible = session.sizes.visible.filter((one) => one <= chunks / 5)
  const place = await openPlace(session, database, chunks)
  try {
    const name = caseName(database, chunks)
    session.say(`${name}: the index is filled`)
    const fill: FillOrder = { do: 'fill', url: place.url, chunks, visible, msMax: FILL_MS_MAX }
    const filled = await session.processes.order<Filled>(fill, { msMax: FILL_MS_MAX + ASK_MS_MAX })
    session.say(`${name}: has ${count(filled.chunks)} after ${Math.round(filled.seconds)} s`)
    if (!filled.isWhole) throw new Error(`${count(filled.chunks)} chunks are there: run it again to go on`)
    await place.rest()
    const ask: AskOrder = { do: 'ask', url: place.url, visible, rounds: session.sizes.asks }
    const asked = await session.processes.order<Asked>(ask, { msMax: ASK_MS_MAX })
    return queryRows(database, chunks, asked)
  } finally {
    await place.leave()
  }
}

export function queryRows(
  database: Database,
  chunks: number,
  { visible, embedMs, peakMb, ownMb }: Asked,
): Row[] {
  const sorted = (ms: readonly number[]): number[] => ms.toSorted((a, b) => a - b)
  const name = caseName(database, chunks)
  return [
    ...visible.flatMap(({ visible: seen, ms, wholeMs, processorMs }) => [
      row(`${name}, ${count(seen)} visible, p50`, 'tidemark', percentile(sorted(ms), 0.5), 'ms'),
      row(`${name}, ${count(seen)} visible, p95`, 'tidemark', percentile(sorted(ms), 0.95), 'ms'),
      row(
        `${name}, ${count(seen)} visible, with embedding, p50`,
        'tidemark',
        percentile(sorted(wholeMs), 0.5),
        'ms',
      ),
      row(
        `${name}, ${count(seen)} visible, with embedding, p95`,
        'tidemark',
        percentile(sorted(wholeMs), 0.95),
        'ms',
      ),
      // The work of PostgreSQL is done in processes of its own.
      ...(database === 'sqlite'
        ? [
            row(
              `${name}, ${count(seen)} visible, processor p50`,
              'tidemark',
              percentile(sorted(processorMs), 0.5),
              'ms',
            ),
            row(
              `${name}, ${count(seen)} visible, processor p95`,
              'tidemark',
              percentile(sorted(processorMs), 0.95),
              'ms',
            ),
          ]
        : []),
    ]),
    row(`${name}, embedding the query, p50`, 'tidemark', percentile(sorted(embedMs), 0.5), 'ms'),
    row(`${MEMORY}: ${database}, ${count(chunks)} chunks, searching`, 'tidemark', peakMb, 'MB'),
    row(`${MEMORY}: ${database}, ${count(chunks)} chunks, without pages of files`, 'tidemark', ownMb, 'MB'),
  ]
}

function count(n: number): string {
  return n.toLocaleString('en-US')
}

type Place = { url: string; rest(): Promise<void>; leave(): Promise<void> }

async function openPlace(session: Session, database: Database, chunks: number): Promise<Place> {
  if (database === 'sqlite') {
    const name = `tidemark-bench-kept-search-${FILLED_VERSION}-${chunks}.db`
    const url = `sqlite:${join(chunks < KEPT_CHUNKS_MIN ? session.folder : benchFolder(), name)}`
    return { url, rest: async () => {}, leave: async () => {} }
  }
  const server = await startPostgres()
  return {
    url: server.url,
    async rest() {
      const client = new pg.Client({ connectionString: server.url })
      await client.connect()
      for (const statement of ['VACUUM ANALYZE', 'CHECKPOINT']) await client.query(statement)
      await client.end()
    },
    leave: () => server.stop(),
  }
}
