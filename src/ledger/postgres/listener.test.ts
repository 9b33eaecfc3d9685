import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { systemClock } from '../../base/clock.ts'
import type { PostgresDriver } from './driver.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let here: PostgresDriver
let there: PostgresDriver
before(async () => {
  database = await freshDatabase()
  here = await openPostgres({ url: database.url, clock: systemClock })
  there = await openPostgres({ url: database.url, clock: systemClock })
})
after(async () => {
  await here.close()
  await there.close()
  await database.drop()
})

/** What was heard, one by one, however late it comes. */
class Ears {
  readonly #heard: string[] = []
  #waiting: ((what: string) => void) | undefined

  hear(what: string): void {
    if (this.#waiting) this.#waiting(what)
    else this.#heard.push(what)
    this.#waiting = undefined
  }

  next(): Promise<string> {
    const what = this.#heard.shift()
    if (what !== undefined) return Promise.resolve(what)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }
}

function announce(driver: PostgresDriver, what: 'work' | 'control'): Promise<void> {
  return driver.transaction((tx) => driver.announce(tx, what))
}

describe('listening', () => {
  test('tells of work by others and of control by anybody, in order', async () => {
    const ears = new Ears()
    const stop = await here.listen((what) => ears.hear(what))
    await announce(here, 'work')
    await announce(there, 'work')
    assert.equal(await ears.next(), 'work')
    await announce(here, 'work')
    await announce(here, 'control')
    assert.equal(await ears.next(), 'control', 'our own work is no news to us')
    await stop()
  })

  test('hears nothing of a transaction that was rolled back', async () => {
    const ears = new Ears()
    const stop = await here.listen((what) => ears.hear(what))
    const failed = there.transaction(async (tx) => {
      await there.announce(tx, 'work')
      throw new Error('no')
    })
    await assert.rejects(failed, /no/)
    await announce(there, 'control')
    assert.equal(await ears.next(), 'control')
    await stop()
  })

  test('control is not lost to work in one transaction', async () => {
    const ears = new Ears()
    const stop = await here.listen((what) => ears.hear(what))
    await there.transaction(async (tx) => {
      await there.announce(tx, 'control')
      await there.announce(tx, 'work')
    })
    assert.equal(await ears.next(), 'control')
    await stop()
  })

  test('comes back after its connection was lost, and says that something may have been missed', async () => {
    const ears = new Ears()
    const stop = await here.listen((what) => ears.hear(what))
    const killed = await there.read((tx) =>
      tx.all(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
      ),
    )
    assert.ok(killed.length > 0)
    assert.equal(await ears.next(), 'anything')
    await announce(there, 'work')
    assert.equal(await ears.next(), 'work')
    await stop()
  })

  test('does not hear another ledger in the same database', async () => {
    const url = new URL(database.url)
    url.searchParams.set('schema', 'elsewhere')
    const elsewhere = await openPostgres({ url: url.href, clock: systemClock })
    const ears = new Ears()
    const stop = await here.listen((what) => ears.hear(what))
    await announce(elsewhere, 'control')
    await announce(there, 'work')
    assert.equal(await ears.next(), 'work')
    await stop()
    await elsewhere.close()
  })
})
