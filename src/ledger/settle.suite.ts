/** The contract of outcomes: one transaction each, what they cost, what they leave behind, and bad items. */
import assert from 'node:assert/strict'
import { asTidemarkError } from '../base/errors.ts'
import { Accounts } from './accounts.ts'
import type { ClaimedJob, NewBadItem, NewJob, Tx } from './contract.ts'
import { IDLE_MS_MAX } from './guard.ts'
import { HOUR_MS, type LedgerFixture, type LedgerTest, plain } from './ledger-fixture.suite.ts'
import { SqlBudgetStore } from './sql-budgets.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const note = (text: string) => async (tx: Tx) => void (await tx.run(`INSERT INTO notes VALUES (?)`, [text]))

async function notes(fixture: LedgerFixture): Promise<string[]> {
  return (await fixture.sql<{ text: string }>(`SELECT text FROM notes ORDER BY text`)).map((one) => one.text)
}

async function claimMany(fixture: LedgerFixture, n: number): Promise<ClaimedJob[]> {
  await fixture.write({ jobs: Array.from({ length: n }, (_, index) => job({ payload: String(index) })) })
  const claimed = await fixture.claim()
  assert.equal(claimed.length, n)
  return claimed.sort((a, b) => a.id - b.id)
}

export function settleContract(test: LedgerTest): void {
  test('a job’s effects, its children, its cursor and its done are one transaction', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const streamId = await fixture.stream()
    const listing = await fixture.claimed({ streamId })
    const result = await fixture.settle(listing, 'succeed', {
      work: {
        effects: note('stored'),
        cursors: [{ streamId, value: 'page 2' }],
        jobs: [job({ kind: 'fetch' })],
      },
    })
    assert.equal(result.status, 'held')
    assert.deepEqual(await notes(fixture), ['stored'])
    assert.equal((await fixture.ledger.stream('mail')).cursor, 'page 2')
    assert.equal(await fixture.stage(listing.id), 'done')
  })

  test('if any part of an outcome fails, none of it is written and the job is still held', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const streamId = await fixture.stream()
    const listing = await fixture.claimed({ streamId })
    const cursors = [{ streamId, value: 'page 2' }]
    const broken = [
      { effects: note('stored'), cursors, jobs: [job({ after: ['nobody'] })] },
      { effects: note('stored'), cursors, segments: [{ streamId, from: 7, to: 9 }] },
      { effects: note('stored'), jobs: [job()], cursors: [...cursors, { streamId: 4_711, value: 'x' }] },
      { cursors, jobs: [job()], effects: () => assert.fail('on purpose') },
      {
        cursors,
        jobs: [job()],
        effects: async (tx: Tx) => void (await tx.run(`INSERT INTO nowhere VALUES (1)`)),
      },
    ]
    for (const work of broken) await assert.rejects(fixture.settle(listing, 'succeed', { work }))
    assert.deepEqual(await notes(fixture), [])
    assert.equal((await fixture.ledger.stream('mail')).cursor, null)
    assert.equal(await fixture.stage(listing.id), 'claimed')
    assert.equal(await fixture.count('jobs'), 1)
    assert.equal(
      (await fixture.settle(listing, 'succeed', { work: { effects: note('stored') } })).status,
      'held',
    )
    assert.deepEqual(await notes(fixture), ['stored'])
  })

  const FAULTS: [what: string, effects: (tx: Tx) => Promise<void>][] = [
    ['effects that throw', async () => assert.fail('on purpose')],
    [
      'effects that break a rule of the database',
      async (tx) => void (await tx.run(`INSERT INTO ids VALUES (1), (1)`)),
    ],
    [
      'effects that throw what another database has said',
      async () => {
        throw Object.assign(new Error('database is locked'), { code: 'ECONNREFUSED', errcode: 5 })
      },
    ],
    ['effects that are no SQL', async (tx) => void (await tx.run(`INSRT INTO ids`))],
    [
      'effects that write and then throw',
      async (tx) => {
        await tx.run(`INSERT INTO ids VALUES (99)`)
        throw new Error('on purpose')
      },
    ], // prettier-ignore
    [
      'effects that pass over an error which ended the transaction, and write on',
      async (tx) => {
        const insert = tx.dialect === 'sqlite' ? 'INSERT OR ROLLBACK' : 'INSERT'
        await tx.run(`INSERT INTO ids VALUES (99)`)
        await tx.run(`${insert} INTO ids VALUES (99)`).catch(() => {})
        await tx.run(`INSERT INTO ids VALUES (98)`).catch(() => {})
      },
    ],
    ...['COMMIT', '/* now */ ROLLBACK', 'SAVEPOINT mine', 'END', 'BEGIN', 'RELEASE tidemark_part'].map(
      (sql): [string, (tx: Tx) => Promise<void>] => [
        `effects with ${sql} after a write`,
        async (tx) => {
          await tx.run(`INSERT INTO ids VALUES (99)`)
          await tx.run(sql)
        },
      ],
    ),
  ]
  for (const [what, effects] of FAULTS) {
    test(`${what} are rolled back alone; their neighbours in the cycle commit, each once`, async (fixture) => {
      await fixture.force(`CREATE TABLE ids (id INTEGER PRIMARY KEY)`)
      const jobs = await claimMany(fixture, 5)
      const store = (id: number) => async (tx: Tx) => void (await tx.run(`INSERT INTO ids VALUES (?)`, [id]))
      const { settled, work, claimed } = await fixture.cycle({
        settle: jobs.map((one, n) => ({
          job: one,
          event: 'succeed',
          work: { effects: n === 2 ? effects : store(n + 10) },
        })),
        work: [{ jobs: [job({ kind: 'other' })] }, { jobs: [job({ after: ['nobody'] })] }],
        claim: fixture.claimRequest({ kinds: ['other'] }),
      })
      assert.deepEqual(
        settled.map((one) => one.status),
        ['held', 'held', 'error', 'held', 'held'],
      )
      assert.deepEqual(
        work.map((one) => one.status),
        ['held', 'error'],
      )
      assert.equal(claimed.length, 1, 'the claim of the cycle is not lost')
      assert.deepEqual(
        (await fixture.sql<{ id: number }>(`SELECT id FROM ids ORDER BY id`)).map((one) => Number(one.id)),
        [10, 11, 13, 14],
      )
      assert.deepEqual(await fixture.stages(...jobs.map((one) => one.id)), [
        'done',
        'done',
        'claimed',
        'done',
        'done',
      ])
    })
  }

  test('effects that wait for something else are given up alone, and nothing they do later counts', async (fixture) => {
    await fixture.force(`CREATE TABLE ids (id INTEGER PRIMARY KEY)`)
    await fixture.write({ jobs: [job(), job(), job({ kind: 'other' })] })
    const jobs = (await fixture.claim()).sort((a, b) => a.id - b.id)
    const standing = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    let late: Promise<unknown> = Promise.resolve()
    const effects = async (tx: Tx): Promise<void> => {
      await tx.run(`INSERT INTO ids VALUES (99)`)
      standing.resolve()
      await goOn.promise
      late = tx.run(`INSERT INTO ids VALUES (98)`)
      await late
    }
    const store = (id: number) => async (tx: Tx) => void (await tx.run(`INSERT INTO ids VALUES (?)`, [id]))
    const cycle = fixture.cycle({
      settle: jobs.map((one, n) => ({
        job: one,
        event: 'succeed',
        work: { effects: n === 1 ? effects : store(n) },
      })),
    })
    await standing.promise
    fixture.clock.rush(IDLE_MS_MAX + 1)
    const { settled } = await cycle
    assert.deepEqual(
      settled.map((one) => one.status),
      ['held', 'error', 'held'],
    )
    assert.match(String((settled[1] as { error: unknown }).error), /waited for something else/)
    goOn.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    await assert.rejects(late, /after the end/)
    assert.deepEqual(
      (await fixture.sql<{ id: number }>(`SELECT id FROM ids ORDER BY id`)).map((one) => Number(one.id)),
      [0, 2],
    )
  })

  test('effects of a kind that stand still, however many, cost the others in the cycle one wait', async (fixture) => {
    await fixture.force(`CREATE TABLE ids (id INTEGER PRIMARY KEY)`)
    // More than are written behind one savepoint.
    const idle = [1, 2, 80]
    const kindOf = (n: number): string => (n === 0 || idle.includes(n) ? 'job' : 'other')
    await fixture.write({ jobs: Array.from({ length: 82 }, (_, n) => job({ kind: kindOf(n) })) })
    const jobs = (await fixture.claim()).sort((a, b) => a.id - b.id)
    const standing = Promise.withResolvers<void>()
    const over = Promise.withResolvers<void>()
    const stood: number[] = []
    const effectsOf = (n: number) => async (tx: Tx) => {
      if (idle.includes(n)) {
        stood.push(n)
        standing.resolve()
        await over.promise
      } else await tx.run(`INSERT INTO ids VALUES (?)`, [n])
    }
    const cycle = fixture.cycle({
      settle: jobs.map((one, n) => ({ job: one, event: 'succeed', work: { effects: effectsOf(n) } })),
    })
    await standing.promise
    fixture.clock.rush(IDLE_MS_MAX + 1)
    const { settled } = await cycle
    over.resolve()
    assert.ok(!stood.includes(80), `these stood still: ${stood}`)
    const errors = settled.map((one) =>
      one.status === 'error' ? asTidemarkError(one.error).kind : undefined,
    )
    // Those that were not tried lose no attempt.
    const expected = jobs.map((_, n) => (n === 1 ? 'bug' : idle.includes(n) ? 'throttled' : undefined))
    assert.deepEqual(errors, expected)
    assert.deepEqual(
      await fixture.stages(...jobs.map((one) => one.id)),
      expected.map((error) => (error ? 'claimed' : 'done')),
    )
    assert.equal(await fixture.count('ids'), 79)
  })

  test('an effect may not use the ledger it is in, and is told so at once', async (fixture) => {
    const [one] = await claimMany(fixture, 1)
    const effects = async (): Promise<void> => void (await fixture.ledger.transaction(async () => {}))
    await assert.rejects(
      fixture.cycle({ settle: [{ job: one!, event: 'succeed', work: { effects } }] }),
      /cannot be used inside the effects of an outcome/,
    )
    const nested = fixture.ledger.transaction(() => fixture.ledger.transaction(async () => {}))
    await assert.rejects(nested, /cannot be used inside a transaction/)
    const { ledger } = fixture
    const alert = { condition: 'c', target: 't', severity: 'warning', text: 'm' } as const
    const schedule = {
      name: 's',
      spec: 'every 1h',
      kind: 'job',
      payload: '{}',
      stream_id: 0,
      lane: 'bulk',
    } as const
    const accounts = await Accounts.open(ledger)
    const account = { service: 'gmail', name: 'ann@example.com' }
    const tuning = { name: 'b', version: 0, rate: 1, burst: 1, pausedUntilMs: 0, controller: '' }
    const uses: [string, () => Promise<unknown>][] = [
      ['stream', () => ledger.stream('new')],
      ['write', () => ledger.write({ jobs: [job()] })],
      ['heartbeat', () => ledger.heartbeat(fixture.owner, 1)],
      ['noteProgress', () => ledger.noteProgress(fixture.owner, [{ id: 1, attempt: 1, text: '' }])],
      ['putSchedule', () => ledger.putSchedule({ ...schedule, priority: 0, next_at: 1 })],
      ['dropSchedule', () => ledger.dropSchedule('s')],
      ['raiseAlert', () => ledger.raiseAlert(alert, 0)],
      ['clearAlert', () => ledger.clearAlert('c', 't')],
      ['pruneRest', () => ledger.pruneRest()],
      ['migrateApp', () => ledger.migrateApp('notes', [])],
      ['a transaction of the driver', () => ledger.driver.transaction(async () => {})],
      ['accounts.add', () => accounts.add({ ...account, settings: {}, sealed: new Uint8Array() })],
      ['accounts.setState', () => accounts.setState(1, 'sign-in')],
      ['accounts.setSealed', () => accounts.setSealed(1, new Uint8Array(), new Uint8Array())],
      ['accounts.remove', () => accounts.remove(1)],
      ['a budget', () => new SqlBudgetStore(ledger.driver).tune(tuning)],
    ]
    for (const [name, use] of uses) {
      const used = ledger.transaction(async () => void (await use()))
      await assert.rejects(used, { code: 'inside-transaction' }, name)
    }
  })

  test('one failing effect among hundreds costs one commit, and a few neighbours a second run', async (fixture) => {
    await fixture.force(`CREATE TABLE ids (id INTEGER PRIMARY KEY)`)
    const jobs = await claimMany(fixture, 300)
    fixture.points.length = 0
    let runs = 0
    const store = (id: number) => async (tx: Tx) => {
      runs += 1
      await tx.run(`INSERT INTO ids VALUES (?)`, [id])
      if (id === 150) throw new Error('on purpose')
    }
    const { settled } = await fixture.cycle({
      settle: jobs.map((one, n) => ({ job: one, event: 'succeed', work: { effects: store(n) } })),
    })
    assert.equal(settled.filter((one) => one.status === 'held').length, 299)
    assert.equal(settled[150]!.status, 'error')
    assert.equal(fixture.points.filter((name) => name === 'after-commit').length, 1)
    assert.ok(runs < 300 + 64, `${runs} effects ran`)
    assert.equal(await fixture.stage(jobs[150]!.id), 'claimed')
    const [stored] = await fixture.sql<{ n: number }>(`SELECT count(*) AS n FROM ids WHERE id <> 150`)
    assert.equal(Number(stored!.n), 299)
  })

  test('an error that comes out only with the commit is laid to its own outcome; the others commit', async (fixture) => {
    // A rule that both databases look at when the transaction commits.
    await fixture.force(
      `CREATE TABLE part (id INTEGER PRIMARY KEY, whole INTEGER REFERENCES part(id) DEFERRABLE INITIALLY DEFERRED)`,
    )
    const jobs = await claimMany(fixture, 9)
    const store = (id: number) => async (tx: Tx) => {
      await tx.run(`INSERT INTO part VALUES (?, ?)`, [id, id === 4 ? 99 : id])
    }
    const { settled } = await fixture.cycle({
      settle: jobs.map((one, n) => ({ job: one, event: 'succeed', work: { effects: store(n) } })),
      claim: fixture.claimRequest(),
    })
    assert.deepEqual(
      settled.map((one) => one.status),
      jobs.map((_, n) => (n === 4 ? 'error' : 'held')),
    )
    const [stored] = await fixture.sql<{ n: number }>(`SELECT count(*) AS n FROM part`)
    assert.equal(Number(stored!.n), 8)
  })

  test('where COMMIT refused one outcome, the next groups with such a one need no second commit', async (fixture) => {
    await fixture.force(
      `CREATE TABLE part (id INTEGER PRIMARY KEY, whole INTEGER REFERENCES part(id) DEFERRABLE INITIALLY DEFERRED)`,
    )
    const { dialect, file } = fixture.ledger.driver
    // A libSQL server cannot be: there the group is cut into halves until the one is alone.
    const isAsked = dialect === 'postgres' || file !== null
    const first = await claimMany(fixture, 600)
    let runs = 0
    let from = 0
    // Refers to what comes only later: each time the constraint has to wait again, although it was looked at before.
    const store = (n: number) => async (tx: Tx) => {
      runs += 1
      await tx.run(`INSERT INTO part VALUES (?, ?)`, [from + n, n === 100 ? -1 : from + n + 1_000_000])
      await tx.run(`INSERT INTO part VALUES (?, NULL)`, [from + n + 1_000_000])
    }
    const commit = async (jobs: readonly ClaimedJob[]) => {
      runs = 0
      fixture.points.length = 0
      const { settled } = await fixture.cycle({
        settle: jobs.map((one, n) => ({ job: one, event: 'succeed', work: { effects: store(n) } })),
      })
      assert.deepEqual(
        settled.flatMap(({ status }, n) => (status === 'held' ? [] : [n])),
        [100],
      )
      if (isAsked) assert.equal(fixture.points.filter((name) => name === 'after-commit').length, 1)
      return runs
    }
    const runsFirst = await commit(first.slice(0, 300))
    from = 1_000
    const runsThen = await commit(first.slice(300))
    // On PostgreSQL a kind is met for the first time, too (effects.ts).
    if (isAsked) assert.ok(runsFirst < 3 * 300, `${runsFirst} effects ran when nobody knew`)
    if (isAsked) assert.ok(runsThen < 300 + 128, `${runsThen} effects ran`)
    const [stored] = await fixture.sql<{ n: number }>(`SELECT count(*) AS n FROM part`)
    assert.equal(Number(stored!.n), 2 * 2 * 299)
  })

  test('outcomes that are ready together commit in one transaction', async (fixture) => {
    const jobs = await claimMany(fixture, 100)
    fixture.points.length = 0
    await fixture.cycle({ settle: jobs.map((one) => ({ job: one, event: 'succeed' })) })
    assert.equal(fixture.points.filter((name) => name === 'after-commit').length, 1)
  })

  test('outcomes of thousands of streams commit in one transaction', async (fixture) => {
    const jobs = Array.from({ length: 8_000 }, (_, n) => job({ streamId: n + 1 }))
    await fixture.write({ jobs })
    const claimed: ClaimedJob[] = []
    for (let n = 0; n < 40 && claimed.length < jobs.length; n++)
      claimed.push(...(await fixture.claim({ n: 8_000 })))
    assert.equal(claimed.length, jobs.length)
    fixture.points.length = 0
    const { settled } = await fixture.cycle({
      settle: claimed.map((one) => ({ job: one, event: 'succeed' })),
    })
    assert.ok(settled.every((one) => one.status === 'held'))
    assert.equal(fixture.points.filter((name) => name === 'after-commit').length, 1)
  })

  test('a commit passes every named point in order', async (fixture) => {
    fixture.points.length = 0
    await fixture.add()
    const order = [
      'begin',
      'settled',
      'effects-done',
      'work-written',
      'segments-written',
      'claimed',
      'before-commit',
      'after-commit',
    ]
    assert.deepEqual(fixture.points, order)
  })

  test('a handler that commits part of its work keeps its job, its checkpoint and its fence', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const upload = await fixture.claimed()
    const part = await fixture.settle(upload, 'continue', {
      checkpoint: '{"bytes":5}',
      work: { effects: note('part'), jobs: [job({ kind: 'fetch' })] },
    })
    assert.equal(part.status, 'held')
    assert.equal(await fixture.stage(upload.id), 'claimed')
    assert.equal((await fixture.row(upload.id)).checkpoint, '{"bytes":5}')
    assert.equal(
      (await fixture.settle(upload, 'succeed', { work: { effects: note('rest') } })).status,
      'held',
    )
    assert.deepEqual(await notes(fixture), ['part', 'rest'])
  })

  accounts(test)
}

function accounts(test: LedgerTest): void {
  test('a retry costs one of the budget and waits for its time; a postponement costs nothing', async (fixture) => {
    const first = await fixture.claimed()
    const runAt = fixture.ledger.now() + HOUR_MS
    const error = { kind: 'transient' as const, message: 'reset by peer' }
    const { nextDueAt } = await fixture.cycle({ settle: [{ job: first, event: 'retry', runAt, error }] })
    assert.equal(nextDueAt, runAt)
    assert.equal(await fixture.stage(first.id), 'time')
    fixture.clock.pass(HOUR_MS)
    await fixture.ledger.wakeDue()
    const [second] = await fixture.claim()
    assert.deepEqual([second!.attempt, second!.failures], [2, 1])
    await fixture.settle(second!, 'postpone', {
      runAt: fixture.ledger.now() + 5,
      error: { kind: 'throttled', message: 'slow down' },
    })
    fixture.clock.pass(5)
    await fixture.ledger.wakeDue()
    const [third] = await fixture.claim()
    assert.deepEqual([third!.attempt, third!.failures], [3, 1])
    await fixture.settle(third!, 'fail', { error: { kind: 'permanent', message: 'refused' } })
    const detail = await fixture.ledger.job(first.id)
    assert.deepEqual(
      detail!.errors.map((one) => [one.attempt, one.kind, one.message]),
      [
        [3, 'permanent', 'refused'],
        [2, 'throttled', 'slow down'],
        [1, 'transient', 'reset by peer'],
      ],
    )
    assert.deepEqual(JSON.parse(detail!.job.error!), { kind: 'permanent', message: 'refused' })
  })

  test('a retry without a time is ready at once', async (fixture) => {
    const first = await fixture.claimed()
    await fixture.settle(first, 'retry')
    assert.equal((await fixture.claim())[0]!.id, first.id)
  })

  test('a job keeps its last twenty errors, and cuts endless messages short', async (fixture) => {
    await fixture.add()
    for (let n = 0; n < 25; n++) {
      const [claimed] = await fixture.claim()
      await fixture.settle(claimed!, 'retry', {
        error: { kind: 'transient', message: `${n} ${'x'.repeat(50_000)}` },
      })
    }
    const [row] = await fixture.ledger.jobs()
    const { errors, job: kept } = (await fixture.ledger.job(row!.id))!
    assert.equal(errors.length, 20)
    assert.equal(errors[0]!.attempt, 25)
    assert.ok(errors[0]!.message.length <= 2_000 && kept.error!.length <= 2_100)
  })

  test('counters add up what happened, per stream and since a minute', async (fixture) => {
    const streamId = await fixture.stream()
    const sinceMinute = Math.floor(fixture.ledger.now() / 60_000)
    await fixture.settle(await fixture.claimed({ streamId, items: 7 }), 'succeed')
    const retried = await fixture.claimed({ streamId })
    await fixture.settle(retried, 'retry')
    await fixture.settle((await fixture.claim())[0]!, 'fail')
    await fixture.settle(await fixture.claimed(), 'skip')
    fixture.clock.pass(60_000)
    await fixture.settle(await fixture.claimed({ streamId }), 'succeed')
    assert.deepEqual(plain(await fixture.ledger.counters({ sinceMinute })), {
      processed: 8,
      retried: 1,
      failed: 1,
      skipped: 1,
    })
    assert.deepEqual(plain(await fixture.ledger.counters({ sinceMinute, streamId })), {
      processed: 8,
      retried: 1,
      failed: 1,
    })
    assert.deepEqual(plain(await fixture.ledger.counters({ sinceMinute: sinceMinute + 1 })), { processed: 1 })
    const byStream = await fixture.ledger.countersByStream(sinceMinute + 1)
    assert.deepEqual(plain(byStream), [{ streamId, name: 'processed', n: 1 }])
  })
}

const bad = (item: string, reason = 'malformed'): NewBadItem => ({
  item,
  reason,
  errorKind: 'permanent',
  payload: JSON.stringify([item]),
})

export function badItemContract(test: LedgerTest): void {
  /** A settled segment of ten items, one of them bad. */
  async function withBad(fixture: LedgerFixture): Promise<{ streamId: number; segment: number }> {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      counts: [{ segment, listed: 10, seal: true }],
      jobs: [job({ streamId, segment, items: 10 })],
    })
    const [batch] = await fixture.claim()
    await fixture.settle(batch!, 'succeed', { bad: [bad('m7')], work: { counts: [{ segment, stored: 9 }] } })
    return { streamId, segment }
  }

  test('a bad item is registered with its reason and blocks nothing', async (fixture) => {
    const { streamId, segment } = await withBad(fixture)
    assert.equal((await fixture.segmentRow(segment)).state, 'settled')
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
    const [row] = await fixture.ledger.badItems({ stream: 'mail' })
    const now = fixture.ledger.now()
    assert.deepEqual(plain({ ...row!, id: 0 }), {
      id: 0,
      stream_id: streamId,
      stream: 'mail',
      segment_id: segment,
      kind: 'job',
      item: 'm7',
      reason: 'malformed',
      error_kind: 'permanent',
      payload: '["m7"]',
      first_seen: now,
      last_tried: now,
      tries: 1,
    }) // prettier-ignore
    assert.deepEqual(plain(await fixture.ledger.counters({ sinceMinute: 0 })), { processed: 10, bad: 1 })
  })

  test('an item that is bad again keeps its place: first seen stays, last tried and the count move on', async (fixture) => {
    const { segment } = await withBad(fixture)
    const firstSeen = fixture.ledger.now()
    fixture.clock.pass(HOUR_MS)
    assert.equal(await fixture.ledger.retryBad(), 1)
    const [again] = await fixture.claim()
    assert.equal(again!.payload, '["m7"]')
    await fixture.settle(again!, 'skip', { bad: [bad('m7', 'still malformed')] })
    const rows = await fixture.ledger.badItems()
    assert.equal(rows.length, 1)
    assert.deepEqual(
      [rows[0]!.first_seen, rows[0]!.last_tried, rows[0]!.tries, rows[0]!.reason, rows[0]!.segment_id],
      [firstSeen, firstSeen + HOUR_MS, 2, 'still malformed', segment],
    )
    assert.equal((await fixture.segmentRow(segment)).bad, 1, 'counted once')
  })

  test('a retry that succeeds but names its item bad again does not mend it', async (fixture) => {
    const { segment } = await withBad(fixture)
    await fixture.ledger.retryBad()
    await fixture.settle((await fixture.claim())[0]!, 'succeed', { bad: [bad('m7', 'still malformed')] })
    const { stored, bad: left } = await fixture.segmentRow(segment)
    assert.deepEqual([stored, left], [9, 1])
    const rows = await fixture.ledger.badItems()
    assert.deepEqual(
      rows.map((row) => [row.item, row.reason, row.tries, row.segment_id]),
      [['m7', 'still malformed', 2, segment]],
    )
  })

  test('an item that a job outside every segment finds bad again has one row, whose tries count up', async (fixture) => {
    const { streamId, segment } = await withBad(fixture)
    fixture.clock.pass(HOUR_MS)
    const again = await fixture.claimed({ streamId })
    await fixture.settle(again, 'skip', { bad: [bad('m7', 'still malformed')] })
    const rows = await fixture.ledger.badItems()
    assert.deepEqual(
      rows.map((row) => [row.item, row.reason, row.tries, row.segment_id, row.last_tried]),
      [['m7', 'still malformed', 2, segment, fixture.ledger.now()]],
    )
    assert.equal((await fixture.segmentRow(segment)).bad, 1, 'counted once')
    assert.deepEqual(plain(await fixture.ledger.badCounts()), [{ streamId, n: 1 }])
  })

  test('a segment that counts an item which was bad outside of it takes over its row', async (fixture) => {
    const streamId = await fixture.stream()
    await fixture.settle(await fixture.claimed({ streamId }), 'skip', { bad: [bad('m7')] })
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({ counts: [{ segment, listed: 1, seal: true }], jobs: [job({ streamId, segment })] })
    await fixture.settle((await fixture.claim())[0]!, 'skip', { bad: [bad('m7')] })
    assert.deepEqual(
      (await fixture.ledger.badItems()).map((row) => [row.item, row.tries, row.segment_id]),
      [['m7', 2, segment]],
    )
    await fixture.ledger.retryBad()
    await fixture.settle((await fixture.claim())[0]!, 'succeed')
    const { stored, bad: left } = await fixture.segmentRow(segment)
    assert.deepEqual([stored, left], [1, 0])
    assert.deepEqual(await fixture.ledger.badItems(), [])
  })

  test('of a registry in which an item stands twice, its retry leaves one row', async (fixture) => {
    const { streamId, segment } = await withBad(fixture)
    await fixture.ledger.transaction((tx) =>
      tx.run(
        `INSERT INTO bad_items(stream_id, kind, item, reason, error_kind, payload, first_seen, last_tried)
         SELECT stream_id, kind, item, reason, error_kind, payload, first_seen, last_tried FROM bad_items`,
      ),
    )
    assert.equal((await fixture.ledger.badItems()).length, 2)
    await fixture.ledger.retryBad({ ids: [(await fixture.ledger.badItems({ stream: 'mail' }))[0]!.id] })
    await fixture.settle((await fixture.claim())[0]!, 'skip', { bad: [bad('m7')] })
    assert.deepEqual(
      (await fixture.ledger.badItems()).map((row) => [row.item, row.tries, row.segment_id]),
      [['m7', 2, segment]],
    )
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
  })

  test('an item that is bad in two segments is registered and mended in each', async (fixture) => {
    const { streamId, segment } = await withBad(fixture)
    const next = await fixture.segment(streamId, 10, 20)
    await fixture.write({
      counts: [{ segment: next, listed: 2, seal: true }],
      jobs: [job({ streamId, segment: next }), job({ streamId, segment: next })],
    })
    for (const twice of await fixture.claim()) await fixture.settle(twice, 'skip', { bad: [bad('m7')] })
    assert.equal((await fixture.segmentRow(next)).bad, 2, 'listed twice')
    assert.equal(await fixture.ledger.retryBad(), 2)
    const [one, two] = await fixture.claim()
    await fixture.settle(one!, 'succeed')
    assert.deepEqual(
      (await fixture.ledger.badItems()).map((row) => row.segment_id),
      [next],
    )
    await fixture.settle(two!, 'succeed')
    assert.deepEqual(await fixture.ledger.badItems(), [])
    for (const id of [segment, next]) {
      const { listed, stored, bad: left } = await fixture.segmentRow(id)
      assert.deepEqual([stored, left], [listed, 0])
    }
  })

  test('secrets in errors and reasons are not stored', async (fixture) => {
    const message = 'GET /mail?access_token=hunter2hunter2 was refused'
    const running = await fixture.claimed()
    const error = { kind: 'permanent', message } as const
    await fixture.settle(running, 'skip', { error, bad: [bad('m1', message)] })
    const { job: row, errors } = (await fixture.ledger.job(running.id))!
    const [item] = await fixture.ledger.badItems()
    for (const text of [row.error, errors[0]!.message, item!.reason]) {
      assert.match(text!, /GET .mail.access_token=\[redacted\] was refused/)
    }
  })

  test('a bad item that is stored after all is counted as stored, and the registry forgets it', async (fixture) => {
    const { segment } = await withBad(fixture)
    await fixture.ledger.retryBad()
    const [again] = await fixture.claim()
    assert.equal((await fixture.settle(again!, 'succeed')).status, 'held')
    const { stored, bad: left, state } = await fixture.segmentRow(segment)
    assert.deepEqual([stored, left, state], [10, 0, 'settled'])
    assert.deepEqual(await fixture.ledger.badItems(), [])
  })

  test('a bad item that turns out to be gone is counted as gone', async (fixture) => {
    const { segment } = await withBad(fixture)
    await fixture.ledger.retryBad()
    await fixture.settle((await fixture.claim())[0]!, 'skip', { note: { text: 'gone' } })
    const { stored, gone, bad: left } = await fixture.segmentRow(segment)
    assert.deepEqual([stored, gone, left], [9, 1, 0])
    assert.deepEqual(await fixture.ledger.badItems(), [])
  })

  test('a bad item is retried by at most one job at a time, and again after that one failed', async (fixture) => {
    await withBad(fixture)
    assert.equal(await fixture.ledger.retryBad(), 1)
    assert.equal(await fixture.ledger.retryBad(), 0, 'while it waits')
    const [running] = await fixture.claim()
    assert.equal(await fixture.ledger.retryBad(), 0, 'while it runs')
    await fixture.settle(running!, 'fail')
    assert.equal(await fixture.ledger.retryBad(), 1, 'after it failed')
    assert.equal((await fixture.claim())[0]!.badId, running!.badId)
  })

  test('retries can be limited to a stream, to chosen items, to few tries and to old ones', async (fixture) => {
    await withBad(fixture)
    const [row] = await fixture.ledger.badItems()
    const now = fixture.ledger.now()
    for (const filter of [
      { streamId: 4_711 },
      { ids: [] },
      { ids: [4_711] },
      { triesMax: 0 },
      { triedBefore: now },
    ]) {
      assert.equal(await fixture.ledger.retryBad(filter), 0, JSON.stringify(filter))
    }
    const filter = { streamId: row!.stream_id, ids: [row!.id], triesMax: 1, triedBefore: now + 1 }
    assert.equal(await fixture.ledger.retryBad(filter, 'interactive'), 1)
    assert.equal((await fixture.claim())[0]!.lane, 'interactive')
  })

  test('the same item name in another stream or of another kind is another item', async (fixture) => {
    await withBad(fixture)
    const other = await fixture.stream('other')
    await fixture.settle(await fixture.claimed({ streamId: other }), 'skip', { bad: [bad('m7')] })
    await fixture.settle(await fixture.claimed({ streamId: other, kind: 'fetch' }), 'skip', {
      bad: [bad('m7')],
    })
    assert.deepEqual(
      (await fixture.ledger.badItems()).map((one) => [one.stream, one.kind]),
      [
        ['mail', 'job'],
        ['other', 'job'],
        ['other', 'fetch'],
      ],
    )
    assert.equal((await fixture.ledger.badItems({ stream: 'other' })).length, 2)
  })

  test('all bad items are tried again, however many there are', async (fixture) => {
    // More than one step takes.
    const names = Array.from({ length: 520 }, (_, n) => `item ${n}`)
    await fixture.settle(await fixture.claimed(), 'skip', { bad: names.map((name) => bad(name)) })
    assert.equal(await fixture.ledger.retryBad(), names.length)
    assert.equal(await fixture.ledger.retryBad(), 0, 'each has its retry')
    const all = await fixture.ledger.badItems({ limit: 2_000 })
    assert.equal(await fixture.ledger.retryBad({ ids: all.map(({ id }) => id) }), 0)
    const retries = await fixture.claim({ n: 2_000 })
    assert.equal(retries.length, names.length)
    await fixture.cycle({
      settle: retries.map((job) => ({ job, event: 'succeed', note: { text: 'mended' } })),
    })
    assert.deepEqual([await fixture.count('bad_items'), await fixture.ledger.retryBad()], [0, 0])
  })

  test('an outcome that is dropped registers no bad item', async (fixture) => {
    const canceled = await fixture.claimed()
    await fixture.ledger.cancel(canceled.id)
    assert.equal((await fixture.settle(canceled, 'skip', { bad: [bad('x')] })).status, 'canceled')
    const stale = await fixture.claimed()
    await fixture.ledger.release(fixture.owner, [stale])
    assert.equal((await fixture.settle(stale, 'skip', { bad: [bad('x')] })).status, 'lost')
    assert.deepEqual(await fixture.ledger.badItems(), [])
  })
}
