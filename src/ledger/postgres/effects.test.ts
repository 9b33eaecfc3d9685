import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, mock, test } from 'node:test'
import pg from 'pg'
import type { TidemarkError } from '../../base/errors.ts'
import type { ClaimedJob, Effects, SettleResult, Tx } from '../contract.ts'
import { postgresHome } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'

const home = postgresHome()
let fixture: LedgerFixture
beforeEach(async () => {
  fixture = await LedgerFixture.open(home)
  await fixture.force(`CREATE TABLE seen (at BIGINT GENERATED ALWAYS AS IDENTITY, n BIGINT NOT NULL UNIQUE)`)
})
afterEach(async () => {
  mock.restoreAll()
  await fixture.checkBooks()
  await fixture.close()
})
after(() => home.remove())

async function claimed(count: number, kind: string): Promise<ClaimedJob[]> {
  await fixture.write({ jobs: Array.from({ length: count }, () => ({ kind, payload: '{}' })) })
  return fixture.claim({ kinds: [kind] })
}

/** Ends these jobs together, with effects by their place. */
async function settle(jobs: readonly ClaimedJob[], effects: (n: number) => Effects): Promise<SettleResult[]> {
  const { settled } = await fixture.cycle({
    settle: jobs.map((job, n) => ({ job, event: 'succeed', work: { effects: effects(n) } })),
  })
  return settled
}

const OUT_OF_MEMORY = `DO $$ BEGIN RAISE 'no memory' USING ERRCODE = '53200'; END $$`

const insert = (tx: Tx, n: number): Promise<number> => tx.run(`INSERT INTO seen(n) VALUES (?)`, [n])

async function seen(): Promise<number[]> {
  return (await fixture.sql<{ n: number }>(`SELECT n FROM seen ORDER BY at`)).map((row) => row.n)
}

/** Looks at what is there, and writes the number that comes next. */
async function countUp(tx: Tx): Promise<void> {
  const last = await tx.get<{ n: number }>(`SELECT max(n) AS n FROM seen`)
  await insert(tx, (last?.n ?? 0) + 1)
}

describe('effects on one connection', () => {
  test('those that send at once do not wait for each other, and come in the order of their jobs', async () => {
    const atOnce =
      (from: number) =>
      (n: number): Effects =>
      async (tx) =>
        void (await Promise.all([insert(tx, from + 2 * n), insert(tx, from + 2 * n + 1)]))
    await settle(await claimed(1, 'at once'), atOnce(1_000))
    let unanswered = 0
    let most = 0
    const query = pg.Client.prototype.query as (...args: unknown[]) => Promise<unknown>
    mock.method(pg.Client.prototype, 'query', async function (this: pg.Client, ...args: unknown[]) {
      unanswered += 1
      most = Math.max(most, unanswered)
      try {
        return await query.apply(this, args)
      } finally {
        unanswered -= 1
      }
    })
    await settle(await claimed(20, 'at once'), atOnce(0))
    mock.restoreAll()
    assert.ok(most >= 40, `${most} statements at most were on their way together`)
    assert.deepEqual(await seen(), [1_000, 1_001, ...Array.from({ length: 40 }, (_, n) => n)])
  })

  test('one that goes on after an answer is over before the next one looks', async () => {
    await settle(await claimed(30, 'goes on'), () => countUp)
    assert.deepEqual(
      await seen(),
      Array.from({ length: 30 }, (_, n) => n + 1),
    )
  })

  test('a kind that was taken for the one and is the other loses nothing and doubles nothing', async () => {
    let began = 0
    await settle(await claimed(3, 'turns'), (n) => async (tx) => void (await insert(tx, n - 10)))
    const settled = await settle(await claimed(30, 'turns'), () => (tx) => {
      began += 1
      return countUp(tx)
    })
    assert.ok(settled.every(({ status }) => status === 'held'))
    assert.deepEqual(await seen(), [-10, -9, -8, ...Array.from({ length: 30 }, (_, n) => n - 7)])
    assert.ok(began > 30, 'the first run was given up')
    began = 0
    await settle(await claimed(30, 'turns'), () => (tx) => {
      began += 1
      return countUp(tx)
    })
    assert.equal(began, 30, 'and it was learned from')
  })

  test('any number of kinds can be mistaken in one transaction', async () => {
    const kinds = Array.from({ length: 7 }, (_, n) => `mistaken ${n}`)
    const jobs: ClaimedJob[] = []
    for (const [n, kind] of kinds.entries()) {
      await settle(await claimed(1, kind), () => async (tx) => void (await insert(tx, n - 1_000)))
      // As many as share a savepoint: what comes behind is not begun when the first of them is given up.
      jobs.push(...(await claimed(1, kind)), ...(await claimed(63, 'at once')))
    }
    const settled = await settle(jobs, (n) =>
      n % 64 === 0 ? countUp : async (tx) => void (await insert(tx, 1_000 * n)),
    )
    assert.ok(settled.every(({ status }) => status === 'held'))
    assert.equal((await seen()).length, kinds.length + jobs.length)
  })

  test('of those that were sent together the one that fails is undone alone, with its error', async () => {
    await settle(await claimed(1, 'fails'), () => async (tx) => void (await insert(tx, 7)))
    const settled = await settle(await claimed(20, 'fails'), (n) => async (tx) => void (await insert(tx, n)))
    assert.deepEqual(
      settled.flatMap((result, n) => (result.status === 'held' ? [] : [n])),
      [7],
    )
    const [failed] = settled.filter((result) => result.status === 'error')
    assert.match(String((failed as { error: unknown }).error), /duplicate key/)
    assert.equal((await seen()).length, 20)
  })

  test('one that passes over its error is undone alone, too, and so is one that throws after its answer', async () => {
    await settle(await claimed(1, 'passes over'), () => async (tx) => void (await insert(tx, 7)))
    const settled = await settle(await claimed(20, 'passes over'), (n) => async (tx) => {
      const sent = insert(tx, n === 9 ? 7 : n + 100)
      if (n === 9) await sent.catch(() => {})
      else await sent
      if (n === 12) throw new Error('on second thought')
    })
    assert.deepEqual(
      settled.flatMap((result, n) => (result.status === 'held' ? [] : [n])),
      [9, 12],
    )
    assert.equal((await seen()).length, 19)
  })

  test('kinds of both sorts in one group keep the order of their jobs', async () => {
    await settle(await claimed(1, 'alpha'), () => async (tx) => void (await insert(tx, 0)))
    const jobs = [
      ...(await claimed(4, 'alpha')),
      ...(await claimed(4, 'beta')),
      ...(await claimed(4, 'alpha')),
    ]
    await settle(jobs, (n) =>
      n >= 4 && n < 8 ? countUp : async (tx) => void (await insert(tx, n < 4 ? n + 1 : n + 100)),
    )
    assert.deepEqual(await seen(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 108, 109, 110, 111])
  })

  test('one that ends its session each time is found, and fails alone; the others wait no longer', async () => {
    const jobs = await claimed(20, 'deadly')
    const effects = (n: number) => async (tx: Tx) => {
      await insert(tx, n)
      if (n === 5) await tx.get(`SELECT pg_terminate_backend(pg_backend_pid())`)
    }
    // Once or twice is a server that was restarted.
    for (let losses = 0; losses < 4; losses++)
      await assert.rejects(settle(jobs, effects), { code: 'ledger-down' })
    const settled = await settle(jobs, effects)
    assert.deepEqual(
      settled.flatMap((result, n) => (result.status === 'held' ? [] : [n])),
      [5],
    )
    const { error } = settled[5] as { error: TidemarkError }
    assert.match(error.message, /Each time its effects were written/)
    assert.equal(error.kind, 'transient')
    assert.equal((await seen()).length, 19)
  })

  for (const code of ['08001', '53200', '58P01', '28P01', '3D000']) {
    test(`an error ${code} that a statement of one ends with is its own, and no outage`, async () => {
      const settled = await settle(await claimed(3, 'foreign'), (n) => async (tx) => {
        await insert(tx, n)
        if (n === 1) await tx.run(`DO $$ BEGIN RAISE 'away' USING ERRCODE = '${code}'; END $$`)
      })
      assert.deepEqual(
        settled.map((result) => result.status),
        ['held', 'error', 'held'],
      )
      assert.equal((await seen()).length, 2)
    })
  }

  test('an effect that runs out of memory and goes on after it fails alone, with that as its reason', async () => {
    const settled = await settle(await claimed(3, 'hungry'), (n) => async (tx) => {
      await insert(tx, n)
      if (n !== 1) return
      await tx.run(OUT_OF_MEMORY).catch(() => {})
      await insert(tx, 100)
    })
    assert.deepEqual(
      settled.map((result) => result.status),
      ['held', 'error', 'held'],
    )
    const { error } = settled[1] as { error: TidemarkError }
    assert.deepEqual([error.kind, error.code, error.message], ['transient', 'effect-memory', 'no memory'])
    assert.deepEqual(await seen(), [0, 2])
  })

  test('a statement of the ledger that runs out of memory is an outage: no job is to blame, and it ends by itself', async () => {
    const jobs = await claimed(3, 'innocent')
    const effects = (n: number) => (tx: Tx) => insert(tx, n).then(() => {})
    await fixture.force(`CREATE FUNCTION no_memory() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE 'no memory' USING ERRCODE = '53200'; END $$`)
    await fixture.force(
      `CREATE TRIGGER no_memory BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION no_memory()`,
    )
    try {
      await assert.rejects(settle(jobs, effects), { code: 'ledger-memory', kind: 'transient' })
      assert.deepEqual(await seen(), [])
    } finally {
      await fixture.force(`DROP FUNCTION no_memory CASCADE`)
    }
    assert.ok((await settle(jobs, effects)).every(({ status }) => status === 'held'))
    const rows = await fixture.sql(
      `SELECT state, failures FROM jobs WHERE kind = 'innocent' GROUP BY state, failures`,
    )
    assert.deepEqual(rows, [{ state: 'done', failures: 0 }])
  })
})
