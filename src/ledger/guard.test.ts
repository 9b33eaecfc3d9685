import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Driver, Tx } from './contract.ts'
import { guarded, IDLE_CODE, IDLE_MS_MAX } from './guard.ts'

const fakeTx = (dialect: Tx['dialect']): Tx => ({ dialect, run: async () => 1 }) as unknown as Tx
const fakeDriver = (clock: Clock): Driver => ({ clock, assertFit: () => {} }) as unknown as Driver

const answer = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a transaction ends after all that nobody waited for, whichever of it is over first', async () => {
  const tx = { dialect: 'postgres', run: () => answer().then(() => 1) } as unknown as Tx
  const driver = fakeDriver(systemClock)
  const over: string[] = []
  await guarded({ driver, tx, what: 'a transaction' }, async (guard) => {
    // As writing a job with a key is: some round trips, of which the statement behind it waits for one.
    void guard.busy(async () => {
      for (let trip = 0; trip < 3; trip++) await answer()
      over.push('long')
    })
    void guard
      .busy(() => answer().then(() => Promise.reject(new Error('refused'))))
      .catch(() => over.push('refused'))
    await guard.run('UPDATE x SET y = 1')
    over.push('statement')
  })
  assert.deepEqual(over.sort(), ['long', 'refused', 'statement'])
})

for (const when of ['before its first statement', 'between two statements', 'after its last statement']) {
  test(`a function that keeps the whole thread busy ${when} is given up like one that waits`, async () => {
    let blockedMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + blockedMs }
    const block = (at: string): void => {
      if (at === when) blockedMs += IDLE_MS_MAX + 1
    }
    const ended = guarded({ driver: fakeDriver(clock), tx: fakeTx('postgres'), what: 'it' }, async (tx) => {
      block('before its first statement')
      await tx.run('UPDATE x SET y = 1')
      block('between two statements')
      if (when === 'between two statements') await tx.run('UPDATE x SET y = 2')
      block('after its last statement')
    })
    await assert.rejects(ended, { code: IDLE_CODE })
  })
}

const HIDDEN: [dialect: Tx['dialect'], sql: string][] = [
  ['sqlite', ';COMMIT'],
  ['sqlite', ' ; /* ; */ ; ROLLBACK TO tidemark_part'],
  ['postgres', '-- one line\rCOMMIT'],
  ['postgres', '/* /* */ */ COMMIT'],
  ['postgres', 'SELECT 1 AS a$$; COMMIT; SELECT 2 AS b$$'],
  ['postgres', `SELECT name'\\'; COMMIT; SELECT name''`],
  ['postgres', 'SET LOCAL transaction_read_only = on'],
]
for (const [dialect, sql] of HIDDEN) {
  test(`what ends a transaction on ${dialect} is found in ${JSON.stringify(sql)}`, async () => {
    const context = { driver: fakeDriver(systemClock), tx: fakeTx(dialect), what: 'it' }
    await assert.rejects(
      guarded(context, (tx) => tx.run(sql)),
      { code: 'transaction-control' },
    )
  })
}

const HARMLESS: [dialect: Tx['dialect'], sql: string][] = [
  ['sqlite', `CREATE TRIGGER t BEFORE INSERT ON x BEGIN SELECT 1; END`],
  ['postgres', `INSERT INTO x VALUES ('; COMMIT', E'\\'; COMMIT', $1) /* ; COMMIT */ -- ; COMMIT`],
  ['postgres', 'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN 1; END $f$'],
  ['postgres', `SET LOCAL work_mem = '1MB'`],
]
for (const [dialect, sql] of HARMLESS) {
  test(`nothing that ends a transaction on ${dialect} is seen in ${JSON.stringify(sql)}`, async () => {
    const context = { driver: fakeDriver(systemClock), tx: fakeTx(dialect), what: 'it' }
    assert.equal(await guarded(context, (tx) => tx.run(sql)), 1)
  })
}
