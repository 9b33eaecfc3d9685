/** The contract of putting jobs into the ledger: plain, in bulk, by key, in an app's own transaction. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { NewJob, Tx } from './contract.ts'
import { IDLE_CODE, IDLE_MS_MAX } from './guard.ts'
import type { Home } from './home.suite.ts'
import type { AppTx } from './ledger.ts'
import { Ledger } from './ledger.ts'
import { HOUR_MS, type LedgerFixture, type LedgerTest } from './ledger-fixture.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

export function enqueueContract(test: LedgerTest): void {
  test('a job comes back from a claim with everything it was enqueued with', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const parentId = await fixture.add({ kind: 'unknown here' })
    const id = await fixture.add({
      key: 'a',
      streamId,
      segment,
      parentId,
      lane: 'bulk',
      priority: 7,
      size: 12_345_678_901,
      items: 3,
      payload: '{"text":"žluťoučký 🐎"}',
    }) // prettier-ignore
    const [claimed] = await fixture.claim()
    assert.deepEqual(
      { ...claimed },
      {
        id,
        kind: 'job',
        key: 'a',
        streamId,
        segmentId: segment,
        parentId,
        lane: 'bulk',
        priority: 7,
        payload: '{"text":"žluťoučký 🐎"}',
        bytes: Buffer.byteLength('{"text":"žluťoučký 🐎"}'),
        size: 12_345_678_901,
        items: 3,
        attempt: 1,
        failures: 0,
        checkpoint: null,
        badId: null,
        createdAt: fixture.ledger.now(),
      },
    )
  })

  test('jobs enqueued by the thousand get ids in their order and are all there', async (fixture) => {
    const jobs = Array.from({ length: 3_000 }, (_, n) => job({ payload: String(n), lane: 'bulk' }))
    const added = await fixture.write({ jobs })
    assert.equal(new Set(added.map((one) => one.id)).size, 3_000)
    assert.deepEqual(
      added.map((one) => one.id),
      added.map((one) => one.id).sort((a, b) => a - b),
    )
    assert.ok(added.every((one) => one.outcome === 'added'))
    const claimed = await fixture.claim({ n: 5_000 })
    const payloadOf = new Map(claimed.map((one) => [one.id, one.payload]))
    assert.deepEqual(
      added.map((one) => payloadOf.get(one.id)),
      jobs.map((one) => one.payload),
    )
  })

  test('jobs of one kind and priority are claimed in the order of their enqueueing', async (fixture) => {
    const ids: number[] = []
    for (let n = 0; n < 6; n++) ids.push(await fixture.add())
    const order = []
    for (let n = 0; n < 3; n++)
      order.push(...(await fixture.claim({ n: 2 })).map((one) => one.id).sort((a, b) => a - b))
    assert.deepEqual(order, ids)
  })

  test('a job with a start time ahead is not claimed before it, and is claimed after it', async (fixture) => {
    const later = await fixture.add({ runAt: fixture.ledger.now() + HOUR_MS })
    const past = await fixture.add({ runAt: fixture.ledger.now() - 1 })
    assert.deepEqual(await fixture.stages(later, past), ['time', 'ready'])
    assert.deepEqual(
      (await fixture.claim()).map((one) => one.id),
      [past],
    )
    fixture.clock.pass(HOUR_MS - 1)
    assert.deepEqual(await fixture.ledger.wakeDue(), { woken: 0, nextDueAt: fixture.ledger.now() + 1 })
    fixture.clock.pass(1)
    assert.deepEqual(await fixture.ledger.wakeDue(), { woken: 1, nextDueAt: null })
    assert.deepEqual(
      (await fixture.claim()).map((one) => one.id),
      [later],
    )
  })

  test('a cycle tells how many jobs it made ready', async (fixture) => {
    const first = await fixture.claimed()
    await fixture.write({ jobs: [job({ after: [first.id] }), job({ after: [first.id] })] })
    const work = [{ jobs: [job(), job({ runAt: fixture.ledger.now() + 10 })] }]
    const { becameReady } = await fixture.cycle({ settle: [{ job: first, event: 'succeed' }], work })
    assert.equal(becameReady, 3)
  })

  test('a cycle tells the earliest start time that it wrote', async (fixture) => {
    const now = fixture.ledger.now()
    const { nextDueAt } = await fixture.cycle({
      work: [{ jobs: [job({ runAt: now + 500 }), job({ runAt: now + 300 })] }, { jobs: [job()] }],
    })
    assert.equal(nextDueAt, now + 300)
  })

  test('thousands of jobs that fall due at one instant all wake', async (fixture) => {
    const runAt = fixture.ledger.now() + 1
    await fixture.write({ jobs: Array.from({ length: 6_000 }, () => job({ runAt })) })
    fixture.clock.pass(1)
    assert.equal((await fixture.ledger.wakeDue()).woken, 6_000)
  })

  test('a job for a segment that nobody knows is refused, and nothing is written', async (fixture) => {
    await assert.rejects(fixture.write({ jobs: [job(), job({ segment: 4_711 })] }), UsageError)
    await assert.rejects(fixture.write({ jobs: [job(), job({ segment: 'nowhere' })] }), UsageError)
    assert.equal(await fixture.count('jobs'), 0)
  })

  keys(test)
  replacements(test)
}

function keys(test: LedgerTest): void {
  test('a key is unique among the unsettled jobs of a kind: enqueueing it again is a no-op', async (fixture) => {
    const [first] = await fixture.write({ jobs: [job({ key: 'a', payload: '1' })] })
    const [again] = await fixture.write({ jobs: [job({ key: 'a', payload: '2' })] })
    assert.deepEqual(again, { id: first!.id, outcome: 'ignored' })
    const [claimed] = await fixture.claim()
    assert.equal(claimed!.payload, '1')
    assert.equal(
      (await fixture.write({ jobs: [job({ key: 'a' })] }))[0]!.outcome,
      'ignored',
      'while it is claimed',
    )
  })

  test('the same key of another kind is another job', async (fixture) => {
    const added = await fixture.write({ jobs: [job({ key: 'a' }), job({ kind: 'other', key: 'a' })] })
    assert.deepEqual(
      added.map((one) => one.outcome),
      ['added', 'added'],
    )
  })

  test('a key is free again once its job is done, skipped or canceled', async (fixture) => {
    for (const event of ['succeed', 'skip', 'stop'] as const) {
      await fixture.settle(await fixture.claimed({ key: 'a' }), event)
    }
    const canceled = await fixture.add({ key: 'a' })
    await fixture.ledger.cancel(canceled)
    const [added] = await fixture.write({ jobs: [job({ key: 'a' })] })
    assert.equal(added!.outcome, 'added')
  })

  test('a key given twice in one call makes one job', async (fixture) => {
    const added = await fixture.write({ jobs: [job({ key: 'a' }), job(), job({ key: 'a' })] })
    assert.deepEqual(
      added.map((one) => one.outcome),
      ['added', 'added', 'ignored'],
    )
    assert.equal(added[2]!.id, added[0]!.id)
  })

  test('enqueueing the key of a failed job brings it back with a full budget and the new payload', async (fixture) => {
    const failing = await fixture.claimed({ key: 'a', payload: '1' })
    await fixture.settle(failing, 'retry', { checkpoint: '{"at":1}' })
    const [again] = await fixture.claim()
    await fixture.settle(again!, 'fail', { error: { kind: 'permanent', message: 'no' } })
    const [revived] = await fixture.write({ jobs: [job({ key: 'a', payload: '2' })] })
    assert.deepEqual(revived, { id: failing.id, outcome: 'revived' })
    const [claimed] = await fixture.claim()
    assert.equal(claimed!.payload, '2')
    assert.equal(claimed!.failures, 0)
    assert.equal(claimed!.checkpoint, null, 'a checkpoint of the old payload says nothing about the new one')
  })

  test('a revived job starts no earlier than its new start time', async (fixture) => {
    await fixture.settle(await fixture.claimed({ key: 'a' }), 'fail')
    const [revived] = await fixture.write({ jobs: [job({ key: 'a', runAt: fixture.ledger.now() + 10 })] })
    assert.equal(revived!.outcome, 'revived')
    assert.equal(await fixture.stage(revived!.id), 'time')
  })

  test('a revived job waits for the jobs that it is now enqueued after', async (fixture) => {
    await fixture.settle(await fixture.claimed({ key: 'a' }), 'fail')
    const first = await fixture.add({ kind: 'other' })
    const [revived] = await fixture.write({ jobs: [job({ key: 'a', after: [first] })] })
    assert.equal(await fixture.stage(revived!.id), 'deps')
    const [claimed] = await fixture.claim()
    assert.equal(claimed!.id, first)
    await fixture.settle(claimed!, 'succeed')
    assert.equal(await fixture.stage(revived!.id), 'ready')
  })

  test('a job that failed because of another and is revived without it runs', async (fixture) => {
    const broken = await fixture.claimed({ kind: 'other' })
    const id = await fixture.add({ key: 'a', after: [broken.id] })
    await fixture.settle(broken, 'fail')
    assert.equal(await fixture.stage(id), 'failed')
    assert.equal(await fixture.add({ key: 'a' }), id)
    assert.equal(await fixture.stage(id), 'ready')
    // The old dependency is none of its business any more.
    await fixture.ledger.redo(broken.id)
    assert.equal(await fixture.stage(id), 'ready')
  })

  test('a revived job of a segment still holds the segment back until it is done', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      counts: [{ segment, listed: 1, seal: true }],
      jobs: [job({ key: 'a', streamId, segment })],
    })
    const [failing] = await fixture.claim()
    await fixture.settle(failing!, 'fail')
    await fixture.write({ jobs: [job({ key: 'a', streamId, segment })] })
    assert.equal((await fixture.mark(streamId)).mark_at, 0)
    const [again] = await fixture.claim()
    await fixture.settle(again!, 'succeed', { work: { counts: [{ segment, stored: 1 }] } })
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
  })
}

const replacing = (more: Partial<NewJob> = {}): NewJob => job({ key: 'a', onKeyTaken: 'replace', ...more })

async function replace(fixture: LedgerFixture, more: Partial<NewJob> = {}): Promise<number> {
  const [added] = await fixture.write({ jobs: [replacing(more)] })
  assert.equal(added!.outcome, 'replaced')
  return added!.id
}

function replacements(test: LedgerTest): void {
  test('a pending job that is replaced is canceled, and only the new one runs', async (fixture) => {
    const old = await fixture.add({ key: 'a', payload: 'old' })
    const fresh = await replace(fixture, { payload: 'new' })
    assert.deepEqual(await fixture.stages(old, fresh), ['canceled', 'ready'])
    assert.deepEqual(
      (await fixture.claim()).map((one) => one.payload),
      ['new'],
    )
  })

  test('a running job that is replaced is asked to stop; its replacement starts only after it has stopped', async (fixture) => {
    const old = await fixture.claimed({ key: 'a' })
    const result = await fixture.cycle({ work: [{ jobs: [replacing()] }], claim: fixture.claimRequest() })
    assert.deepEqual(
      result.toStop.map((one) => ({ ...one })),
      [{ id: old.id, owner: fixture.owner }],
    )
    assert.deepEqual(result.claimed, [])
    assert.deepEqual(await fixture.ledger.stopRequests(fixture.owner), [old.id])
    assert.deepEqual(await fixture.settle(old, 'stop'), { status: 'held', jobs: [] })
    const [fresh] = await fixture.claim()
    assert.equal(fresh!.key, 'a')
    assert.notEqual(fresh!.id, old.id)
    assert.equal(await fixture.stage(old.id), 'canceled')
  })

  test('a replaced job that finishes all the same leaves no effect', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const old = await fixture.claimed({ key: 'a' })
    const fresh = await replace(fixture)
    const work = {
      effects: async (tx: { run(sql: string): Promise<number> }) =>
        void (await tx.run(`INSERT INTO notes VALUES ('late')`)),
    }
    assert.deepEqual(await fixture.settle(old, 'succeed', { work }), { status: 'canceled' })
    assert.equal(await fixture.count('notes'), 0)
    assert.deepEqual(await fixture.stages(old.id, fresh), ['canceled', 'ready'])
  })

  test('three replacements in a row of a running job leave one, which starts after the running one has stopped', async (fixture) => {
    const running = await fixture.claimed({ key: 'a' })
    const ids = [await replace(fixture), await replace(fixture), await replace(fixture)]
    assert.deepEqual(await fixture.stages(...ids), ['canceled', 'canceled', 'deps'])
    assert.deepEqual(await fixture.claim(), [])
    await fixture.settle(running, 'stop')
    assert.deepEqual(
      (await fixture.claim()).map((one) => one.id),
      [ids[2]],
    )
  })

  test('a replacement also starts when the job it replaces dies with its worker', async (fixture) => {
    const old = await fixture.claimed({ key: 'a' })
    const fresh = await replace(fixture)
    const next = await fixture.worker('next')
    await fixture.ledger.reclaim((worker) => worker.id === fixture.owner)
    assert.deepEqual(await fixture.stages(old.id, fresh), ['canceled', 'ready'])
    assert.deepEqual(
      (await fixture.claim({ owner: next })).map((one) => one.id),
      [fresh],
    )
  })

  test('those who waited for a job wait for its replacement', async (fixture) => {
    const old = await fixture.add({ key: 'a' })
    const dependent = await fixture.add({ kind: 'last', after: [old] })
    const fresh = await replace(fixture)
    assert.equal(await fixture.stage(dependent), 'deps')
    const [claimed] = await fixture.claim()
    assert.equal(claimed!.id, fresh)
    await fixture.settle(claimed!, 'succeed')
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('a job that is replaced by one with the same dependencies waits for each of them once', async (fixture) => {
    const first = await fixture.claimed({ kind: 'other' })
    await fixture.add({ key: 'a', after: [first.id] })
    const fresh = await replace(fixture, { after: [first.id] })
    assert.equal(await fixture.stage(fresh), 'deps')
    await fixture.settle(first, 'succeed')
    assert.equal(await fixture.stage(fresh), 'ready')
  })

  test('a replacement may name the job it replaces as one to wait for', async (fixture) => {
    const pending = await fixture.add({ key: 'a' })
    const second = await replace(fixture, { after: [pending] })
    assert.equal(
      await fixture.stage(second),
      'ready',
      'what it waits for is settled by the replacement itself',
    )
    const [running] = await fixture.claim()
    assert.equal(running!.id, second)
    const third = await replace(fixture, { after: [second] })
    assert.equal(await fixture.stage(third), 'deps')
    await fixture.settle(running!, 'stop')
    assert.equal(await fixture.stage(third), 'ready')
  })

  test('a replacement that would wait for its own dependents is refused, and nothing is written', async (fixture) => {
    const old = await fixture.add({ key: 'a' })
    const middle = await fixture.add({ kind: 'other', after: [old] })
    const end = await fixture.add({ kind: 'last', after: [middle] })
    await assert.rejects(fixture.write({ jobs: [replacing({ after: [end] })] }), { code: 'dependency-cycle' })
    assert.deepEqual(await fixture.stages(old, middle, end), ['ready', 'deps', 'deps'])
    assert.equal(await fixture.count('jobs'), 3)
  })

  test('a failed job is not revived to wait for its own dependents', async (fixture) => {
    const old = await fixture.claimed({ key: 'a' })
    const dependent = await fixture.add({ kind: 'last', after: [old.id] })
    await fixture.settle(old, 'fail')
    await assert.rejects(fixture.write({ jobs: [job({ key: 'a', after: [dependent] })] }), {
      code: 'dependency-cycle',
    })
    assert.deepEqual(await fixture.stages(old.id, dependent), ['failed', 'failed'])
  })

  test('the key of a job that was canceled while running starts anew only after it has stopped', async (fixture) => {
    const old = await fixture.claimed({ key: 'a' })
    await fixture.ledger.cancel(old.id)
    const fresh = await fixture.add({ key: 'a' })
    assert.notEqual(fresh, old.id)
    assert.equal(await fixture.stage(fresh), 'deps')
    await fixture.settle(old, 'stop')
    assert.equal(await fixture.stage(fresh), 'ready')
  })

  test('a replacement that is canceled and enqueued once more still waits for the job that is stopping', async (fixture) => {
    const running = await fixture.claimed({ key: 'a' })
    await fixture.ledger.cancel(await replace(fixture))
    const [third] = await fixture.write({ jobs: [replacing()] })
    assert.equal(await fixture.stage(third!.id), 'deps')
    await fixture.settle(running, 'stop')
    assert.equal(await fixture.stage(third!.id), 'ready')
  })

  test('a replaced job leaves its segment, and its replacement joins its own', async (fixture) => {
    const streamId = await fixture.stream()
    const [one, two] = [await fixture.segment(streamId, 0, 10), await fixture.segment(streamId, 10, 20)]
    await fixture.write({
      counts: [{ segment: one, seal: true }],
      jobs: [job({ key: 'a', streamId, segment: one })],
    })
    await replace(fixture, { streamId, segment: two })
    assert.deepEqual(
      [(await fixture.segmentRow(one)).state, (await fixture.segmentRow(two)).open_jobs],
      ['settled', 1],
    )
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
  })
}

/** An app's own transaction, and enqueueing from an app's own connection. */
export function appTransactionContract(test: LedgerTest, home: Home): void {
  test('what an app writes and what it enqueues in one transaction appear together', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const jobs = await fixture.ledger.transaction(async (tx) => {
      await tx.run(`INSERT INTO notes VALUES (?)`, ['hello'])
      return tx.write({ jobs: [job({ key: 'a' })] })
    })
    assert.equal(await fixture.count('notes'), 1)
    assert.equal(await fixture.stage(jobs[0]!.id), 'ready')
  })

  test('an app’s transaction and an outcome’s effects know whether a statement is a round trip, as the ledger does', async (fixture) => {
    const { ledger } = fixture
    const seen: (boolean | undefined)[] = []
    const look = async (tx: Pick<Tx, 'isRemote'>): Promise<void> => void seen.push(tx.isRemote)
    await ledger.driver.transaction(look)
    await ledger.transaction(look)
    await fixture.write({ effects: look })
    await fixture.write({ jobs: [job()] })
    const [held] = await fixture.claim()
    await fixture.settle(held!, 'succeed', { work: { effects: look } })
    assert.deepEqual(seen, Array(4).fill(!/^SQLite/.test(home.name)))
  })

  test('an app transaction that throws leaves nothing, and the next one works', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const attempt = fixture.ledger.transaction(async (tx) => {
      await tx.run(`INSERT INTO notes VALUES (?)`, ['hello'])
      await tx.write({ jobs: [job()] })
      throw new Error('changed my mind')
    })
    await assert.rejects(attempt, /changed my mind/)
    assert.deepEqual([await fixture.count('notes'), await fixture.count('jobs')], [0, 0])
    await fixture.ledger.transaction((tx) => tx.write({ jobs: [job()] }))
    assert.equal(await fixture.count('jobs'), 1)
  })

  test('what comes after the end of an app transaction, or is under way at it, is not written', async (fixture) => {
    let kept: AppTx | undefined
    const failed = fixture.ledger.transaction(async (tx) => {
      kept = tx
      await Promise.all([
        tx.write({ jobs: [job({ key: 'a' })] }),
        Promise.reject(new Error('changed my mind')),
      ])
    })
    await assert.rejects(failed, /changed my mind/)
    await assert.rejects(kept!.write({ jobs: [job()] }), /after the end/)
    await assert.rejects(kept!.run(`DELETE FROM jobs`), /after the end/)
    await fixture.ledger.transaction(async (tx) => {
      kept = tx
    })
    await assert.rejects(kept!.write({ jobs: [job()] }), /after the end/)
    // Another one that is open meanwhile does not take it in.
    const late = fixture.ledger.transaction(async () => kept!.write({ jobs: [job()] }))
    await assert.rejects(late, /after the end/)
    assert.equal(await fixture.count('jobs'), 0)
  })

  test('an app transaction that was given up enqueues nothing when it goes on', async (fixture) => {
    const standing = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    let late: Promise<unknown> = Promise.resolve()
    const givenUp = fixture.ledger.transaction(async (tx) => {
      await tx.write({ jobs: [job()] })
      standing.resolve()
      await goOn.promise
      late = tx.write({ jobs: [job()] })
      await late
    })
    await standing.promise
    fixture.clock.rush(IDLE_MS_MAX + 1)
    await assert.rejects(givenUp, { code: IDLE_CODE })
    goOn.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    await assert.rejects(late, /after the end/)
    assert.equal(await fixture.count('jobs'), 0)
  })

  test('migrations of an app run once each, in order, all or none', async (fixture) => {
    const one = [`CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('one')`]
    await fixture.ledger.migrateApp('notes', [one])
    await fixture.ledger.migrateApp('notes', [one, [`INSERT INTO notes VALUES ('two')`]])
    assert.equal(await fixture.count('notes'), 2)
    const broken = [one, [], [`INSERT INTO notes VALUES ('three')`, `INSERT INTO nowhere VALUES (1)`]]
    await assert.rejects(fixture.ledger.migrateApp('notes', broken))
    assert.equal(await fixture.count('notes'), 2)
    await assert.rejects(fixture.ledger.migrateApp('notes', [one]), UsageError, 'tables newer than the app')
  })

  if (!home.shared) return

  test('two processes that migrate an app at the same time run each step once', async (fixture) => {
    const steps = [[`CREATE TABLE notes (text TEXT)`], [`INSERT INTO notes VALUES ('one')`]]
    const others = [fixture.ledger, await fixture.neighbour(), await fixture.neighbour()]
    await Promise.all(others.map((ledger) => ledger.migrateApp('notes', steps)))
    assert.equal(await fixture.count('notes'), 1)
  })

  test('work enqueued on an app’s own connection appears with its commit, not before', async (fixture) => {
    const app = await fixture.site.connect()
    try {
      await app.exec('BEGIN')
      const [added] = await fixture.ledger.writeWithin(app.handle, { jobs: [job({ key: 'a' })] })
      assert.equal(await fixture.ledger.job(added!.id), undefined)
      await app.exec('COMMIT')
      assert.equal(await fixture.stage(added!.id), 'ready')
    } finally {
      await app.close()
    }
  })

  test('however many write at once, none shares its row of a tally with an app that has not committed', async (fixture) => {
    const ledger = new Ledger(fixture.ledger.driver, { random: () => 0.999 })
    const app = await fixture.site.connect()
    try {
      await Promise.all(Array.from({ length: 70 }, () => ledger.write({ jobs: [job()] })))
      const slots = async (): Promise<number[]> =>
        (await fixture.sql<{ slot: number }>(`SELECT DISTINCT slot FROM tallies`)).map(({ slot }) =>
          Number(slot),
        )
      const engines = new Set(await slots())
      assert.ok(engines.size > 1, 'they were under way at once')
      await app.exec('BEGIN')
      await ledger.writeWithin(app.handle, { jobs: [job()] })
      await app.exec('COMMIT')
      assert.equal((await slots()).length, engines.size + 1)
    } finally {
      await app.close()
    }
  })

  test('work enqueued on an app’s own connection goes away with its rollback', async (fixture) => {
    const streamId = await fixture.stream()
    const app = await fixture.site.connect()
    try {
      await app.exec('BEGIN')
      const segments = [{ streamId, from: 0, to: 5, ref: 'part' }]
      await fixture.ledger.writeWithin(app.handle, {
        segments,
        jobs: [job({ segment: 'part' }), job({ key: 'a' })],
      })
      await app.exec('ROLLBACK')
    } finally {
      await app.close()
    }
    assert.deepEqual([await fixture.count('jobs'), await fixture.count('segments')], [0, 0])
    assert.equal(await fixture.segment(streamId, 0, 7), (await fixture.ledger.segments(streamId))[0]!.id)
  })
}
