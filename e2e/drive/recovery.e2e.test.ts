/**
 * Workers that stand still, crash or lose their lease: others go on without a hand, nothing is indexed twice, and what is
 * told of the progress never runs backwards.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ANN, BOB, DATABASES, startDriveWorld } from '../../src/apps/drive/drive-world.suite.ts'
import { driveStatus } from '../../src/apps/drive/status.ts'
import { DriveTables } from '../../src/apps/drive/store/tables.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { begin, type Life, until } from './processes.ts'

const DOCUMENTS = 60
const LEASE_SECONDS = 5

const SETTINGS = {
  TIDEMARK_GOOGLE_DRIVE_WORKERS_MAX: '2',
  TIDEMARK_ENGINE_LEASE_SECONDS: String(LEASE_SECONDS),
}

type Place = {
  sync: () => Life
  ledger: Ledger
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
    sim: { faults: { rules: [{ do: 'latency', latency: { kind: 'fixed', ms: 40 } }] } },
  })
  const lives: Life[] = []
  const sync = (): Life => {
    const life = begin(world, ['drive', 'sync', '--json'], SETTINGS)
    lives.push(life)
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
    await run({ sync, ledger, interrupted })
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
      withProcesses(database, async ({ sync, ledger, interrupted }) => {
        for (let n = 1; n <= 3; n++) {
          const life = sync()
          await until(life, async () => (await documents(ledger)).length >= n * 12)
          assert.ok(!life.isOver(), 'it is killed at work')
          life.child.kill('SIGKILL')
          await life.ended
          await interrupted()
        }
        const { code, stderr } = await sync().ended
        assert.equal(code, 0, stderr)
      }))

    test('a sync that stands still is taken over when its lease is over, and changes nothing when it wakes', () =>
      withProcesses(database, async ({ sync, ledger, interrupted }) => {
        const asleep = sync()
        await until(asleep, async () => (await documents(ledger)).length >= 12)
        assert.ok(!asleep.isOver(), 'it is stopped at work')
        asleep.child.kill('SIGSTOP')
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

/** There are none before the first process has made their table. */
async function documents(ledger: Ledger): Promise<{ ref: string }[]> {
  return ledger.driver.read(async (tx) => {
    const made = await tx.get(`SELECT 1 AS made FROM app_schemas WHERE app = 'search' AND version > 0`)
    return made ? tx.all<{ ref: string }>('SELECT id, ref, content_id FROM search_documents ORDER BY id') : []
  })
}
