/**
 * The contract under two processes that do things at the same moment. Each race is run many times, because
 * which side wins is up to the database; whoever wins, the books must be right and nothing may be stuck.
 */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Tx } from './contract.ts'
import { type Desk, type DeskTest, KINDS } from './desk.suite.ts'
import type { Ledger } from './ledger.ts'

const ROUNDS = 12

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const settle = (
  ledger: Ledger,
  owner: number,
  one: ClaimedJob,
  event: 'succeed' | 'fail' | 'stop' | 'skip' = 'succeed',
) => ledger.cycle({ owner, settle: [{ job: one, event }] }).then(({ settled }) => settled[0]!.status)

/** Runs the race again and again, each time with work of its own. */
async function rounds(desk: Desk, race: (other: Ledger, round: number) => Promise<void>): Promise<void> {
  const other = await desk.neighbour()
  for (let round = 0; round < ROUNDS; round++) {
    await race(other, round)
    await desk.checkBooks()
    // What a round leaves behind is none of the next one's business.
    const left = await desk.sql<{ id: number }>(`SELECT id FROM jobs WHERE state IN ('pending', 'failed')`)
    for (const { id } of left) await desk.ledger.cancel(id)
  }
}

export function concurrencyContract(test: DeskTest): void {
  test('two processes that claim at once share the jobs: none is claimed twice, none is left', async (desk) => {
    const other = await desk.neighbour()
    const second = await desk.worker('second')
    await desk.write({ jobs: Array.from({ length: 600 }, () => job({ lane: 'bulk' })) })
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
    await Promise.all([drain(desk.ledger, desk.owner), drain(other, second)])
    assert.equal(seen.length, 600)
    assert.equal(new Set(seen).size, 600)
  })

  test('sides of a diamond that settle at once unblock its bottom', async (desk) => {
    await rounds(desk, async (other) => {
      const [left, right] = await claimTwo(desk)
      const bottom = await desk.add({ kind: 'last', after: [left.id, right.id] })
      await Promise.all([settle(desk.ledger, desk.owner, left), settle(other, desk.owner, right)])
      assert.equal(await desk.stage(bottom), 'ready')
    })
  })

  test('a job enqueued at the moment its dependency settles is not stuck', async (desk) => {
    await rounds(desk, async (other, round) => {
      const first = await desk.claimed({ kind: 'fetch' })
      const event = round % 2 ? 'succeed' : 'fail'
      const [added] = await Promise.all([
        other.write({ jobs: [job({ after: [first.id] })] }),
        settle(desk.ledger, desk.owner, first, event),
      ])
      assert.equal(await desk.stage(added[0]!.id), event === 'succeed' ? 'ready' : 'failed')
    })
  })

  test('a key enqueued by several at once makes one job', async (desk) => {
    await rounds(desk, async (other, round) => {
      const ledgers = [desk.ledger, other, desk.ledger, other]
      const added = await Promise.all(
        ledgers.map((ledger) => ledger.write({ jobs: [job({ key: `k${round}` })] })),
      )
      const outcomes = added.map(([one]) => one!.outcome).sort()
      assert.deepEqual(outcomes, ['added', 'ignored', 'ignored', 'ignored'])
      assert.equal(new Set(added.map(([one]) => one!.id)).size, 1)
    })
  })

  test('a job replaced by several at once has one successor', async (desk) => {
    await rounds(desk, async (other, round) => {
      const key = `k${round}`
      await desk.add({ key })
      const replacement = job({ key, onKeyTaken: 'replace' })
      const ledgers = [desk.ledger, other, desk.ledger, other]
      await Promise.all(ledgers.map((ledger) => ledger.write({ jobs: [replacement] })))
      const all = await desk.sql<{ state: string }>(`SELECT state FROM jobs WHERE key = ?`, [key])
      assert.equal(all.length, 5)
      assert.equal(all.filter((one) => one.state === 'pending').length, 1)
    })
  })

  test('a running job replaced at the moment it ends: its successor is ready once it has ended', async (desk) => {
    await rounds(desk, async (other, round) => {
      const key = `k${round}`
      const running = await desk.claimed({ key })
      const [added, status] = await Promise.all([
        other.write({ jobs: [job({ key, onKeyTaken: 'replace' })] }),
        settle(desk.ledger, desk.owner, running),
      ])
      assert.equal(await desk.stage(added[0]!.id), 'ready')
      assert.equal(await desk.stage(running.id), status === 'held' ? 'done' : 'canceled')
    })
  })

  test('a waiting job replaced at the moment its dependency settles: its successor is not stuck', async (desk) => {
    await rounds(desk, async (other, round) => {
      const key = `k${round}`
      const first = await desk.claimed({ kind: 'fetch' })
      await desk.add({ key, after: [first.id] })
      const [added] = await Promise.all([
        other.write({ jobs: [job({ key, onKeyTaken: 'replace' })] }),
        settle(desk.ledger, desk.owner, first),
      ])
      assert.equal(await desk.stage(added[0]!.id), 'ready')
    })
  })

  test('a job tried again at the moment its dependency settles is not stuck', async (desk) => {
    await rounds(desk, async (other) => {
      const first = await desk.claimed({ kind: 'fetch' })
      const dependent = await desk.add({ after: [first.id] })
      await desk.ledger.cancel(dependent)
      await Promise.all([settle(desk.ledger, desk.owner, first), other.redo(dependent)])
      assert.equal(await desk.stage(dependent), 'ready')
    })
  })

  test('a batch split at the moment someone starts to wait for it is waited for whole', async (desk) => {
    await rounds(desk, async (other) => {
      const batch = await desk.claimed({ kind: 'fetch', items: 2 })
      const splitInto = { halves: [job({ kind: 'fetch' }), job({ kind: 'fetch' })], failures: 0 }
      const [added] = await Promise.all([
        other.write({ jobs: [job({ kind: 'last', after: [batch.id] })] }),
        desk.settle(batch, 'skip', { splitInto }),
      ])
      const halves = await desk.claim({ kinds: ['fetch'] })
      assert.equal(halves.length, 2)
      for (const half of halves) {
        assert.equal(await desk.stage(added[0]!.id), 'deps')
        await desk.settle(half, 'succeed')
      }
      assert.equal(await desk.stage(added[0]!.id), 'ready')
    })
  })

  test('a key enqueued at the moment its job is canceled or split waits for what is left of it', async (desk) => {
    await rounds(desk, async (other, round) => {
      const key = `key ${round}`
      const running = await desk.claimed({ key })
      const halves = [job({ kind: 'job' }), job({ kind: 'job' })]
      const end =
        round % 2
          ? desk.ledger.cancel(running.id)
          : desk.settle(running, 'skip', { splitInto: { halves, failures: 0 } })
      const [[added]] = await Promise.all([other.write({ jobs: [job({ key, kind: 'job' })] }), end])
      const before = added!.outcome === 'ignored' ? 0 : 1
      assert.equal(before === 0 || (await desk.stage(added!.id)) === 'deps', true)
      for (const half of await desk.claim()) await desk.settle(half, 'succeed')
      if (round % 2) await desk.settle(running, 'stop')
      if (before === 1) assert.equal(await desk.stage(added!.id), 'ready')
    })
  })

  test('a job canceled at the moment it commits is either done with its effects or canceled without', async (desk) => {
    await desk.force(`CREATE TABLE applied (job INTEGER PRIMARY KEY)`)
    await rounds(desk, async (other) => {
      const running = await desk.claimed()
      const effects = async (tx: Tx): Promise<void> =>
        void (await tx.run(`INSERT INTO applied VALUES (?)`, [running.id]))
      const [result] = await Promise.all([
        desk.settle(running, 'succeed', { work: { effects } }),
        other.cancel(running.id).catch(() => 'too late'),
      ])
      const stored = (await desk.sql(`SELECT job FROM applied WHERE job = ?`, [running.id])).length
      assert.deepEqual(
        [await desk.stage(running.id), stored],
        result.status === 'held' ? ['done', 1] : ['canceled', 0],
      )
    })
  })

  test('a job canceled at the moment it is claimed either never starts or is asked to stop', async (desk) => {
    await rounds(desk, async (other) => {
      const id = await desk.add()
      const [claimed, { outcome }] = await Promise.all([desk.claim(), other.cancel(id)])
      assert.equal(outcome, claimed.length === 0 ? 'canceled' : 'stopping')
      assert.equal(await desk.stage(id), claimed.length === 0 ? 'canceled' : 'claimed')
      if (claimed[0]) assert.equal(await settle(desk.ledger, desk.owner, claimed[0]), 'canceled')
    })
  })

  test('a job reclaimed at the moment it commits is either done or runs again, never both', async (desk) => {
    await rounds(desk, async (other) => {
      const owner = await desk.worker('short-lived')
      await desk.add()
      const [running] = await desk.claim({ owner })
      const [status, { jobs }] = await Promise.all([
        settle(desk.ledger, owner, running!),
        other.reclaim((worker) => worker.id === owner),
      ])
      assert.equal(jobs, status === 'held' ? 0 : 1)
      assert.equal(await desk.stage(running!.id), status === 'held' ? 'done' : 'ready')
    })
  })

  test('an owner declared gone at the moment it claims leaves nothing stranded', async (desk) => {
    await rounds(desk, async (other) => {
      const owner = await desk.worker('short-lived')
      const id = await desk.add()
      await Promise.all([desk.claim({ owner }), other.reclaim((worker) => worker.id === owner)])
      assert.equal(await desk.stage(id), 'ready')
    })
  })

  test('one job settled twice at once is settled once', async (desk) => {
    await rounds(desk, async (other, round) => {
      const running = await desk.claimed()
      const events = round % 2 ? (['succeed', 'skip'] as const) : (['succeed', 'succeed'] as const)
      const statuses = await Promise.all([
        settle(desk.ledger, desk.owner, running, events[0]),
        settle(other, desk.owner, running, events[1]),
      ])
      assert.deepEqual(statuses.sort(), ['held', 'lost'])
    })
  })

  test('last jobs of a segment that settle at once settle it, and its mark moves', async (desk) => {
    await rounds(desk, async (other, round) => {
      const streamId = await desk.stream(`stream ${round}`)
      const segment = await desk.segment(streamId, 0, 10)
      await desk.write({
        counts: [{ segment, listed: 2, seal: true }],
        jobs: [job({ segment }), job({ segment })],
      })
      const [one, two] = await desk.claim()
      const work = { counts: [{ segment, stored: 1 }] }
      await Promise.all([
        desk.settle(one!, 'succeed', { work }),
        other.cycle({ owner: desk.owner, settle: [{ job: two!, event: 'succeed', work }] }),
      ])
      assert.equal((await desk.mark(streamId)).mark_at, 10)
    })
  })
}

async function claimTwo(desk: Desk): Promise<[ClaimedJob, ClaimedJob]> {
  await desk.write({ jobs: [job(), job()] })
  const claimed = await desk.claim()
  assert.equal(claimed.length, 2)
  return [claimed[0]!, claimed[1]!]
}
