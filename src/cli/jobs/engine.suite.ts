/**
 * An engine in a process of its own, for tests that talk to it through the ledger alone. Its kinds: `demo.hold`
 * runs until it is told to stop, `demo.quick` is done at once, `demo.flaky` fails on its first try for good,
 * `demo.slice` settles a segment.
 */
import { z } from 'zod'
import { createEngine, defineJob, TidemarkError } from '../../engine/index.ts'

const url = process.argv[2]
if (!url) throw new Error('which ledger?')

const hold = defineJob({
  kind: 'demo.hold',
  payload: z.object({}),
  run: async (job) => {
    job.progress({ done: 3, total: 12, unit: 'items', label: 'copying' })
    await new Promise((_, reject) => {
      job.signal.addEventListener('abort', () => reject(job.signal.reason))
    })
  },
})
const quick = defineJob({ kind: 'demo.quick', payload: z.object({}), run: () => {} })
const flaky = defineJob({
  kind: 'demo.flaky',
  payload: z.object({}),
  run: (job) => {
    if (job.attempt === 1) throw new TidemarkError('not the first time', { kind: 'permanent' })
  },
})
const slice = defineJob({
  kind: 'demo.slice',
  payload: z.object({}),
  run: () => ({ listed: 2, stored: 2, seal: true }),
})

const engine = await createEngine({
  ledger: url,
  jobs: [hold, quick, flaky, slice],
  workers: 4,
  name: 'demo',
})
process.on('SIGTERM', () => {
  engine.stop().then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      process.exit(1)
    },
  )
})
await engine.start()
process.stdout.write('started\n')
