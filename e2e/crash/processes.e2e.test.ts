/** Several processes on one ledger: stopped, resumed, killed, restarted, told to end. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../src/base/clock.ts'
import { seededRandom } from '../../src/base/random.ts'
import type { Child } from './child-process.ts'
import {
  DATABASES,
  type Database,
  freshPlace,
  Life,
  type Place,
  type Reference,
  undisturbed,
} from './life.ts'
import { isBetweenTransactions, type JobFact, type Snapshot, takeSnapshot } from './snapshot.ts'
import { SMALL, type SourceSize } from './source.ts'
import { CREW, runTurmoil, TURMOIL } from './turmoil.ts'

const LEASE_MS = 1_000
const WAIT_MS_MAX = 240_000
const SEED = 31

const places: Place[] = []
const children: Child[] = []
const references = new Map<number, Promise<Reference>>()

after(async () => {
  for (const child of children) await child.destroy()
  for (const place of places) await place.remove()
})

async function newLife(database: Database, size: SourceSize): Promise<Life> {
  const place = await freshPlace(database)
  places.push(place)
  return new Life(place.url, size)
}

/** The final state is the same at every pace and on both databases. */
function reference(size = SMALL): Promise<Reference> {
  let found = references.get(size.parts)
  if (!found) {
    found = freshPlace('sqlite').then((place) => {
      places.push(place)
      return undisturbed(place.url, { ...size, paceMs: 1 })
    })
    references.set(size.parts, found)
  }
  return found
}

function start(life: Life, options: Parameters<Life['start']>[0]): Child {
  const child = life.start(options)
  children.push(child)
  return child
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const sinceMs = systemClock.monotonicMs()
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    assert.ok(systemClock.monotonicMs() - sinceMs < WAIT_MS_MAX, `${what} did not happen`)
    await sleep(20)
  }
}

const claimedBy = (now: Snapshot, owner: number): JobFact[] =>
  now.jobs.filter((job) => job.state === 'claimed' && job.owner === owner)

/** A process that stands still within a transaction keeps its locks: that is the database's affair, not the lease's. */
async function stopBetweenTransactions(life: Life, child: Child): Promise<void> {
  await until('a moment between two transactions', async () => {
    child.signal('SIGSTOP')
    await until('a stop', async () => (isStopped(child) ? true : undefined))
    if (await isBetweenTransactions(life.url)) return true
    child.signal('SIGCONT')
    return undefined
  })
}

function isStopped(child: Child): boolean {
  return /^\d+ \(.*\) T/s.test(readFileSync(`/proc/${child.process.pid}/stat`, 'utf8'))
}

/** Processes wait for each other and for leases most of the time: the databases can be tested side by side. */
describe('processes that share a ledger', { concurrency: true }, () => {
  for (const database of DATABASES)
    describe(`on ${database}`, { concurrency: 1 }, () => testProcesses(database))
})

function testProcesses(database: Database): void {
  test(`${CREW[database]} of them, stopped for longer than their leases and killed, never commit twice and lose nothing (invariants 1, 2, 7)`, async () => {
    const life = await newLife(database, TURMOIL)
    const random = seededRandom(SEED)
    const disturbed = await runTurmoil({ life, crew: CREW[database], random, rounds: 8 })
    const { stops, kills, leasesLost } = disturbed
    assert.ok(stops > 0 && kills > 0 && leasesLost > 0, `little was disturbed: ${JSON.stringify(disturbed)}`)
    await life.judge('after the turmoil', await reference(TURMOIL))
  })

  describe('leases', () => {
    const SLOW = { ...SMALL, paceMs: 3_000 }

    test('what a process that stands still has claimed is taken back while it does, and costs no attempt (invariant 2)', async () => {
      const life = await newLife(database, SLOW)
      const still = start(life, { leaseMs: LEASE_MS, workers: 4 })
      const { owner } = await still.said('ready')
      await until('a claim', async () => ((await claims(life, owner)).length > 0 ? true : undefined))
      await start(life, { leaseMs: LEASE_MS, workers: 4 }).said('ready')
      await stopBetweenTransactions(life, still)
      const held = await claims(life, owner)
      assert.ok(held.length > 0, 'it holds nothing')
      await until('a reclaim', async () => ((await claims(life, owner)).length === 0 ? true : undefined))
      assert.ok(isStopped(still), 'it gave back nothing by itself')
      const now = await life.look('after the reclaim')
      for (const before of held)
        assert.equal(now!.jobs.find(({ id }) => id === before.id)!.failures, before.failures)
    })

    test('a process that stood still and that nobody missed goes on with its lease', async () => {
      const life = await newLife(database, { ...SMALL, paceMs: 20 })
      const child = start(life, { leaseMs: LEASE_MS })
      await child.said('ready')
      await stopBetweenTransactions(life, child)
      await sleep(LEASE_MS * 1.5)
      child.signal('SIGCONT')
      const { sayings } = await life.finished(child)
      const leases = sayings.filter((saying) => saying.say === 'event' && saying.what.includes('"lease"'))
      assert.deepEqual(leases, [])
      await life.judge('after standing still', await reference())
    })

    test('after kill -9 a restart takes back at once what the dead process held, long before its lease ends (invariant 2)', async () => {
      const life = await newLife(database, { ...SMALL, paceMs: 20 })
      // So long that the run below could not end if it waited for it.
      const leaseMs = 3_600_000
      await life.run({ tick: 4, afterMs: 5 }, { leaseMs })
      const dead = await life.look('after the kill')
      assert.ok(
        dead!.jobs.some(({ state }) => state === 'claimed'),
        'it held nothing',
      )
      await life.run(undefined, { leaseMs })
      await life.judge('after the restart', await reference())
    })
  })

  describe('signals', () => {
    test('the first SIGTERM ends the process with 0: every job is pending again, checkpoints are kept (invariant 12)', async () => {
      const life = await newLife(database, { ...SMALL, paceMs: 30 })
      const child = start(life, {})
      await until('a part of an upload', async () =>
        (await takeSnapshot(life.url))?.parts.length ? true : undefined,
      )
      child.signal('SIGTERM')
      const { sayings } = await life.finished(child)
      assert.equal(sayings.at(-1)?.say, 'stopped')
      const now = await life.look('after SIGTERM')
      assert.deepEqual(
        now!.jobs.filter(({ state }) => state === 'claimed'),
        [],
      )
      const saved = now!.jobs.filter(({ state, checkpoint }) => state === 'pending' && checkpoint !== null)
      assert.ok(
        saved.some(({ kind }) => kind === 'crash.upload'),
        'no upload keeps its checkpoint',
      )
      assert.equal(now!.workers.filter(({ state }) => state === 'live').length, 0)
      await life.run()
      await life.judge('after going on', await reference())
    })

    test('the second signal ends the process at once, though a handler does not listen; nothing is lost (invariant 12)', async () => {
      const place = await freshPlace(database)
      places.push(place)
      // Its handlers end when nobody waits any more.
      const deaf = start(new Life(place.url, { ...SMALL, paceMs: 2 * WAIT_MS_MAX, deaf: true }), {})
      const { owner } = await deaf.said('ready')
      const life = new Life(place.url, SMALL)
      await until('a claim', async () => ((await claims(life, owner)).length > 0 ? true : undefined))
      deaf.signal('SIGTERM')
      await sleep(300)
      assert.equal(deaf.process.exitCode, null, 'it did not wait for its handlers')
      deaf.signal('SIGINT')
      const { code } = await deaf.ended
      assert.equal(code, 130)
      await life.look('after the second signal')
      await life.run(undefined, { leaseMs: 60_000 })
      await life.judge('after going on', await reference())
    })
  })
}

async function claims(life: Life, owner: number): Promise<JobFact[]> {
  const now = await takeSnapshot(life.url)
  return now ? claimedBy(now, owner) : []
}
