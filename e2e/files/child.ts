/**
 * The sync as a process of its own, to be killed. Its parent says `sync` on its input, once for each look at both
 * sides; it says `settled` each time that nothing is left to do. Without its parent it ends.
 */
import { createInterface } from 'node:readline'
import { systemClock } from '../../src/base/clock.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { ChildOptions } from './child-life.ts'
import { askForSync, FastClock, startSync, untilSettled } from './world.ts'

const options = JSON.parse(process.env.ORACLE_CHILD ?? '') as ChildOptions
const clock = new FastClock(options.epochMs)
clock.skewMs = options.skewMs
const ledger = await openLedger(options.url, { clock, synchronous: 'NORMAL' })
const { engine, files } = await startSync({ home: options.home, ledger, clock, settings: options.settings })
const say = (line: string): void => void process.stdout.write(`${line}\n`)
say('begun')

let asked = 0
const input = createInterface({ input: process.stdin })
input.on('close', () => process.exit(0))
input.on('line', (line) => {
  if (line !== 'sync') return
  asked += 1
  const turn = asked
  void settleOnce().then(
    () => say(`settled ${turn}`),
    (thrown: unknown) => {
      process.stderr.write(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`)
      process.exit(1)
    },
  )
})

async function settleOnce(): Promise<void> {
  await askForSync(engine, files)
  const untilMs = systemClock.monotonicMs() + options.settleMsMax
  await untilSettled(engine, files, { untilMs, isOver: () => false })
}
