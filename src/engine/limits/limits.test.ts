import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock, sleep } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { seededRandom } from '../../base/random.ts'
import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import type { BudgetEvent } from './budget.ts'
import { createLimits, type Limits } from './limits.ts'
import { pass, throttled } from './sharing.suite.ts'
import type { BudgetSpec } from './spec.ts'

const SPEC: BudgetSpec = { rate: 100, rateMin: 100, workers: { start: 2, min: 2, max: 2 } }

function open(): { clock: FakeClock; limits: Limits; events: BudgetEvent[] } {
  const clock = new FakeClock()
  const events: BudgetEvent[] = []
  const onEvent = (event: BudgetEvent): void => {
    events.push(event)
  }
  const limits = createLimits({ store: new MemoryBudgetStore(), clock, random: seededRandom(1), onEvent })
  return { clock, limits, events }
}

describe('limits', () => {
  test('a budget is the same for the same name', async () => {
    const { limits, clock } = open()
    const budget = limits.budget('gmail', SPEC)
    assert.equal(limits.budget('gmail', SPEC), budget)
    assert.equal(limits.budget('gmail', { ...SPEC, rate: 7, rateMin: 7 }), budget)
    await pass(clock, 10)
    assert.equal(budget.snapshot().rate, 7)
    assert.equal(limits.bandwidth({ upload: 5 }), limits.bandwidth({ upload: 6 }))
    await limits.close()
  })

  test('a spec that cannot work is refused with what is wrong', () => {
    const { limits } = open()
    const refused = (spec: BudgetSpec, message: RegExp): void => {
      assert.throws(
        () => limits.budget('gmail', spec),
        (e) => e instanceof UsageError && message.test(e.message),
      )
    }
    refused({ rate: 0 }, /gmail.*rate is 0/)
    refused({ rate: 5, rateMin: 9 }, /rateMin is 9 and rateMax 5/)
    refused({ rate: 5, workers: { max: 0 } }, /workers/)
    refused({ rate: 5, burstMs: 0 }, /burstMs/)
    refused({ rate: 5, latencyP95MaxMs: -1 }, /latencyP95MaxMs/)
  })

  test('a budget that nobody defined is named, with those that exist', () => {
    const { limits } = open()
    limits.budget('gmail', SPEC)
    assert.throws(() => limits.canStart('gmial'), /"gmial"/)
  })

  test('work may start while fewer workers run than allowed; the end of one opens the gate', async () => {
    const { limits, clock } = open()
    limits.budget('gmail', SPEC)
    let opened = 0
    limits.onOpen('gmail', () => {
      opened += 1
    })
    assert.equal(limits.canStart('gmail'), false, 'other processes may have them all')
    await pass(clock, 10)
    assert.deepEqual([limits.canStart('gmail'), opened], [true, 1])
    const ends = [limits.startWorker('gmail')]
    assert.equal(limits.canStart('gmail'), true)
    ends.push(limits.startWorker('gmail'))
    assert.equal(limits.canStart('gmail'), false)
    ends[0]!()
    ends[0]!()
    assert.deepEqual([limits.canStart('gmail'), opened], [true, 2])
    ends[1]!()
    assert.equal(opened, 2)
    await limits.close()
  })

  test('a pause closes the gate of this budget only, and its end opens it', async () => {
    const { limits, clock, events } = open()
    const gmail = limits.budget('gmail', SPEC)
    const drive = limits.budget('drive', SPEC)
    let openedMs = 0
    const stop = limits.onOpen('gmail', () => {
      openedMs = clock.now()
    })
    for (const name of ['gmail', 'drive']) limits.canStart(name)
    await pass(clock, 10)
    const startMs = clock.now()
    openedMs = 0
    const refused = gmail.call(1, () => Promise.reject(throttled(2_000)))
    await Promise.all([assert.rejects(refused), pass(clock, 5)])
    assert.deepEqual([limits.canStart('gmail'), limits.canStart('drive')], [false, true])
    await Promise.all([drive.take(1), pass(clock, 10)])
    assert.equal(openedMs, 0)
    await pass(clock, 3_000)
    assert.ok(openedMs >= startMs + 2_000 && openedMs <= startMs + 2_010, `${openedMs - startMs}`)
    limits.canStart('gmail')
    await pass(clock, 10)
    assert.equal(limits.canStart('gmail'), true)
    assert.equal(events.filter((event) => event.type === 'throttle').length, 1)
    stop()
    await limits.close()
  })

  test('calls in flight count as workers where nobody counts workers', async () => {
    const { limits, clock } = open()
    const budget = limits.budget('gmail', SPEC)
    const calls = [1, 2].map(() => budget.call(1, () => sleep(clock, 1_000)))
    await pass(clock, 50)
    assert.equal(limits.canStart('gmail'), false)
    await pass(clock, 1_000)
    await Promise.all(calls)
    assert.equal(limits.canStart('gmail'), true)
    await limits.close()
  })

  test('the snapshot shows every budget and bandwidth', async () => {
    const { limits, clock } = open()
    const budget = limits.budget('gmail', SPEC)
    limits.bandwidth({ upload: 1_000 })
    const waiting = budget.take(500)
    waiting.catch(() => {})
    await pass(clock, 100)
    const { budgets, bandwidth } = limits.snapshot()
    assert.deepEqual(
      budgets.map(({ name, rate, workers, waiting, members, throttles }) => [
        name,
        rate,
        workers,
        waiting,
        members,
        throttles,
      ]),
      [['gmail', 100, 2, 1, 1, 0]],
    )
    assert.deepEqual(bandwidth.bandwidth?.upload, { rate: 1_000, waiting: 0, movedBytes: 0 })
    await limits.close()
    assert.equal(clock.pendingTimers, 0)
  })
})
