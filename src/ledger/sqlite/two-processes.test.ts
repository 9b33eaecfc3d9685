import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'
import { type Message, Neighbour, type Task } from './neighbour.suite.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-two-'))
after(() => rmSync(folder, { recursive: true, force: true }))

async function withNeighbours(
  tasks: readonly Task[],
  fn: (all: Neighbour[]) => Promise<void>,
): Promise<void> {
  const all = tasks.map((task) => new Neighbour(task))
  try {
    await fn(all)
  } finally {
    for (const one of all) await one.stop()
  }
}

async function withLedger(file: string, fn: (ledger: Ledger) => Promise<void>): Promise<void> {
  const ledger = await openLedger(`sqlite:${file}`)
  try {
    await fn(ledger)
  } finally {
    await ledger.close()
  }
}

function owner(message: Message): number {
  assert.ok('ready' in message, JSON.stringify(message))
  return message.owner
}

function report(message: Message): { done: number; lost: boolean; errors: string[] } {
  assert.ok('done' in message, JSON.stringify(message))
  return message
}

describe('two processes on one SQLite file', () => {
  test('share a drain fairly, do every job exactly once, and keep their leases under load', async () => {
    const file = join(folder, 'drain.db')
    const jobs = 20_000
    await withLedger(file, async (ledger) => {
      await ledger.migrateApp('test', [[`CREATE TABLE applied (job INTEGER PRIMARY KEY)`]])
      const batch = Array.from({ length: jobs }, () => ({
        kind: 'noop',
        payload: '{}',
        lane: 'bulk' as const,
      }))
      await ledger.write({ jobs: batch })
      const task: Task = { do: 'drain', file, batch: 100, leaseMs: 4_000, everyMs: 100 }
      await withNeighbours([task, task], async (all) => {
        for (const one of all) owner(await one.next())
        for (const one of all) one.go()
        const reports = [report(await all[0]!.next()), report(await all[1]!.next())]
        assert.deepEqual(
          reports.flatMap((one) => one.errors),
          [],
        )
        assert.deepEqual(
          reports.map((one) => one.lost),
          [false, false],
        )
        assert.equal(reports[0]!.done + reports[1]!.done, jobs)
        for (const { done } of reports)
          assert.ok(done >= jobs / 4, `shares of ${reports.map((one) => one.done)}`)
      })
      const [applied] = await ledger.driver.read((tx) =>
        tx.all<{ n: number }>(`SELECT count(*) AS n FROM applied`),
      )
      assert.equal(applied!.n, jobs)
      assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
    })
  })

  test('all get a new file that they open at the same moment', async () => {
    const task: Task = { do: 'open', file: join(folder, 'new', 'deep', 'ledger.db') }
    await withNeighbours([task, task, task, task], async (all) => {
      for (const one of all) assert.deepEqual(report(await one.next()).errors, [])
    })
  })
})

describe('a heartbeat on a SQLite file', { concurrency: true }, () => {
  /** Tries to take over from the moment the other's main thread hangs until it reports. */
  async function underSiege(
    task: Task & { do: 'block' },
    check: (ledger: Ledger, seen: { report: Message; owner: number; reclaimed: number[] }) => Promise<void>,
  ): Promise<void> {
    await withLedger(task.file, async (ledger) => {
      await ledger.write({ jobs: [{ kind: 'noop', payload: '{}' }] })
      await withNeighbours([task], async ([blocked]) => {
        const id = owner(await blocked!.next())
        blocked!.go()
        owner(await blocked!.next())
        blocked!.go()
        let last: Message | undefined
        const waiting = blocked!.next().then((message) => {
          last = message
        })
        const reclaimed: number[] = []
        while (!last) {
          reclaimed.push(...(await ledger.reclaim(() => false)).owners)
          await sleep(systemClock, task.everyMs)
        }
        await waiting
        await check(ledger, { report: last, owner: id, reclaimed })
      })
    })
  }

  test('keeps the lease of a process whose event loop is blocked for longer than it lasts', async () => {
    const task: Task = {
      do: 'block',
      file: join(folder, 'blocked.db'),
      // So long that the heartbeat's thread gets its turn in time on a busy machine too.
      leaseMs: 5_000,
      everyMs: 50,
      blockedMaxMs: 60_000,
      blockMs: 11_000,
    }
    await underSiege(task, async (ledger, { report: last, reclaimed }) => {
      assert.deepEqual(report(last), { done: 1, lost: false, errors: [] })
      assert.deepEqual(reclaimed, [])
      assert.equal((await ledger.jobs())[0]!.state, 'done')
    })
  })

  test('lets go of a process that hangs for good: others take over, and its late outcome changes nothing', async () => {
    const task: Task = {
      do: 'block',
      file: join(folder, 'hung.db'),
      leaseMs: 500,
      everyMs: 50,
      blockedMaxMs: 300,
      blockMs: 2_000,
    }
    await underSiege(task, async (ledger, { report: last, owner: id, reclaimed }) => {
      const { done, lost, errors } = report(last)
      assert.deepEqual([done, lost], [0, true])
      assert.match(errors[0]!, /blocked/)
      assert.deepEqual(reclaimed, [id])
      assert.equal((await ledger.jobs())[0]!.state, 'pending')
    })
  })
})
