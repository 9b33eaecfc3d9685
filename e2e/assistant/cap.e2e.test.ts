/** What an account may cost on a day holds for all processes that sort its mail, and mail is sorted all the same. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { requestSync } from '../../src/apps/assistant/actions.ts'
import {
  ANN,
  type AssistWorld,
  DATABASES,
  startAssistWorld,
  until,
} from '../../src/apps/assistant/assist-world.suite.ts'
import { assistStatus } from '../../src/apps/assistant/status.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { ChildWorker } from './child-worker.ts'

const CAP = 0.03
const CAP_MICROS = CAP * 1_000_000
const MAILS = 20
const DAY_MS = 86_400_000
/** More than it takes on a busy machine. */
const NEEDED_MS = 60_000

let world: AssistWorld | undefined
let others: ChildWorker[] = []
afterEach(async () => {
  for (const other of others) await other.kill()
  others = []
  await world?.close()
  world = undefined
})

/** The processes live by the real clock, and all that is compared is of one day: what would meet its end begins after it. */
async function beforeMidnight(): Promise<void> {
  const leftMs = DAY_MS - (systemClock.now() % DAY_MS)
  if (leftMs < NEEDED_MS) await sleep(systemClock, leftMs)
}

for (const database of DATABASES) {
  describe(`the cap of a day, on ${database}`, () => {
    test('is not passed by three processes at once: the rest is sorted without a model, and drafts wait for the next day', async () => {
      await beforeMidnight()
      const w = await startAssistWorld({
        database,
        dayCost: CAP,
        settings: { modelWaitMs: 0, backlogMax: 1_000 },
      })
      world = w
      await w.onboard()
      await w.settled()
      for (let n = 1; n < 3; n++) others.push(await ChildWorker.start(w))
      const threads = Array.from({ length: MAILS }, () => w.arrive().threadId)
      await requestSync(w.place, ANN)
      const records = () => Promise.all(threads.map((thread) => w.record(thread)))
      await until(async () => (await w.tables.balance(ANN)).classified === MAILS)
      await until(async () =>
        (await records()).every((one) => one!.status === 'drafted' || one!.problemCode === 'model-budget'),
      )
      const { spent } = await w.worker.calls.day(ANN)
      assert.ok(spent.costMicros > 0 && spent.costMicros <= CAP_MICROS, `${spent.costMicros} were spent`)
      const all = await records()
      const waiting = all.filter((one) => one!.status === 'pending')
      assert.ok(waiting.length > 0 && all.some((one) => one!.by === 'local'))
      const [status] = await assistStatus(w.worker.ledger, w.tables, [ANN])
      assert.equal(status!.problem!.code, 'model-budget')
      const made = w.called('drafts.create')
      assert.equal(made, MAILS - waiting.length)
      // The others live by the real clock.
      for (const other of others.splice(0)) await other.kill()
      w.clock.aheadMs += DAY_MS
      await requestSync(w.place, ANN)
      await until(() => w.called('drafts.create') > made)
      const next = await w.worker.calls.day(ANN)
      assert.ok(next.spent.costMicros > 0 && next.spent.costMicros <= CAP_MICROS)
    })
  })
}
