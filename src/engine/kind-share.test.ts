import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { openLedger } from '../ledger/open.ts'
import { createEngine } from './engine.ts'
import { BULK_BYTES, defineJob } from './kinds.ts'

const payload = z.object({ name: z.string(), bytes: z.number() })

test('of a kind with few workers, long jobs of the bulk lane leave one to the others, and the others one to them', async () => {
  const ledger = await openLedger('sqlite::memory:')
  const started: string[] = []
  const ends = new Map<string, () => void>()
  let changed = (): void => {}
  const job = defineJob({
    kind: 'test.transfer',
    payload,
    concurrency: 3,
    size: ({ bytes }) => bytes,
    run: ({ payload: { name }, signal }) =>
      new Promise<undefined>((resolve) => {
        started.push(name)
        const end = (): void => resolve(undefined)
        ends.set(name, end)
        signal.addEventListener('abort', end)
        changed()
      }),
  })
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        changed = resolve
      })
    }
  }
  const engine = await createEngine({ ledger, jobs: [job], workers: 16 })
  try {
    const several = (kind: string, bytes: number) =>
      [1, 2, 3, 4].map((n) => ({ name: `${kind} ${n}`, bytes }))
    await engine.enqueueMany(job, several('long', BULK_BYTES))
    await engine.start()
    await until(() => started.length === 2)
    await engine.enqueueMany(job, several('short', 1))
    await until(() => started.length === 3)
    assert.deepEqual(started, ['long 1', 'long 2', 'short 1'])
    // A free place goes to a short one only while a long one has its own.
    ends.get('short 1')!()
    await until(() => started.length === 4)
    assert.equal(started[3], 'short 2')
    ends.get('long 1')!()
    ends.get('long 2')!()
    await until(() => started.includes('long 3'))
  } finally {
    await engine.stop()
    await ledger.close()
  }
})
