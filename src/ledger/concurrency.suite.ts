/**
 * The contract under two processes that do things at the same moment. Each race is run many times, because
 * which side wins is up to the database; whoever wins, the books must be right and nothing may be stuck.
 */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Tx } from './contract.ts'
import type { Ledger } from './ledger.ts'
import { KINDS, type LedgerFixture, type LedgerTest } from './ledger-fixture.suite.ts'

const ROUNDS = 12

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const settle = (
  ledger: Ledger,
  owner: number,
  one: ClaimedJob,
  event: 'succeed' | 'fail' | 'stop' | 'skip' = 'succeed',
) => ledger.cycle({ owner, settle: [{ job: one, event }] }).then(({ settled }) => settled[0]!.status)

/** Runs the race again and again, each time with work of its own. */
async function rounds(
  fixture: LedgerFixture,
  race: (other: Ledger, round: number) => Promise<void>,
): Promise<void> {
  const other = await fixture.neighbour()
  for (let round = 0; round < ROUNDS; round++) {
    await race(other, round)
    await fixture.checkBooks()
    // What a round leaves behind is none of the next one's business.
    const left = await fixture.sql<{ id: number }>(`SELECT id FROM jobs WHERE state IN ('pending', 'failed')`)
    for (const { id } of left) await fixture.ledger.cancel(id)
  }
}

export function concurrencyContract(test: LedgerTest): void {
  test('two processes that claim at once share the jobs: none is claimed twice, none is left', async (fixture) => {
    const other = await fixture.neighbour()
    const second = await fixture.worker('second')
    await fixture.write({ jobs: Array.from({ length: 600 }, () => job({ lane: 'bulk' })) })
    const seen: number[] = []
    const drain = async (ledger: Ledger, owner: number): Promise<void> => {
      for (let empty = 0; empty < 3; ) {
        const claim = { owner, room: { interactive: 0, bulk: 20 }, kinds: new Set(KINDS) }
        const { claimed } = await ledger.cycle({ owner, claim })
        // Rows that the other one has just locked are passed over: look again before believing in the end.
        empty = claimed.length === 0 ? empty + 1 : 0
        seen.push(...claimed.map((one) => one.id))
      }
    }
    await Promise.all([drain(fixture.ledger, fixture.owner), drain(other, second)])
    assert.equal(seen.length, 600)
    assert.equal(new Set(seen).size, 600)
  })

  test('sides of a diamond that settle at once unblock its bottom', async (fixture) => {
    await rounds(fixture, async (other) => {
      const [left, right] = await claimTwo(fixture)
      const bottom = await fixture.add({ kind: 'last', after: [left.id, right.id] })
      await Promise.all([settle(fixture.ledger, fixture.owner, left), settle(other, fixture.owner, right)])
      assert.equal(await fixture.stage(bottom), 'ready')
    })
  })

  test('a job enqueued at the moment its dependency settles is not stuck', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const first = await fixture.claimed({ kind: 'fetch' })
      const event = round % 2 ? 'succeed' : 'fail'
      const [added] = await Promise.all([
        other.write({ jobs: [job({ after: [first.id] })] }),
        settle(fixture.ledger, fixture.owner, first, event),
      ])
      assert.equal(await fixture.stage(added[0]!.id), event === 'succeed' ? 'ready' : 'failed')
    })
  })

  test('a key enqueued by several at once makes one job', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const ledgers = [fixture.ledger, other, fixture.ledger, other]
      const added = await Promise.all(
        ledgers.map((ledger) => ledger.write({ jobs: [job({ key: `k${round}` })] })),
      )
      const outcomes = added.map(([one]) => one!.outcome).sort()
      assert.deepEqual(outcomes, ['added', 'ignored', 'ignored', 'ignored'])
      assert.equal(new Set(added.map(([one]) => one!.id)).size, 1)
    })
  })

  test('a job replaced by several at once has one successor', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const key = `k${round}`
      await fixture.add({ key })
      const replacement = job({ key, onKeyTaken: 'replace' })
      const ledgers = [fixture.ledger, other, fixture.ledger, other]
      await Promise.all(ledgers.map((ledger) => ledger.write({ jobs: [replacement] })))
      const all = await fixture.sql<{ state: string }>(`SELECT state FROM jobs WHERE key = ?`, [key])
      assert.equal(all.length, 5)
      assert.equal(all.filter((one) => one.state === 'pending').length, 1)
    })
  })

  test('a running job replaced at the moment it ends: its successor is ready once it has ended', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const key = `k${round}`
      const running = await fixture.claimed({ key })
      const [added, status] = await Promise.all([
        other.write({ jobs: [job({ key, onKeyTaken: 'replace' })] }),
        settle(fixture.ledger, fixture.owner, running),
      ])
      assert.equal(await fixture.stage(added[0]!.id), 'ready')
      assert.equal(await fixture.stage(running.id), status === 'held' ? 'done' : 'canceled')
    })
  })

  test('a waiting job replaced at the moment its dependency settles: its successor is not stuck', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const key = `k${round}`
      const first = await fixture.claimed({ kind: 'fetch' })
      await fixture.add({ key, after: [first.id] })
      const [added] = await Promise.all([
        other.write({ jobs: [job({ key, onKeyTaken: 'replace' })] }),
        settle(fixture.ledger, fixture.owner, first),
      ])
      assert.equal(await fixture.stage(added[0]!.id), 'ready')
    })
  })

  test('a job tried again at the moment its dependency settles is not stuck', async (fixture) => {
    await rounds(fixture, async (other) => {
      const first = await fixture.claimed({ kind: 'fetch' })
      const dependent = await fixture.add({ after: [first.id] })
      await fixture.ledger.cancel(dependent)
      await Promise.all([settle(fixture.ledger, fixture.owner, first), other.redo(dependent)])
      assert.equal(await fixture.stage(dependent), 'ready')
    })
  })

  test('a batch split at the moment someone starts to wait for it is waited for whole', async (fixture) => {
    await rounds(fixture, async (other) => {
      const batch = await fixture.claimed({ kind: 'fetch', items: 2 })
      const splitInto = { halves: [job({ kind: 'fetch' }), job({ kind: 'fetch' })], failures: 0 }
      const [added] = await Promise.all([
        other.write({ jobs: [job({ kind: 'last', after: [batch.id] })] }),
        fixture.settle(batch, 'skip', { splitInto }),
      ])
      const halves = await fixture.claim({ kinds: ['fetch'] })
      assert.equal(halves.length, 2)
      for (const half of halves) {
        assert.equal(await fixture.stage(added[0]!.id), 'deps')
        await fixture.settle(half, 'succeed')
      }
      assert.equal(await fixture.stage(added[0]!.id), 'ready')
    })
  })

  test('a key enqueued at the moment its job is canceled or split waits for what is left of it', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const key = `key ${round}`
      const running = await fixture.claimed({ key })
      const halves = [job({ kind: 'job' }), job({ kind: 'job' })]
      const end =
        round % 2
          ? fixture.ledger.cancel(running.id)
          : fixture.settle(running, 'skip', { splitInto: { halves, failures: 0 } })
      const [[added]] = await Promise.all([other.write({ jobs: [job({ key, kind: 'job' })] }), end])
      const before = added!.outcome === 'ignored' ? 0 : 1
      assert.equal(before === 0 || (await fixture.stage(added!.id)) === 'deps', true)
      for (const half of await fixture.claim()) await fixture.settle(half, 'succeed')
      if (round % 2) await fixture.settle(running, 'stop')
      if (before === 1) assert.equal(await fixture.stage(added!.id), 'ready')
    })
  })

  test('a job canceled at the moment it commits is either done with its effects or canceled without', async (fixture) => {
    await fixture.force(`CREATE TABLE applied (job INTEGER PRIMARY KEY)`)
    await rounds(fixture, async (other) => {
      const running = await fixture.claimed()
      const effects = async (tx: Tx): Promise<void> =>
        void (await tx.run(`INSERT INTO applied VALUES (?)`, [running.id]))
      const [result] = await Promise.all([
        fixture.settle(running, 'succeed', { work: { effects } }),
        other.cancel(running.id).catch(() => 'too late'),
      ])
      const stored = (await fixture.sql(`SELECT job FROM applied WHERE job = ?`, [running.id])).length
      assert.deepEqual(
        [await fixture.stage(running.id), stored],
        result.status === 'held' ? ['done', 1] : ['canceled', 0],
      )
    })
  })

  test('a job canceled at the moment it is claimed either never starts or is asked to stop', async (fixture) => {
    await rounds(fixture, async (other) => {
      const id = await fixture.add()
      const [claimed, { outcome }] = await Promise.all([fixture.claim(), other.cancel(id)])
      assert.equal(outcome, claimed.length === 0 ? 'canceled' : 'stopping')
      assert.equal(await fixture.stage(id), claimed.length === 0 ? 'canceled' : 'claimed')
      if (claimed[0]) assert.equal(await settle(fixture.ledger, fixture.owner, claimed[0]), 'canceled')
    })
  })

  test('a job reclaimed at the moment it commits is either done or runs again, never both', async (fixture) => {
    await rounds(fixture, async (other) => {
      const owner = await fixture.worker('short-lived')
      await fixture.add()
      const [running] = await fixture.claim({ owner })
      const [status, { jobs }] = await Promise.all([
        settle(fixture.ledger, owner, running!),
        other.reclaim((worker) => worker.id === owner),
      ])
      assert.equal(jobs, status === 'held' ? 0 : 1)
      assert.equal(await fixture.stage(running!.id), status === 'held' ? 'done' : 'ready')
    })
  })

  test('an owner declared gone at the moment it claims leaves nothing stranded', async (fixture) => {
    await rounds(fixture, async (other) => {
      const owner = await fixture.worker('short-lived')
      const id = await fixture.add()
      await Promise.all([fixture.claim({ owner }), other.reclaim((worker) => worker.id === owner)])
      assert.equal(await fixture.stage(id), 'ready')
    })
  })

  test('one job settled twice at once is settled once', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const running = await fixture.claimed()
      const events = round % 2 ? (['succeed', 'skip'] as const) : (['succeed', 'succeed'] as const)
      const statuses = await Promise.all([
        settle(fixture.ledger, fixture.owner, running, events[0]),
        settle(other, fixture.owner, running, events[1]),
      ])
      assert.deepEqual(statuses.sort(), ['held', 'lost'])
    })
  })

  test('last jobs of a segment that settle at once settle it, and its mark moves', async (fixture) => {
    await rounds(fixture, async (other, round) => {
      const streamId = await fixture.stream(`stream ${round}`)
      const segment = await fixture.segment(streamId, 0, 10)
      await fixture.write({
        counts: [{ segment, listed: 2, seal: true }],
        jobs: [job({ segment }), job({ segment })],
      })
      const [one, two] = await fixture.claim()
      const work = { counts: [{ segment, stored: 1 }] }
      await Promise.all([
        fixture.settle(one!, 'succeed', { work }),
        other.cycle({ owner: fixture.owner, settle: [{ job: two!, event: 'succeed', work }] }),
      ])
      assert.equal((await fixture.mark(streamId)).mark_at, 10)
    })
  })
}

async function claimTwo(fixture: LedgerFixture): Promise<[ClaimedJob, ClaimedJob]> {
  await fixture.write({ jobs: [job(), job()] })
  const claimed = await fixture.claim()
  assert.equal(claimed.length, 2)
  return [claimed[0]!, claimed[1]!]
}
