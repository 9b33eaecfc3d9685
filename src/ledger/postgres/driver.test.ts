import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { startPostgres } from '../../../scripts/postgres.ts'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { FakeClock, sleep, systemClock } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { seededRandom } from '../../base/random.ts'
import type { Tx } from '../contract.ts'
import { Ledger } from '../ledger.ts'
import type { PostgresDriver } from './driver.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let driver: PostgresDriver
before(async () => {
  database = await freshDatabase()
  driver = await openPostgres({ url: database.url, clock: systemClock })
  await driver.transaction((tx) => tx.run(`CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT UNIQUE)`))
})
after(async () => {
  await driver.close()
  await database.drop()
})

const pidOf = async (tx: Tx): Promise<number> =>
  (await tx.get<{ pid: number }>(`SELECT pg_backend_pid() AS pid`))!.pid

async function countThings(): Promise<number> {
  return (await driver.read((tx) => tx.get<{ n: number }>(`SELECT count(*) AS n FROM things`)))!.n
}

async function kill(pid: number): Promise<void> {
  await driver.read((tx) => tx.get(`SELECT pg_terminate_backend(?)`, [pid]))
}

describe('a transaction on PostgreSQL', () => {
  test('gives and takes the same values as on SQLite', async () => {
    const row = await driver.read((tx) =>
      tx.get(
        `SELECT ?::bigint AS big, ?::text AS text, ?::bytea AS bytes, ?::bigint AS none, true AS yes, sum(x) AS total
         FROM (VALUES (1::bigint), (2)) AS v(x)`,
        [Number.MAX_SAFE_INTEGER, 'ä?', Buffer.from([0, 1]), null],
      ),
    )
    assert.deepEqual(
      { ...row },
      { big: Number.MAX_SAFE_INTEGER, text: 'ä?', bytes: Buffer.from([0, 1]), none: null, yes: 1, total: 3 },
    )
  })

  test('runs again after a deadlock, and both sides get through', async () => {
    await driver.transaction((tx) => tx.run(`INSERT INTO things VALUES (1, 'one'), (2, 'two')`))
    let runs = 0
    let arrived = 0
    let release = (): void => {}
    const both = new Promise<void>((resolve) => {
      release = resolve
    })
    const crosswise = (first: number, second: number): Promise<void> =>
      driver.transaction(async (tx) => {
        runs += 1
        await tx.run(`UPDATE things SET name = name || '!' WHERE id = ?`, [first])
        arrived += 1
        if (arrived === 2) release()
        await both
        await tx.run(`UPDATE things SET name = name || '!' WHERE id = ?`, [second])
      })
    await Promise.all([crosswise(1, 2), crosswise(2, 1)])
    assert.equal(runs, 3)
    const names = await driver.read((tx) => tx.all(`SELECT name FROM things ORDER BY id`))
    assert.deepEqual(names, [{ name: 'one!!' }, { name: 'two!!' }])
    await driver.transaction((tx) => tx.run(`DELETE FROM things`))
  })

  test('cannot be committed once a statement has failed, even if nobody looked', async () => {
    await assert.rejects(
      driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO things VALUES (10, 'ten')`)
        await tx.run(`INSERT INTO things VALUES (10, 'again')`).catch(() => {})
      }),
      (error: unknown) => (error as { code?: string }).code === '23505',
    )
    assert.equal(await countThings(), 0)
  })

  test('is blamed on the statement that failed first, not on those that followed', async () => {
    await assert.rejects(
      driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO things VALUES (NULL, 'x')`).catch(() => {})
        await tx.run(`INSERT INTO things VALUES (11, 'y')`)
      }),
      (error: unknown) => (error as { code?: string }).code === '23502',
    )
  })

  test('fails with what it writes last, though COMMIT is on its way by then, and leaves nothing', async () => {
    for (const last of [
      async (tx: Tx): Promise<void> => void (await tx.run(`INSERT INTO things VALUES (13, 'again')`)),
      async (): Promise<void> => {
        throw Object.assign(new Error('not even sent'), { code: '23505' })
      },
    ]) {
      await assert.rejects(
        driver.transaction(async (tx) => {
          await tx.run(`INSERT INTO things VALUES (13, 'thirteen')`)
          await driver.withCommit(tx, last(tx))
        }),
        (error: unknown) => (error as { code?: string }).code === '23505',
      )
      assert.equal(await countThings(), 0)
    }
  })

  test('runs again after a deadlock of what it writes last', async () => {
    await driver.transaction((tx) => tx.run(`INSERT INTO things VALUES (1, 'one'), (2, 'two')`))
    let runs = 0
    let arrived = 0
    const { promise: both, resolve } = Promise.withResolvers<void>()
    const crosswise = (first: number, second: number): Promise<void> =>
      driver.transaction(async (tx) => {
        const add = (id: number) => tx.run(`UPDATE things SET name = name || '!' WHERE id = ?`, [id])
        runs += 1
        await add(first)
        arrived += 1
        if (arrived === 2) resolve()
        await both
        await driver.withCommit(
          tx,
          add(second).then(() => {}),
        )
      })
    await Promise.all([crosswise(1, 2), crosswise(2, 1)])
    assert.equal(runs, 3)
    const names = await driver.read((tx) => tx.all(`SELECT name FROM things ORDER BY id`))
    assert.deepEqual(names, [{ name: 'one!!' }, { name: 'two!!' }])
    await driver.transaction((tx) => tx.run(`DELETE FROM things`))
  })

  test('passes on what its caller throws, and writes nothing', async () => {
    const mine = Object.assign(new Error('mine'), { code: 'ECONNRESET' })
    await assert.rejects(
      driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO things VALUES (12, 'twelve')`)
        throw mine
      }),
      (error: unknown) => error === mine,
    )
    assert.equal(await countThings(), 0)
  })

  test('with too few or too many parameters for a statement is the fault of that, and no outage', async () => {
    for (const params of [[1], [1, 'x', 2]]) {
      const wrong = driver.transaction((tx) => tx.run(`INSERT INTO things VALUES (?, ?)`, params))
      await assert.rejects(wrong, (thrown) => {
        assert.equal(asTidemarkError(thrown).code?.startsWith('ledger-') ?? false, false)
        assert.match(String(thrown), /bind message supplies/)
        return true
      })
    }
  })

  test('refuses statements that come after its end', async () => {
    const kept = await driver.transaction(async (tx) => tx)
    await assert.rejects(kept.run(`INSERT INTO things VALUES (13, 'late')`), /after the end/)
  })

  test('whose connection is lost fails as an outage, writes nothing, and the next one works', async () => {
    await assert.rejects(
      driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO things VALUES (14, 'lost')`)
        await kill(await pidOf(tx))
        await tx.run(`INSERT INTO things VALUES (15, 'lost too')`)
      }),
      (error: unknown) =>
        error instanceof TidemarkError && error.code === 'ledger-down' && error.kind === 'transient',
    )
    assert.equal(await countThings(), 0)
    assert.equal(await driver.transaction((tx) => tx.run(`INSERT INTO things VALUES (16, 'back')`)), 1)
    await driver.transaction((tx) => tx.run(`DELETE FROM things`))
  })

  test('in which a process stood still is ended by the server, and named as that', async () => {
    const idle = driver.transaction(async (tx) => {
      await tx.get(`SELECT set_config('idle_in_transaction_session_timeout', '20', true)`)
      // Until the server says so: nothing else would end the wait.
      while (true) {
        await sleep(systemClock, 20)
        driver.assertFit(tx)
      }
    })
    await assert.rejects(idle, (thrown) => {
      assert.equal(asTidemarkError(thrown).code, 'ledger-idle')
      return true
    })
    assert.equal(await driver.transaction(async (tx) => (await tx.get<{ n: number }>('SELECT 1 AS n'))!.n), 1)
  })

  test('a look cannot write', async () => {
    await assert.rejects(
      driver.read((tx) => tx.run(`INSERT INTO things VALUES (17, 'no')`)),
      /accepts no writes/,
    )
  })
})

describe('an app’s own connection', () => {
  test('has its search path back afterwards, also when enqueueing was refused', async () => {
    const ledger = new Ledger(driver, { random: seededRandom(1) })
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const path = async (): Promise<unknown> => (await client.query('SHOW search_path')).rows[0]
    const before = await path()
    await assert.rejects(ledger.writeWithin(client, { jobs: [{ kind: 'k', payload: '{}' }] }), /begin one/)
    await client.query('BEGIN')
    const [job] = await ledger.writeWithin(client, { jobs: [{ kind: 'k', payload: '{}' }] })
    assert.equal(typeof job!.id, 'number')
    await assert.rejects(
      ledger.writeWithin(client, { jobs: [{ kind: 'k', payload: '{}', segment: 'none' }] }),
      /No segment/,
    )
    assert.deepEqual(await path(), before)
    await client.query('ROLLBACK')
    await client.end()
    assert.equal(await ledger.job(job!.id), undefined)
  })
})

describe('time on PostgreSQL', () => {
  test('is the server’s, unless a clock was passed in', async () => {
    const server = (await driver.read((tx) =>
      tx.get<{ ms: number }>(`SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms`),
    ))!.ms
    assert.ok(Math.abs(driver.now() - server) < 5_000)
    const clock = new FakeClock(1_000)
    const still = await openPostgres({ url: database.url, clock })
    assert.equal(still.now(), 1_000)
    await still.close()
  })
})

const HEARTBEATS = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND query LIKE 'UPDATE workers SET heartbeat_at =%'`

describe('the heartbeat on PostgreSQL', () => {
  test('extends the lease, comes back after its connection was lost, and notices when the owner is gone', async () => {
    const ledger = new Ledger(driver, { random: seededRandom(1) })
    const owner = await ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'beat' }, 4_000)
    const leaseOf = async (): Promise<number> =>
      (await driver.read((tx) =>
        tx.get<{ until: number }>(`SELECT lease_until AS until FROM workers WHERE id = ?`, [owner]),
      ))!.until
    const grows = async (): Promise<void> => {
      const from = await leaseOf()
      while ((await leaseOf()) === from) await sleep(systemClock, 5)
    }
    const errors: unknown[] = []
    let lost = (): void => {}
    const gone = new Promise<void>((resolve) => {
      lost = resolve
    })
    const heartbeat = await driver.startHeartbeat({
      owner,
      leaseMs: 4_000,
      everyMs: 20,
      blockedMaxMs: 60_000,
      onLost: () => lost(),
      onError: (error) => errors.push(error),
    })
    try {
      await grows()
      // Between two beats its last statement is the one that extended the lease.
      for (let killed = 0; killed === 0; ) {
        const rows = await driver.read((tx) => tx.all<{ pid: number }>(HEARTBEATS))
        for (const { pid } of rows) await kill(pid)
        killed = rows.length
      }
      await grows()
      await driver.transaction((tx) => tx.run(`UPDATE workers SET state = 'gone' WHERE id = ?`, [owner]))
      await gone
      assert.ok(errors.length <= 2, `${errors}`)
    } finally {
      await heartbeat.stop()
    }
  })
})

describe('claiming by several processes', () => {
  test('never hands out a job twice, and leaves none behind', async () => {
    const JOBS = 3_000
    const drivers = await Promise.all(
      Array.from({ length: 4 }, () => openPostgres({ url: database.url, clock: systemClock })),
    )
    const ledgers = drivers.map((d, index) => new Ledger(d, { random: seededRandom(index) }))
    const streams = await Promise.all(['a', 'b', 'c'].map((name) => ledgers[0]!.stream(name)))
    const jobs = Array.from({ length: JOBS }, (_, n) => ({
      kind: n % 2 === 0 ? 'even' : 'odd',
      payload: `{"n":${n}}`,
      streamId: streams[n % 3]!.id,
      priority: n % 5,
    }))
    await ledgers[0]!.write({ jobs })
    const seen = new Map<number, number>()
    const drain = async (ledger: Ledger): Promise<void> => {
      const owner = await ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'drain' }, 60_000)
      const claim = { owner, room: { interactive: 70, bulk: 0 }, kinds: new Set(['even', 'odd']) }
      let held: Awaited<ReturnType<Ledger['cycle']>>['claimed'] = []
      do {
        const settle = held.map((job) => ({ job, event: 'succeed' as const }))
        const result = await ledger.cycle({ owner, settle, claim })
        for (const settled of result.settled) assert.equal(settled.status, 'held')
        held = result.claimed
        for (const job of held) seen.set(job.id, (seen.get(job.id) ?? 0) + 1)
      } while (held.length > 0)
      await ledger.retire(owner)
    }
    await Promise.all(ledgers.map(drain))
    assert.equal(seen.size, JOBS)
    assert.ok([...seen.values()].every((times) => times === 1))
    const tallies = await ledgers[0]!.tallies()
    assert.deepEqual(tallies, await ledgers[0]!.countedTallies())
    for (const d of drivers) await d.close()
  })
})

describe('a server that goes away', () => {
  test('is an outage with a name, and work goes on when it is back', async () => {
    const server = await startPostgres()
    const away = await openPostgres({ url: server.url, clock: systemClock })
    const heard: string[] = []
    const stopListening = await away.listen((what) => heard.push(what))
    try {
      await away.transaction((tx) => tx.run(`UPDATE meta SET value = value`))
      await server.stopServer('fast')
      const isOutage = (error: unknown): boolean => {
        assert.ok(error instanceof TidemarkError)
        assert.equal(error.code, 'ledger-down')
        assert.match(error.hint ?? '', /when it is back/)
        return true
      }
      await assert.rejects(
        away.transaction((tx) => tx.run(`UPDATE meta SET value = value`)),
        isOutage,
      )
      await assert.rejects(
        away.read((tx) => tx.get(`SELECT 1`)),
        isOutage,
      )
      await server.startServer()
      assert.ok((await away.transaction((tx) => tx.run(`UPDATE meta SET value = value`))) > 0)
      while (!heard.includes('anything')) await sleep(systemClock, 10)
    } finally {
      await stopListening()
      await away.close()
      await server.stop()
    }
  })
})
