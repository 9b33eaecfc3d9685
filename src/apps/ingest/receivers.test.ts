import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { Queue } from '../../cloud/queue.ts'
import type { Engine } from '../../engine/engine.ts'
import type { IngestKinds } from './kinds.ts'
import { Receivers } from './receivers.ts'

test('two who ask for the receiver of a pipeline at the same time get the same, on one queue', async () => {
  let opened = 0
  const pipelines = {
    get: async (name: string) => ({ name }),
    stamp: () => 'one',
    queue: async () => {
      opened += 1
      return { close: async () => undefined } as Partial<Queue>
    },
  }
  const kinds = { pipelines } as unknown as IngestKinds
  const receivers = new Receivers({ kinds: () => kinds, engine: () => ({}) as Engine, clock: systemClock })
  const [one, other] = await Promise.all([receivers.of('logs'), receivers.of('logs')])
  assert.equal(one, other)
  assert.equal(opened, 1)
})

test('a queue that cannot be opened is told of once for each reason, and noted each time', async () => {
  let reason = 'nobody listens there'
  const pipelines = {
    get: async (name: string) => ({ name }),
    stamp: () => 'one',
    queue: async () => {
      throw new TidemarkError(reason, { kind: 'transient' })
    },
  }
  let noted = 0
  const engine = {
    write: async () => {
      noted += 1
    },
  }
  const receivers = new Receivers({
    kinds: () => ({ pipelines }) as unknown as IngestKinds,
    engine: () => engine as unknown as Engine,
    clock: systemClock,
  })
  const told: string[] = []
  receivers.onError = (error) => told.push((error as Error).message)
  await receivers.follow(['logs'])
  await receivers.follow(['logs'])
  reason = 'nobody may listen there'
  await receivers.follow(['logs'])
  assert.deepEqual(told, ['nobody listens there', 'nobody may listen there'])
  assert.equal(noted, 3)
})
