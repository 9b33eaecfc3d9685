import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type PostgresServer, type StopMode, startPostgres } from '../../scripts/postgres.ts'
import { systemClock } from '../../src/base/clock.ts'
import { TidemarkError } from '../../src/base/errors.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { createLogger } from '../../src/engine/observe/log.ts'
import { logEvents } from '../../src/engine/observe/log-events.ts'
import type { Driver, Tx } from '../../src/ledger/contract.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { FaultyProxy } from '../../src/ledger/postgres/faulty-proxy.suite.ts'
import type { Child } from './child-process.ts'
import { DATABASES, freshPlace, LEASE_MS, Life, type Reference, undisturbed } from './life.ts'
import { SMALL } from './source.ts'

describe('a database that goes away and comes back', () => {
  let server: PostgresServer | undefined
  after(() => server?.stop())

  test('costs nothing but time: two engines survive a crash and a restart of PostgreSQL and end as if nothing had happened', async () => {
    server = await startPostgres()
    const size = { ...SMALL, paceMs: 20 }
    const life = new Life(server.url, size)
    const children = [life.start({ leaseMs: 1_000, workers: 2 }), life.start({ leaseMs: 1_000, workers: 2 })]
    try {
      await Promise.all(children.map((child) => child.said('ready')))
      for (const mode of ['immediate', 'fast'] satisfies StopMode[]) {
        await ticks(children[0]!, 3)
        await server.stopServer(mode)
        // Longer than the leases: they run out while nobody can extend them.
        await sleep(1_500)
        await server.startServer()
        await life.look(`after the server came back from a ${mode} stop`)
      }
      for (const child of children) {
        const { sayings } = await life.finished(child)
        const events = sayings.flatMap((saying) => (saying.say === 'event' ? [saying.what] : []))
        assert.ok(
          events.some((event) => event.includes('"down"')),
          `it did not notice: ${events}`,
        )
      }
      await life.judge('after two outages', await reference())
    } finally {
      for (const child of children) await child.destroy()
    }
  })

  test('is logged once when it goes and once when it is back, by an engine that has nothing to do', async () => {
    const server = await startPostgres()
    const ledger = await openLedger(server.url)
    const engine = await createEngine({ ledger, leaseMs: 1_000 })
    const lines: string[] = []
    const stream = { write: (line: string) => void lines.push(line.replace(/^\S+ /, '').trimEnd()) }
    logEvents(engine.events, await createLogger({ clock: systemClock, stream, level: 'info' }))
    const ledgerLines = (): string[] => lines.filter((line) => line.includes('the ledger is'))
    let downs = 0
    engine.events.on((event) => {
      if (event.type === 'ledger' && event.what === 'down') downs += 1
    })
    try {
      await engine.start()
      await server.stopServer('fast')
      await until('it has been noticed', () => downs > 0)
      await server.startServer()
      await until('its return is logged', () => ledgerLines().some((line) => line.includes('is back')))
      assert.equal(ledgerLines().length, 2, lines.join('\n'))
      assert.equal(downs, 1)
      assert.match(ledgerLines()[0]!, /^WARN {2}the ledger is away: /)
      assert.match(ledgerLines()[1]!, /^INFO {2}the ledger is back, after [\d.]+ m?s$/)
    } finally {
      await engine.stop()
      await ledger.close()
      await server.stop()
    }
  })

  test('connections that break at COMMIT, before or after the server has committed, lose nothing and apply nothing twice', async () => {
    const place = await freshPlace('postgres')
    const proxy = await FaultyProxy.before(place.url)
    const life = new Life(proxy.urlOf(place.url), SMALL)
    const child = life.start()
    try {
      await child.said('ready')
      let broken = 0
      for (; broken < BREAKS && child.process.exitCode === null; broken++) {
        await Promise.race([proxy.breakNextCommit(FAULTS[broken % FAULTS.length]!), child.ended])
        for (const { deliver } of proxy.late.splice(0)) await deliver()
      }
      await life.finished(child)
      assert.ok(broken >= BREAKS / 2, `it was done after ${broken} of ${BREAKS} broken connections`)
      await life.judge('after broken connections', await reference())
    } finally {
      await child.destroy()
      await proxy.stop()
      await place.remove()
    }
  })
})

const BREAKS = 20
const UNTIL_MS_MAX = 240_000

async function until(what: string, holds: () => boolean): Promise<void> {
  const limitMs = systemClock.monotonicMs() + UNTIL_MS_MAX
  while (!holds()) {
    assert.ok(systemClock.monotonicMs() < limitMs, `never came about: ${what}`)
    await sleep(20)
  }
}
const FAULTS = ['after', 'before', 'after', 'late'] as const

let undisturbedRun: Promise<Reference> | undefined

/** The final state is the same at every pace and on both databases. */
function reference(): Promise<Reference> {
  undisturbedRun ??= freshPlace('sqlite').then(async (place) => {
    const found = await undisturbed(place.url, SMALL)
    await place.remove()
    return found
  })
  return undisturbedRun
}

async function ticks(child: Child, n: number): Promise<void> {
  for (let i = 0; i < n; i++) {
    await new Promise<void>((resolve, reject) => {
      child.onSaying = ({ say }) => {
        if (say === 'tick') resolve()
      }
      child.ended.then(() => reject(new Error('it ended before the outage')), reject)
    })
  }
}

const LAST = 'last'

/** The database goes away once, when this one is to be written: what effects throw by themselves is none of its errors. */
function breakOnce(driver: Driver, outage: { left: number }): void {
  const transaction = driver.transaction.bind(driver)
  const seen = new WeakSet<Tx>()
  driver.transaction = (fn, options) =>
    transaction((tx) => {
      if (seen.has(tx)) return fn(tx)
      seen.add(tx)
      const run = tx.run.bind(tx)
      tx.run = (sql, params) => {
        if (params?.[0] !== LAST || outage.left === 0) return run(sql, params)
        outage.left -= 1
        const lost = { kind: 'transient', code: 'ledger-down' } as const
        return Promise.reject(new TidemarkError('the database went away', lost))
      }
      return fn(tx)
    }, options)
}

for (const database of DATABASES) {
  test(`an outage while outcomes are being committed one by one applies none of them twice on ${database}`, async () => {
    const place = await freshPlace(database)
    const ledger = await openLedger(place.url)
    const outage = { left: 0 }
    breakOnce(ledger.driver, outage)
    const engine = await createEngine({ ledger, leaseMs: LEASE_MS })
    try {
      await ledger.migrateApp('outage', [
        ['CREATE TABLE written (name TEXT PRIMARY KEY, times INTEGER NOT NULL)'],
      ])
      const write = (name: string, then: () => void = () => {}): Promise<unknown> =>
        engine.write({
          effects: async (tx) => {
            const sql =
              'INSERT INTO written(name, times) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET times = written.times + 1'
            await tx.run(sql, [name])
            then()
          },
        })
      outage.left = 1
      const outcomes = await Promise.allSettled([
        write('first'),
        write('broken', () => {
          throw new Error('this one cannot be written')
        }),
        write(LAST),
      ])
      assert.equal(outage.left, 0)
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      )
      const rows = await ledger.driver.read((tx) => tx.all('SELECT name, times FROM written ORDER BY name'))
      assert.deepEqual(
        rows.map((row) => ({ ...row })),
        [
          { name: 'first', times: 1 },
          { name: LAST, times: 1 },
        ],
      )
    } finally {
      await engine.stop()
      await ledger.close()
      await place.remove()
    }
  })
}
