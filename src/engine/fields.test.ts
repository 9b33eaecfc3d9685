import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { UsageError } from '../base/errors.ts'
import { createEngine, type EngineOptions } from './engine.ts'
import type { JobOptions } from './job-kind.ts'
import { defineJob } from './kinds.ts'

const good: JobOptions<unknown> = { kind: 'test.kind', payload: z.unknown(), run: () => undefined }

describe('what is set when a program starts', () => {
  const kinds: [what: string, options: object, message: RegExp][] = [
    [
      'a misspelled option',
      { concurency: 1 },
      /The job kind test\.kind: there is no field called "concurency"/,
    ],
    [
      'half a try',
      { attempts: 0.5 },
      /attempts of test\.kind must be a whole number of at least 1, not 0\.5/,
    ],
    ['no place to run', { concurrency: 0 }, /concurrency of test\.kind .* not 0/],
    ['a stall time of NaN', { stallMs: Number.NaN }, /stallMs of test\.kind .* not NaN/],
    ['a lane that there is not', { lane: 'fast' }, /lane of test\.kind must be one of .* not "fast"/],
    [
      'a misspelled choice',
      { onKeyTaken: 'replase' },
      /onKeyTaken of test\.kind must be one of ignore, replace/,
    ],
    ['another', { onDepFailure: 'stop' }, /onDepFailure of test\.kind must be one of fail, cancel, run/],
    ['no handler', { run: undefined }, /run of test\.kind must be a function, not undefined/],
    ['no schema', { payload: {} }, /payload of test\.kind, a schema of zod/],
    ['half of its items', { items: { of: () => [] } }, /items\.only of test\.kind must be a function/],
    ['a fractional priority', { priority: 1.5 }, /priority of test\.kind .* not 1\.5/],
  ]
  for (const [what, options, message] of kinds) {
    test(`a job kind with ${what} is refused`, () => {
      assert.throws(() => defineJob({ ...good, ...options }), { name: 'UsageError', message })
    })
  }

  const engines: [what: string, options: object, message: RegExp][] = [
    ['a misspelled option', { worker: 4 }, /The options of an engine: there is no field called "worker"/],
    ['no workers', { workers: 0 }, /workers of an engine must be a whole number of at least 1, not 0/],
    ['a lease of NaN', { leaseMs: Number.NaN }, /leaseMs of an engine .* not NaN/],
  ]
  for (const [what, options, message] of engines) {
    test(`an engine with ${what} is refused`, async () => {
      const wanted: EngineOptions = { ledger: 'sqlite::memory:', ...options }
      await assert.rejects(createEngine(wanted), { name: 'UsageError', message })
    })
  }

  test('the refusal names the fields that there are', () => {
    // As a value of its own: in the literal the compiler would refuse it first.
    const misspelt = { ...good, retries: 3 }
    assert.throws(
      () => defineJob(misspelt),
      (error) => error instanceof UsageError && /attempts, concurrency/.test(error.hint ?? ''),
    )
  })

  test('an engine is not given other sizes that are not possible while it runs', async () => {
    const engine = await createEngine({ ledger: 'sqlite::memory:' })
    assert.throws(() => engine.reload({ workers: Number.NaN }), UsageError)
    await engine.stop()
  })
})
