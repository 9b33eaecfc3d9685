import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppPlace } from '../../app/runtime.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { OpenIngest } from './runtime.ts'
import { ingestSource, ingestSources } from './sources.ts'

test('trouble of a queue is its own pipeline’s, and trouble of the ledger is everybody’s', async () => {
  let code = 'queue-missing'
  const kind = { kind: 'any' }
  const kinds = { clock: systemClock, obstacles: { of: () => undefined } }
  const ingest = {
    pipelines: { get: async () => ({ config: { location: null } }) },
    kinds: { ...kinds, object: kind, some: kind, list: kind, sweep: kind, dispose: kind },
    receivers: {
      of: async () => {
        throw new TidemarkError('away', { kind: 'transient', code })
      },
    },
  }
  const sources = ingestSources({} as AppPlace, ingest as unknown as OpenIngest)
  const source = ingestSource('logs')
  await sources.begin(source)
  assert.equal(sources.obstacle?.(source)?.error.code, 'queue-missing')
  code = 'ledger-down'
  await assert.rejects(sources.begin(source), { code })
  await assert.rejects(async () => sources.next?.([source]), { code })
})
