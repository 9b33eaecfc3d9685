import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { NewJob, Tx } from '../contract.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'
import { openSqlite } from './open.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-driver-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
async function withLedger(fn: (ledger: Ledger, file: string) => Promise<void>): Promise<void> {
  const file = join(folder, `${files++}.db`)
  const ledger = await openLedger(`sqlite:${file}`, { synchronous: 'NORMAL' })
  try {
    await fn(ledger, file)
  } finally {
    await ledger.close()
  }
}

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const jobs = (n: number, payload = '{}'): NewJob[] => Array.from({ length: n }, () => job({ payload }))

describe('a full disk', () => {
  /** The same refusal as from a full disk, without filling one. */
  const allow = (ledger: Ledger, morePages: number): Promise<void> =>
    ledger.driver.transaction(async (tx) => {
      const row = await tx.get<{ page_count: number }>('PRAGMA page_count')
      await tx.all(`PRAGMA max_page_count = ${row!.page_count + morePages}`)
    })

  test('is reported as such, loses nothing, and work goes on when there is space again', async () => {
    await withLedger(async (ledger) => {
      await ledger.write({ jobs: jobs(100) })
      const owner = await ledger.register({ host: 'here', pid: 1, pidStart: '', name: 'x' }, 60_000)
      const claim = { owner, room: { interactive: 2, bulk: 0 }, kinds: new Set(['job']) }
      const { claimed } = await ledger.cycle({ owner, claim })
      await allow(ledger, 20)
      let written = 0
      const fill = async (): Promise<void> => {
        for (;;) {
          await ledger.write({ jobs: jobs(50, JSON.stringify('x'.repeat(500))) })
          written += 50
        }
      }
      await assert.rejects(fill(), (thrown) => {
        const error = asTidemarkError(thrown)
        assert.deepEqual([error.code, error.kind], ['ledger-full', 'transient'])
        assert.ok(error.hint)
        return true
      })
      assert.equal(
        (await ledger.countedTallies()).reduce((sum, one) => sum + one.n, 0),
        100 + written,
      )
      // No outcome is to blame: all of them wait together for space.
      const settle = claimed.map((one) => ({
        job: one,
        event: 'succeed' as const,
        work: { jobs: jobs(200, 'x'.repeat(2_000)) },
      }))
      await assert.rejects(ledger.cycle({ owner, settle }), { code: 'ledger-full' })
      await allow(ledger, 10_000)
      const { settled } = await ledger.cycle({ owner, settle })
      assert.deepEqual(
        settled.map((one) => one.status),
        ['held', 'held'],
      )
      assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
      assert.equal(
        (await ledger.countedTallies()).reduce((sum, one) => sum + one.n, 0),
        100 + written + 400,
      )
    })
  })
})

describe('transactions on SQLite', () => {
  test('come one after another, also when they wait for something else in between', async () => {
    await withLedger(async (ledger) => {
      await ledger.migrateApp('test', [[`CREATE TABLE n (value INTEGER)`, `INSERT INTO n VALUES (0)`]])
      const increment = (): Promise<void> =>
        ledger.driver.transaction(async (tx) => {
          const row = await tx.get<{ value: number }>(`SELECT value FROM n`)
          await new Promise((resolve) => setImmediate(resolve))
          await tx.run(`UPDATE n SET value = ?`, [row!.value + 1])
        })
      await Promise.all(Array.from({ length: 50 }, increment))
      const [row] = await ledger.driver.read((tx) => tx.all<{ value: number }>(`SELECT value FROM n`))
      assert.equal(row!.value, 50)
    })
  })

  test('are not seen by a look before they are committed', async () => {
    await withLedger(async (ledger) => {
      await ledger.driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO streams(name, mark_at, tail_at, created_at) VALUES ('x', 0, 0, 0)`)
        assert.deepEqual(await ledger.streams(), [])
      })
      assert.equal((await ledger.streams()).length, 1)
    })
  })

  test('that fail leave the connection fit for the next', async () => {
    await withLedger(async (ledger) => {
      const broken = ['INSRT', 'ROLLBACK', `INSERT INTO meta VALUES ('control', '1')`]
      for (const sql of broken) {
        await assert.rejects(
          ledger.driver.transaction(async (tx: Tx) => {
            await tx.run(sql)
            throw new Error('on purpose')
          }),
        )
      }
      assert.equal((await ledger.write({ jobs: jobs(1) })).length, 1)
    })
  })

  test('wait for another process that holds the file, without blocking the event loop', async () => {
    await withLedger(async (ledger, file) => {
      const other = new DatabaseSync(file)
      other.exec('BEGIN IMMEDIATE')
      let turns = 0
      const writing = ledger.write({ jobs: jobs(1) })
      for (; turns < 100; turns++) await new Promise((resolve) => setImmediate(resolve))
      assert.equal((await ledger.jobs()).length, 0, 'a look does not wait')
      other.exec('COMMIT')
      other.close()
      assert.equal((await writing).length, 1)
    })
  })

  test('and looks after the end say that the ledger is closed', async () => {
    const ledger = await openLedger(`sqlite:${join(folder, 'closed.db')}`)
    await ledger.close()
    await ledger.close()
    await assert.rejects(ledger.write({ jobs: jobs(1) }), /ledger is closed/)
    await assert.rejects(ledger.jobs(), /ledger is closed/)
  })

  test('that wait for another process which holds the file are not waited for when the ledger is closed', async () => {
    const file = join(folder, 'held.db')
    const ledger = await openLedger(`sqlite:${file}`)
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const writing = Array.from({ length: 4 }, () => ledger.write({ jobs: jobs(1) }))
    const told = Promise.allSettled(writing)
    await new Promise((resolve) => setImmediate(resolve))
    await ledger.close()
    const reasons = (await told).map(
      (one) => one.status === 'rejected' && asTidemarkError(one.reason).message,
    )
    assert.match(String(reasons[0]), /locked by another process/)
    assert.deepEqual(reasons.slice(1), Array(3).fill('The ledger is closed.'))
    other.close()
  })

  test('that do not end are rolled back when the ledger is closed, and what they do later counts for nothing', async () => {
    const file = join(folder, 'unended.db')
    const ledger = await openLedger(`sqlite:${file}`)
    await ledger.migrateApp('test', [[`CREATE TABLE n (value INTEGER)`]])
    const goOn = Promise.withResolvers<void>()
    const unended = ledger.transaction(async (tx) => {
      await tx.run(`INSERT INTO n VALUES (1)`)
      await goOn.promise
      await tx.run(`INSERT INTO n VALUES (2)`)
    })
    const told = assert.rejects(unended, /ledger is closed/)
    await ledger.close()
    goOn.resolve()
    await told
    const other = new DatabaseSync(file)
    assert.equal(other.prepare(`SELECT count(*) AS n FROM n`).get()!.n, 0)
    other.close()
  })
})

describe('an app’s own connection', () => {
  test('must be in a transaction, or what it enqueues would not be one with what it writes', async () => {
    await withLedger(async (ledger, file) => {
      const app = new DatabaseSync(file)
      await assert.rejects(ledger.writeWithin(app, { jobs: jobs(1) }), /transaction/)
      await assert.rejects(ledger.writeWithin('not a connection', { jobs: jobs(1) }), /DatabaseSync/)
      assert.equal((await ledger.jobs()).length, 0)
      app.close()
    })
  })
})

describe('large calls', () => {
  test('a follow-up may wait for more jobs than a statement takes parameters', async () => {
    const ledger = await openLedger('sqlite::memory:')
    const added = await ledger.write({ jobs: jobs(33_000), followUp: job({ kind: 'last' }) })
    const last = await ledger.job(added.at(-1)!.id)
    assert.equal(last!.job.deps_left, 33_000)
    await assert.rejects(ledger.write({ jobs: jobs(100_001) }), /at most 100000/)
    await ledger.close()
  })
})

describe('other processes’ writes', () => {
  test('are noticed while listening, and no more after', async () => {
    const file = join(folder, 'heard.db')
    const [one, two] = [await openSqlite({ file, clock: systemClock }), await openLedger(`sqlite:${file}`)]
    let heard = (): void => {}
    const stop = await one.listen(() => heard())
    for (let n = 0; n < 3; n++) {
      const waiting = new Promise<void>((resolve) => {
        heard = resolve
      })
      await two.write({ jobs: jobs(1) })
      await waiting
    }
    await stop()
    await two.close()
    await one.close()
  })
})
