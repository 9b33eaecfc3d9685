import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { openLedger } from '../ledger/open.ts'
import { createEngine } from './engine.ts'
import { defineJob } from './kinds.ts'

test('jobs of a stream that another process opened run under its name, and its budget', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-streams-'))
  const url = `sqlite:${join(folder, 'ledger.db')}`
  const seen: string[] = []
  const job = defineJob({
    kind: 'test.named',
    payload: z.object({}),
    budget: (stream) => {
      seen.push(`budget of ${stream}`)
      return 'calls'
    },
    run: ({ stream }) => {
      seen.push(`run in ${stream}`)
    },
  })
  const budgets = { calls: { rate: 1_000 } }
  const worker = await createEngine({ ledger: await openLedger(url), jobs: [job], budgets })
  const other = await createEngine({ ledger: await openLedger(url), jobs: [job], budgets })
  try {
    await worker.start()
    await other.enqueue(job, {}, { stream: 'later' })
    assert.equal(await worker.drained(), true)
    assert.deepEqual([...new Set(seen)], ['budget of later', 'run in later'])
    assert.deepEqual(await worker.ledger.alerts(), [])
  } finally {
    await worker.stop()
    await other.stop()
    await worker.ledger.close()
    await other.ledger.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
