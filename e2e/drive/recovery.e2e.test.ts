/**
 * Workers that stand still, crash or lose their lease: others go on without a hand, nothing is indexed twice, and what is
 * told of the progress never runs backwards.
 */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { ANN, BOB, DATABASES, startDriveWorld } from '../../src/apps/drive/drive-world.suite.ts'
import { driveStatus } from '../../src/apps/drive/status.ts'
import { DriveTables } from '../../src/apps/drive/store/tables.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { FaultRule } from '../../src/sim/fault-rules.ts'
import { begin, type Life, standStill, until } from './processes.ts'

const DOCUMENTS = 60
const LEASE_SECONDS = 5
/** Downloads that a process is answered before it is interrupted. */
const ANSWERED = 12
const LATENCY: FaultRule = { do: 'latency', latency: { kind: 'fixed', ms: 40 } }

const SETTINGS = {
  TIDEMARK_GOOGLE_DRIVE_WORKERS_MAX: '2',
  TIDEMARK_ENGINE_LEASE_SECONDS: String(LEASE_SECONDS),
}

type Place = {
  sync: () => Life
  ledger: Ledger
  /**
   * A sync that waits for downloads which are not answered: it has indexed some documents, and has work left, however
   * long somebody takes to interrupt it. Later calls are answered again; `release` answers those that wait.
   */
  heldSync: () => Promise<Life>
  release: () => void
  /** What is indexed by now must not be fetched any more. */
  interrupted: () => Promise<void>
}

async function withProcesses(
  database: (typeof DATABASES)[number],
  run: (place: Place) => Promise<void>,
): Promise<void> {
  const world = await startDriveWorld({
    database,
    drive: { documents: DOCUMENTS, sharing: 'all', kinds: 'text' },
    sim: { faults: { rules: [LATENCY] } },
  })
  const lives: Life[] = []
  const sync = (): Life => {
    const life = begin(world, ['drive', 'sync', '--json'], SETTINGS)
    lives.push(life)
    return life
  }
  const { faults } = world.sim
  const heldSync = async (): Promise<Life> => {
    const before = (await documents(ledger)).length
    const stall: FaultRule = { do: 'stall', methods: ['files.media', 'files.export'], skip: ANSWERED }
    faults.set({ rules: [LATENCY, stall] })
    const life = sync()
    const isHeld = (): boolean => faults.counts()[1]!.struck > 0
    await until(life, async () => isHeld() && (await documents(ledger)).length > before)
    if (life.isOver()) assert.fail(`it ended before: ${(await life.ended).stderr}`)
    faults.set({ rules: [LATENCY] })
    return life
  }
  const fetches = (): Record<string, number> => {
    const { downloads, exports } = world.drive.counts.list()
    return { ...downloads, ...exports }
  }
  await world.stop()
  const ledger = await openLedger(world.ledgerUrl)
  const looks = lookAgain(ledger)
  const expected = new Map<string, number>()
  const interrupted = async (): Promise<void> => {
    for (const { ref } of await documents(ledger)) expected.set(ref, world.drive.counts.fetches(ref))
    assert.ok(expected.size > 0, 'nothing was indexed before')
  }
  try {
    await run({ sync, heldSync, release: () => faults.release(), ledger, interrupted })
    const { backwards, last } = await looks.stop()
    assert.deepEqual(backwards, [])
    assert.deepEqual(last, { [ANN]: DOCUMENTS, [BOB]: DOCUMENTS })
    assert.equal(Object.keys(fetches()).length, DOCUMENTS)
    const again = [...expected].filter(([ref, times]) => world.drive.counts.fetches(ref) !== times)
    assert.deepEqual(again, [], 'documents that were indexed are fetched again')
    const indexed = await ledger.driver.read((tx) =>
      tx.get<{ documents: number; refs: number; contents: number }>(
        `SELECT count(*) AS documents, count(DISTINCT ref) AS refs, count(DISTINCT content_id) AS contents
         FROM search_documents`,
      ),
    )
    assert.deepEqual(Object.values(indexed!).map(Number), [DOCUMENTS, DOCUMENTS, DOCUMENTS])
    await world.open()
    for (const person of [ANN, BOB]) assert.deepEqual(await world.seen(person), world.truth(person))
  } finally {
    for (const { child, ended } of lives) {
      child.kill('SIGKILL')
      await ended
    }
    await looks.stop()
    await ledger.close()
    await world.close()
  }
}

type Looks = { stop: () => Promise<{ backwards: string[]; last: Record<string, number> }> }

/** What each person would be told, again and again. */
function lookAgain(ledger: Ledger): Looks {
  const backwards: string[] = []
  const last: Record<string, number> = {}
  let isOver = false
  const look = async (): Promise<void> => {
    const tables = await DriveTables.open(ledger)
    for (const { account, indexed, skipped, listed } of await driveStatus(ledger, tables, [ANN, BOB])) {
      const done = indexed + skipped
      if (done < (last[account] ?? 0)) backwards.push(`${account}: ${last[account]}, then ${done}`)
      if (done > listed) backwards.push(`${account}: ${done} of ${listed}`)
      last[account] = done
    }
  }
  const looking = (async () => {
    while (!isOver) {
      await look()
      await sleep(systemClock, 50)
    }
    await look()
  })()
  return {
    async stop() {
      isOver = true
      await looking
      return { backwards, last }
    },
  }
}

for (const database of DATABASES) {
  describe(`on ${database}`, () => {
    test('syncs that are killed one after the other are taken over, each where the last one was', () =>
      withProcesses(database, async ({ sync, heldSync, interrupted }) => {
        for (let n = 1; n <= 3; n++) {
          const life = await heldSync()
          life.child.kill('SIGKILL')
          await life.ended
          await interrupted()
        }
        const { code, stderr } = await sync().ended
        assert.equal(code, 0, stderr)
      }))

    test('a sync that stands still is taken over when its lease is over, and changes nothing when it wakes', () =>
      withProcesses(database, async ({ sync, heldSync, release, ledger, interrupted }) => {
        const asleep = await heldSync()
        await standStill(asleep, () => isLocked(ledger))
        release()
        await interrupted()
        const { code, stderr } = await sync().ended
        assert.equal(code, 0, stderr)
        const before = await documents(ledger)
        asleep.child.kill('SIGCONT')
        await asleep.ended
        assert.deepEqual(await documents(ledger), before)
      }))
  })
}

/** Whether anybody is in the middle of writing to the ledger. Those of the test only read. */
async function isLocked(ledger: Ledger): Promise<boolean> {
  if (ledger.dialect === 'postgres') {
    const sql = `SELECT count(*) AS n FROM pg_stat_activity
                 WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()`
    return Number((await ledger.driver.read((tx) => tx.get<{ n: number }>(sql)))!.n) > 0
  }
  const { file } = (await ledger.driver.read((tx) =>
    tx.get<{ file: string }>(`SELECT file FROM pragma_database_list WHERE name = 'main'`),
  ))!
  const own = new DatabaseSync(file, { timeout: 0 })
  try {
    own.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch {
    return true // busy: somebody writes
  } finally {
    own.close()
  }
}

/** There are none before the first process has made their table. */
async function documents(ledger: Ledger): Promise<{ ref: string }[]> {
  return ledger.driver.read(async (tx) => {
    const made = await tx.get(`SELECT 1 AS made FROM app_schemas WHERE app = 'search' AND version > 0`)
    return made ? tx.all<{ ref: string }>('SELECT id, ref, content_id FROM search_documents ORDER BY id') : []
  })
}
