import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { processIdentity } from '../../base/process-identity.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { countedRates } from './stream-rates.ts'

const MINUTE_MS = 60_000
const SECOND_MS = 1_000

let clock: FakeClock
let ledger: Ledger

beforeEach(async () => {
  clock = new FakeClock(Date.UTC(2026, 0, 1))
  ledger = await openLedger('sqlite::memory:', { clock })
})

afterEach(() => ledger.close())

/** An engine that settles one item a second in a stream for so long. */
async function worksFor(stream: string, forMs: number): Promise<number> {
  const { id: streamId } = await ledger.stream(stream)
  const { host, pid, pidStart } = processIdentity()
  const owner = await ledger.register({ host, pid, pidStart, name: 'test' }, 60 * MINUTE_MS)
  for (let ms = 0; ms < forMs; ms += SECOND_MS) {
    await ledger.write({ jobs: [{ kind: 'test.one', payload: '{}', streamId }] })
    const room = { interactive: 1, bulk: 1 }
    const { claimed } = await ledger.cycle({ owner, claim: { owner, room, kinds: new Set(['test.one']) } })
    await ledger.cycle({ owner, settle: [{ job: claimed[0]!, event: 'succeed' }] })
    await clock.advance(SECOND_MS)
  }
  return streamId
}

describe('the pace that counters tell', () => {
  test('is not known of an engine that has just started', async () => {
    await clock.advance(50 * SECOND_MS)
    await worksFor('a', 5 * SECOND_MS)
    assert.deepEqual(await countedRates(ledger), new Map())
    await worksFor('a', 10 * SECOND_MS)
    assert.deepEqual(await countedRates(ledger), new Map())
  })

  test('is known of what has gone on for more than two minutes', async () => {
    const streamId = await worksFor('a', 3 * MINUTE_MS)
    assert.deepEqual(await countedRates(ledger), new Map([[streamId, 1]]))
  })

  test('is not known of a stream that has just begun beside others', async () => {
    const long = await worksFor('a', 3 * MINUTE_MS)
    await worksFor('b', 10 * SECOND_MS)
    assert.deepEqual([...(await countedRates(ledger)).keys()], [long])
  })

  test('is not that of an engine that has ended', async () => {
    await worksFor('a', 3 * MINUTE_MS)
    await clock.advance(60 * MINUTE_MS)
    await worksFor('a', 10 * SECOND_MS)
    assert.deepEqual(await countedRates(ledger), new Map())
  })
})
