/** What is asked and answered in odd sizes and letters; an answer of the server has 10 MB at most, a row 5. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import type { Tx } from '../contract.ts'
import { libsqlHome, memoryHome, onLibsql } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'

const COUNT = 12
/** 12 MB. */
const MANY = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${COUNT})
  SELECT i, hex(zeroblob(500000)) AS text FROM n`
const PLAIN = `SELECT n, hex(zeroblob(500000)) AS text FROM many`

async function lengths(tx: Tx, sql: string): Promise<number[]> {
  return (await tx.all<{ text: string }>(sql)).map(({ text }) => text.length)
}

const WHOLE = Array.from({ length: COUNT }, () => 1_000_000)

onLibsql(() => {
  describe('a libSQL server', () => {
    const home = libsqlHome()
    const file = memoryHome()
    let fixture: LedgerFixture
    beforeEach(async () => {
      fixture = await LedgerFixture.open(home)
    })
    afterEach(() => fixture.close())
    after(async () => {
      await home.remove()
      await file.remove()
    })

    test('answers a look with more than one answer holds, beside others and alone', async () => {
      const { driver } = fixture.ledger
      const both = await driver.read((tx) => Promise.all([lengths(tx, MANY), tx.get(`SELECT 7 AS n`)]))
      assert.deepEqual(both, [WHOLE, { n: 7 }])
      assert.deepEqual(await driver.snapshot((tx) => lengths(tx, MANY)), WHOLE)
      assert.deepEqual(await fixture.sql(`SELECT 1 AS n`), [{ n: 1 }])
    })

    test('does so in a transaction, which sees its own writes and goes on', async () => {
      await fixture.force(`CREATE TABLE many (n INTEGER)`)
      const seen = await fixture.ledger.driver.transaction(async (tx) => {
        for (let n = 0; n < COUNT; n++) tx.run(`INSERT INTO many VALUES (?)`, [n]).catch(() => {})
        await tx.run(`INSERT INTO many VALUES (-1)`)
        const [all, again] = await Promise.all([lengths(tx, PLAIN), lengths(tx, PLAIN)])
        await tx.run(`DELETE FROM many WHERE n = -1`)
        return [all.length, again.length]
      })
      assert.deepEqual(seen, [COUNT + 1, COUNT + 1])
      assert.equal(await fixture.count('many'), COUNT)
    })

    test('does so in the first request of a transaction, and behind a savepoint', async () => {
      const { driver } = fixture.ledger
      assert.deepEqual(await driver.transaction((tx) => lengths(tx, MANY)), WHOLE)
      await fixture.force(`CREATE TABLE many (n INTEGER)`)
      await driver.transaction(async (tx) => {
        await tx.run(`INSERT INTO many VALUES (1)`)
        const undone = await driver.savepoint(tx, async () => {
          assert.deepEqual(await lengths(tx, MANY), WHOLE)
          await tx.run(`INSERT INTO many VALUES (2)`)
          throw new Error('on purpose')
        })
        assert.match(String(undone?.error), /on purpose/)
      })
      assert.deepEqual(await fixture.sql(`SELECT n FROM many`), [{ n: 1 }])
    })

    test('that cannot answer what also changes something says so, and nothing is changed', async () => {
      await fixture.force(`CREATE TABLE many (n INTEGER, text TEXT)`)
      const { driver } = fixture.ledger
      const insert = `INSERT INTO many ${MANY} RETURNING n, text`
      await assert.rejects(
        driver.transaction((tx) => tx.all(insert)),
        { code: 'answer-too-large', kind: 'transient' },
      )
      assert.equal(await fixture.count('many'), 0)
      await fixture.force(`INSERT INTO many VALUES (1, 'after')`)
      assert.equal(await fixture.count('many'), 1)
    })

    test('that cannot store a value says how large one may be, and that of a job costs nobody else', async () => {
      const large = { kind: 'job', payload: JSON.stringify('x'.repeat(6_000_000)) }
      await assert.rejects(fixture.write({ jobs: [large] }), {
        code: 'value-too-large',
        kind: 'permanent',
        message: /larger than .* stores/,
      })
      await fixture.write({ jobs: [{ kind: 'job', payload: '{}' }] })
      assert.equal((await fixture.claim()).length, 1)
    })

    test('is sent texts and numbers as SQLite would store them', async () => {
      const values = ['half a \ud83d pair', '\udc00', 'a\0b', '😀', Number.NaN, -0, 2 ** 53]
      const onFile = await LedgerFixture.open(file)
      const [here, there] = await Promise.all(
        [fixture, onFile].map(async (one) => {
          await one.force(`CREATE TABLE odd (n INTEGER, value ANY)`)
          for (const [n, value] of values.entries())
            await one.force(`INSERT INTO odd VALUES (?, ?)`, [n, value])
          return one.sql(`SELECT n, hex(value) AS bytes, typeof(value) AS type FROM odd ORDER BY n`)
        }),
      )
      assert.deepEqual(
        here,
        there!.map((row) => ({ ...row })),
      )
      await onFile.close()
    })

    test('is not sent what has no number there, and goes on', async () => {
      await assert.rejects(fixture.sql(`SELECT ?`, [Number.POSITIVE_INFINITY]), RangeError)
      assert.deepEqual(await fixture.sql(`SELECT 1 AS n`), [{ n: 1 }])
    })
  })
})
