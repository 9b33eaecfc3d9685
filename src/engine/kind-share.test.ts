import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createEngine, type Engine } from './engine.ts'
import { BULK_BYTES, defineJob } from './kinds.ts'

const payload = z.object({ name: z.string(), bytes: z.number() })

/** Transfers that begin when the engine lets them and end when told to. */
function transfers(concurrency: number) {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  let changed = (): void => {}
  const job = defineJob({
    kind: 'test.transfer',
    payload,
    concurrency,
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
  return { job, started, end: (name: string) => ends.get(name)!(), until }
}

const several = (kind: string, count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => ({ name: `${kind} ${n + 1}`, bytes }))

async function withTransfers(
  concurrency: number,
  fn: (engine: Engine, of: ReturnType<typeof transfers>) => Promise<void>,
): Promise<void> {
  const of = transfers(concurrency)
  const engine = await createEngine({ ledger: 'sqlite::memory:', jobs: [of.job], workers: 16 })
  try {
    await fn(engine, of)
  } finally {
    await engine.stop()
  }
}

test('of a kind with few workers, long jobs of the bulk lane leave one to the others, and the others one to them', () =>
  withTransfers(3, async (engine, { job, started, end, until }) => {
    await engine.enqueueMany(job, several('long', 4, BULK_BYTES))
    await engine.start()
    await until(() => started.length === 2)
    await engine.enqueueMany(job, several('short', 4, 1))
    await until(() => started.length === 3)
    assert.deepEqual(started, ['long 1', 'long 2', 'short 1'])
    // A free place goes to a short one only while a long one has its own.
    end('short 1')
    await until(() => started.length === 4)
    assert.equal(started[3], 'short 2')
    end('long 1')
    end('long 2')
    await until(() => started.includes('long 3'))
  }))

test('while one long job runs, the next begins although short ones come without end', () =>
  withTransfers(8, async (engine, { job, started, end, until }) => {
    await engine.enqueueMany(job, several('long', 1, BULK_BYTES))
    await engine.start()
    await until(() => started.length === 1)
    await engine.enqueueMany(job, several('short', 60, 1))
    await until(() => started.length === 8)
    await engine.enqueueMany(job, several('later', 1, BULK_BYTES))
    const isNext = ({ waiting }: Engine['window']): boolean => waiting.bulk > 0
    while (!isNext(engine.window)) await new Promise((resolve) => setImmediate(resolve))
    const shorts = started.filter((name) => name.startsWith('short'))
    end(shorts[0]!)
    await until(() => started.length === 9)
    assert.equal(started[8], 'later 1')
  }))
