/** Large payloads are held within bounds, and keep out nothing that is small. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../scripts/test-database.ts'
import { openLedger } from '../ledger/open.ts'
import { engineOn, type OpenFresh } from './engine.suite.ts'
import type { Engine } from './engine.ts'
import type { AnyJobKind, JobKind } from './job-kind.ts'
import { defineJob } from './kinds.ts'
import { LANE_BYTES_MAX } from './window.ts'

const Text = z.object({ text: z.string() })
type Text = z.infer<typeof Text>
const MIB = 1024 * 1024

const DATABASES: Record<string, OpenFresh> = {
  SQLite: async () => {
    const ledger = await openLedger('sqlite::memory:')
    return { ledger, close: () => ledger.close() }
  },
  PostgreSQL: async () => {
    const { url, drop } = await freshDatabase()
    const ledger = await openLedger(url)
    return { ledger, close: () => ledger.close().then(drop) }
  },
}

/** Jobs that end when told to; `began` counts them. */
function held(kind: string, more: Partial<AnyJobKind> = {}) {
  const ends: (() => void)[] = []
  let onBegan = (): void => {}
  const job = defineJob({
    kind,
    payload: Text,
    lane: 'bulk',
    ...(more as object),
    run: ({ signal }) =>
      new Promise<undefined>((resolve) => {
        ends.push(() => resolve(undefined))
        signal.addEventListener('abort', () => resolve(undefined))
        onBegan()
      }),
  })
  const began = async (n: number): Promise<void> => {
    while (ends.length < n)
      await new Promise<void>((resolve) => {
        onBegan = resolve
      })
  }
  return { job, ends, began }
}

function small(kind: string, n: number) {
  let left = n
  let onDone = (): void => {}
  const done = new Promise<void>((resolve) => {
    onDone = resolve
  })
  const job = defineJob({
    kind,
    payload: Text,
    lane: 'bulk',
    run: () => {
      left -= 1
      if (left === 0) onDone()
    },
  })
  return { job, done }
}

const add = (engine: Engine, kind: JobKind<Text>, n: number, bytes: number) =>
  engine.enqueueMany(kind, Array(n).fill({ text: 'x'.repeat(bytes) }))

for (const [name, open] of Object.entries(DATABASES)) {
  const withEngine = engineOn(open)

  describe(`large payloads on ${name}`, () => {
    test('of a job that runs keep out no small jobs of its lane', async () => {
      const large = held('test.large')
      const { job, done } = small('test.small', 300)
      await withEngine([large.job, job], async (engine) => {
        await engine.start()
        await add(engine, large.job, 1, LANE_BYTES_MAX + MIB)
        await large.began(1)
        await add(engine, job, 300, 10)
        await done
        assert.equal(engine.window.running.bulk, 1)
      })
    })

    test('of a kind that runs one job at a time keep out no small jobs of its lane', async () => {
      const large = held('test.large', { concurrency: 1 })
      const { job, done } = small('test.small', 300)
      await withEngine([large.job, job], async (engine) => {
        await engine.start()
        await add(engine, large.job, 3, LANE_BYTES_MAX + MIB)
        await large.began(1)
        await add(engine, job, 300, 10)
        await done
        assert.equal(engine.window.running.bulk, 1)
      })
    })
  })
}
