import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tx } from '../../../ledger/contract.ts'
import { openLedger } from '../../../ledger/open.ts'
import { lockVersions, pruneShards, shardsOfUris } from './shards.ts'
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
    ledger.driver.read = read
    const indexes = [
      /page .*id>/,
      /open .*updated_at</,
      /settled .*settled_at>/,
      /swept /,
      /taken /,
      /settled .*settled_at</,
      /settled .*settled_at</,
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
