/**
 * `npm run crash:mail -- [--messages 50000] [--kills 20] [--seed N]`: the mail archive's proof at length. A simulated
 * mailbox under mixed faults is synced by a process that is killed again and again; see e2e/mail/life.ts.
 */
import { liveAndArchive } from '../e2e/mail/life.ts'
import { systemClock } from '../src/base/clock.ts'
import { systemRandom } from '../src/base/random.ts'
import { readUsage, wrongUse } from './usage.ts'

const USAGE = 'npm run crash:mail -- [--messages N, 100 or more] [--kills N] [--seed S]'

const { values } = readUsage(
  {
    options: {
      messages: { type: 'string', default: '50000' },
      kills: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
    },
  },
  USAGE,
)
const [messages, kills, seed] = [Number(values.messages), Number(values.kills), Number(values.seed)]
if (![messages, kills, seed].every((n) => Number.isInteger(n) && n >= 0) || messages < 100) {
  wrongUse(USAGE)
}

const startedMs = systemClock.monotonicMs()
process.stdout.write(`${messages} messages, ${kills} kills, seed ${seed}\n`)
const report = await liveAndArchive({
  messages,
  kills,
  seed,
  poison: 8,
  faults: { profile: 'mixed' },
  say: (line) => process.stdout.write(`${line}\n`),
})
const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1000)
process.stdout.write(`${JSON.stringify({ ...report, seconds })}\n`)
