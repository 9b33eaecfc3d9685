/** What an app has locked in a transaction of its own, and who waits for it: nobody who need not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { z } from 'zod'
import { freshDatabase } from '../../scripts/test-database.ts'
import { openLedger } from '../ledger/open.ts'
import { createEngine, type Engine } from './engine.ts'
import type { AnyJobKind, JobRequest } from './job-kind.ts'
import { defineJob, request } from './kinds.ts'

const Item = z.object({ n: z.number() })
const plain = defineJob({ kind: 'test.plain', payload: Item, run: () => {} })
const keyed = defineJob({ kind: 'test.keyed', payload: Item, key: ({ n }) => String(n), run: () => {} })

type Held = {
  engine: Engine
  /** `during` runs while the app's transaction with these jobs is open. */
  whileOpen(jobs: readonly JobRequest[], during: () => Promise<void>): Promise<void>
  /** Resolves when the job has ended, and its end is committed. */
  ended(id: number): Promise<void>
}

async function withApp(jobs: readonly AnyJobKind[], fn: (held: Held) => Promise<void>): Promise<void> {
  const database = await freshDatabase()
  const ledger = await openLedger(database.url)
  const engine = await createEngine({ ledger, jobs })
  const done = new Set<number>()
  const waiting = new Map<number, () => void>()
  engine.events.on((event) => {
    if (event.type !== 'job' || event.what !== 'done') return
    done.add(event.id)
    waiting.get(event.id)?.()
  })
  const ended = (id: number): Promise<void> =>
    done.has(id) ? Promise.resolve() : new Promise((resolve) => waiting.set(id, resolve))
  const whileOpen: Held['whileOpen'] = async (within, during) => {
    const app = new pg.Client({ connectionString: database.url })
    await app.connect()
    await app.query('BEGIN')
    await engine.enqueueWithin(app, within)
    await during()
    await app.query('COMMIT')
    await app.end()
  }
  await engine.start()
  await fn({ engine, whileOpen, ended })
  await engine.drained()
  await engine.stop()
  assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
  await ledger.close()
  await database.drop()
}

describe('while an app has jobs in an open transaction of its own on PostgreSQL', () => {
  test('whoever enqueues one of their keys waits for it, and nobody else who enqueues or settles', () =>
    withApp([plain, keyed], async ({ engine, whileOpen, ended }) => {
      let outcome = 'none yet'
      let same: Promise<void> | undefined
      await whileOpen([request(keyed, { n: 1 })], async () => {
        same = engine.enqueue(keyed, { n: 1 }).then((result) => {
          outcome = result.outcome
        })
        const together = await Promise.all([
          engine.enqueue(keyed, { n: 2 }),
          engine.enqueue(plain, { n: 1 }),
          engine.enqueue(plain, { n: 2 }),
        ])
        const later = [await engine.enqueue(keyed, { n: 3 }), await engine.enqueue(plain, { n: 3 })]
        for (const { id } of [...together, ...later]) await ended(id)
        assert.equal(outcome, 'none yet')
      })
      await same
      assert.match(outcome, /^(added|ignored)$/)
    }))

  test('a job that theirs are to wait for ends after it, and nobody else waits for that', async () => {
    const begun = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const run = async (): Promise<void> => {
      begun.resolve()
      await end.promise
    }
    const first = defineJob({ kind: 'test.first', payload: Item, run })
    await withApp([plain, first], async ({ engine, whileOpen, ended }) => {
      const { id } = await engine.enqueue(first, { n: 0 })
      await begun.promise
      await whileOpen([request(plain, { n: 1 }, { after: [id] })], async () => {
        end.resolve()
        for (const n of [2, 3, 4]) await ended((await engine.enqueue(plain, { n })).id)
        assert.equal((await engine.ledger.job(id))!.job.state, 'claimed')
      })
      await ended(id)
    })
  })

  test('a child job with one of their keys waits for it, with the job that brings it, and nobody else', async () => {
    const parent = defineJob({
      kind: 'test.parent',
      payload: Item,
      run: ({ payload }) => ({ jobs: [request(keyed, payload)] }),
    })
    await withApp([plain, keyed, parent], async ({ engine, whileOpen, ended }) => {
      let id = 0
      await whileOpen([request(keyed, { n: 1 })], async () => {
        const added = await engine.enqueueMany(parent, [{ n: 1 }, { n: 2 }, { n: 3 }])
        id = added[0]!.id
        for (const other of added.slice(1)) await ended(other.id)
        for (const n of [5, 6]) await ended((await engine.enqueue(plain, { n })).id)
        assert.equal((await engine.ledger.job(id))!.job.state, 'claimed')
      })
      await ended(id)
    })
  })

  test('the parts of a job that come behind one with one of their keys are written after it, in their order', async () => {
    const written: number[] = []
    const later = Promise.withResolvers<void>()
    const parted = defineJob({
      kind: 'test.parted',
      payload: Item,
      run: async ({ commit }) => {
        const part = (n: number, jobs: JobRequest[] = []): void => {
          void commit({ checkpoint: { n }, jobs }).then(() => written.push(n))
        }
        part(1, [request(keyed, { n: 1 })])
        part(2)
        await later.promise
        part(3)
      },
    })
    await withApp([plain, keyed, parted], async ({ engine, whileOpen, ended }) => {
      let id = 0
      const checkpoint = async (): Promise<string | null> => {
        const row = await engine.ledger.driver.read((tx) =>
          tx.get<{ checkpoint: string | null }>(`SELECT checkpoint FROM jobs WHERE id = ?`, [id]),
        )
        return row!.checkpoint
      }
      await whileOpen([request(keyed, { n: 1 })], async () => {
        id = (await engine.enqueue(parted, { n: 1 })).id
        for (const n of [2, 3]) await ended((await engine.enqueue(plain, { n })).id)
        later.resolve()
        for (const n of [4, 5]) await ended((await engine.enqueue(plain, { n })).id)
        assert.equal(await checkpoint(), null)
      })
      await ended(id)
      assert.deepEqual(written, [1, 2, 3])
      assert.equal(await checkpoint(), '{"n":3}')
    })
  })
})
