import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { knownPrefixes } from '../../../search/index/bulk.ts'
import { openSearch } from '../../../search/search.ts'
import { foundOf } from '../placing.ts'
import { SHARD_COLUMNS, shardsById } from './rows.ts'
import {
  listedUnseen,
  lockVersions,
  placeShards,
  pruneShards,
  shardsOfUris,
  storeShards,
  unlisted,
} from './shards.ts'
import { IngestTables } from './tables.ts'

test('what is looked for with every object is found by an index, however many shards a pipeline has', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    const tables = await IngestTables.open(ledger)
    const asked: { sql: string; params: Parameters<Tx['all']>[1] }[] = []
    const { read } = ledger.driver
    const noting = (tx: Tx): Tx => ({
      dialect: tx.dialect,
      isRemote: tx.isRemote,
      run: (sql, params) => tx.run(sql, params),
      get(sql, params) {
        asked.push({ sql, params })
        return tx.get(sql, params)
      },
      all(sql, params) {
        asked.push({ sql, params })
        return tx.all(sql, params)
      },
    })
    ledger.driver.read = (fn) => read.call(ledger.driver, (tx) => fn(noting(tx))) as ReturnType<typeof fn>
    await tables.versions('logs', 's3://bucket/a')
    await tables.states('logs', ['one', 'two'])
    await tables.openCount('logs')
    await ledger.driver.read((tx) => lockVersions(tx, { pipeline: 'logs', uri: 's3://bucket/a' }))
    await ledger.driver.read((tx) =>
      shardsOfUris(tx, { pipeline: 'logs', uris: ['s3://bucket/a'], isLocked: true }),
    )
    const often = asked.length
    await tables.shards({ pipeline: 'logs', state: 'bad', after: '', limit: 10 })
    await tables.stale('logs', 1, 10)
    await tables.recent('logs', 1)
    await tables.replaced('logs', 10)
    await tables.takeovers('logs')
    await ledger.driver.read((tx) =>
      pruneShards(tx, { pipeline: 'logs', overwrites: 'append', beforeMs: 1, limit: 10 }),
    )
    const listing = { pipeline: 'logs', generation: 2 }
    await ledger.driver.read((tx) => unlisted(tx, listing, { after: '', limit: 10 }))
    await ledger.driver.read((tx) => listedUnseen(tx, listing, ['s3://bucket/a']))
    ledger.driver.read = read
    const indexes = [
      /page .*id>/,
      /open .*updated_at</,
      /settled .*settled_at>/,
      /swept /,
      /taken /,
      /settled .*settled_at</,
      /settled .*settled_at</,
      /page .*id>/,
      /uri=\?/,
    ]
    for (const [n, { sql, params }] of asked.entries()) {
      const plan = await ledger.driver.read((tx) =>
        tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params),
      )
      const [shards] = plan.filter(({ detail }) => /ingest_shards| s /.test(detail))
      assert.match(shards!.detail, indexes[n - often] ?? /pipeline=\? AND (?:uri|id|state)=\?/, sql)
    }
    assert.equal(often, 5)
    assert.equal(asked.length, often + indexes.length)
  } finally {
    await ledger.close()
  }
})

test('what two processes are told of one new object at the same time counts from both', async () => {
  const database = await freshDatabase()
  const [one, other] = [await openLedger(database.url), await openLedger(database.url)]
  try {
    const tables = await IngestTables.open(one)
    const uri = 's3://bucket/a'
    const placing = { pipeline: 'logs', overwrites: 'replace', nowMs: 1, inIndex: new Map() } as const
    const listed = foundOf(uri, { id: 'v' }, { sizeBytes: 1, isCurrent: true })
    const told = { id: 'v', versionId: 'id', sequencer: '0a' }
    const announced = foundOf(uri, told, { sizeBytes: 1, isCurrent: false })
    const isPlaced = Promise.withResolvers<void>()
    const isMet = Promise.withResolvers<void>()
    const listing = one.transaction(async (tx) => {
      await placeShards(tx, { ...placing, listing: { generation: 1, askedAtMs: 1 } }, [listed])
      isPlaced.resolve()
      await isMet.promise
    })
    await isPlaced.promise
    const placed = other.transaction((tx) => placeShards(tx, { ...placing, nowMs: 2 }, [announced]))
    await untilOneWaits(one)
    isMet.resolve()
    await listing
    assert.deepEqual(
      (await placed).map(({ act, state }) => [act, state]),
      [['known', 'open']],
    )
    const { sequencer, version_id, listing: generation } = (await tables.shard('logs', listed.id))!
    assert.deepEqual([sequencer, version_id, generation], ['0a', 'id', 1])
  } finally {
    await one.close()
    await other.close()
    await database.drop()
  }
})

/** For a lock of another. */
async function untilOneWaits({ driver }: Ledger): Promise<void> {
  const isWaiting = (): Promise<unknown> =>
    driver.read((tx) => tx.get(`SELECT 1 AS n FROM pg_locks WHERE NOT granted`))
  while (!(await isWaiting())) await sleep(10)
}

const SOME = 20
const MANY = 30_000

test('on PostgreSQL some objects are found without a look at all others, also where nobody has counted these yet', async () => {
  const database = await freshDatabase()
  const ledger = await openLedger(database.url)
  const search = openSearch({ ledger })
  try {
    await IngestTables.open(ledger)
    await search.prepare()
    for (const table of ['ingest_shards', 'search_documents'])
      await ledger.transaction((tx) => tx.run(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`))
    const uris = Array.from({ length: SOME }, (_, n) => `s3://bucket/${n}`)
    const ids = Array.from({ length: SOME }, (_, n) => String(n).padStart(32, '0'))
    const of = { pipeline: 'logs', uris }
    const to = { records: 1, byte: 1, line: 1, published: 1, quarantined: 0 }
    const shape = { format: 'ndjson', compression: 'none', header: null } as const
    const all = ids.map((id) => ({ id, updatedAt: 1, to, shape }))
    const looks: Record<string, (tx: Tx) => Promise<unknown>> = {
      byId: (tx) => tx.all(shardsById(tx, SHARD_COLUMNS), ['logs', JSON.stringify(ids)]),
      byUri: (tx) => shardsOfUris(tx, { ...of, isLocked: true }),
      live: (tx) => shardsOfUris(tx, { ...of, isLocked: true, isLive: true }),
      store: (tx) => storeShards(tx, { ...of, token: 't', nowMs: 2, all }),
      prefixes: (tx) => knownPrefixes(tx, 'ingest', ids),
    }
    const rowsOf = (look: (tx: Tx) => Promise<unknown>): Promise<number> =>
      ledger.transaction(async (tx) => {
        await tx.run(
          `UPDATE ingest_shards SET state = 'open', token = NULL, records = 0, published = 0, updated_at = 1
           WHERE pipeline = 'logs' AND id < ?`,
          [String(SOME).padStart(32, '0')],
        )
        const before = await rowsRead(tx)
        await look(tx)
        return (await rowsRead(tx)) - before
      })
    // Statements are planned while there is hardly anything, as those of a new pipeline are.
    await ledger.transaction((tx) => fill(tx, 0, SOME))
    for (const look of Object.values(looks)) for (let n = 0; n < 10; n++) await rowsOf(look)
    await ledger.transaction((tx) => fill(tx, SOME, MANY))
    for (const [name, look] of Object.entries(looks)) {
      const rows = await rowsOf(look)
      assert.ok(rows < MANY / 10, `${name} reads ${rows} of ${MANY} rows`)
    }
  } finally {
    await search.close()
    await ledger.close()
    await database.drop()
  }
})

async function fill(tx: Tx, from: number, to: number): Promise<void> {
  const numbers = `generate_series(${from}, ${to - 1}) AS t(n)`
  await tx.run(
    `INSERT INTO ingest_shards(pipeline, id, uri, version, state, created_at, updated_at)
     SELECT 'logs', lpad(n::text, 32, '0'), 's3://bucket/' || n, 'v', 'open', 1, 1 FROM ${numbers}`,
  )
  await tx.run(
    `INSERT INTO search_documents(source, ref, type, title, owner, folders, people, mime_type, url, version)
     SELECT 'ingest', lpad(n::text, 32, '0') || '/0', 'record', '', '', '[]', '[]', '', '', 'v' FROM ${numbers}`,
  )
}

/** By this transaction, of the two tables. */
async function rowsRead(tx: Tx): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT sum(seq_tup_read + idx_tup_fetch)::bigint AS n FROM pg_stat_xact_user_tables
     WHERE relname IN ('ingest_shards', 'search_documents')`,
  )
  return Number(row?.n ?? 0)
}
