/**
 * One engine process of the crash harness. It works on the ledger that CRASH_CHILD (JSON) names until nothing is
 * left to do, says so and ends. On the way it may kill itself at the n-th time that it comes by a commit point.
 *
 * Each line that it prints is one JSON object (see Saying): `ready` when the engine runs, `done` at the end.
 */
import { systemClock } from '../../src/base/clock.ts'
import { systemRandom } from '../../src/base/random.ts'
import { handleSignals } from '../../src/engine/shutdown.ts'
import type { CommitPoint } from '../../src/ledger/cycle.ts'
import { type ChildOptions, CYCLES_PER_TICK, type Saying } from './child-options.ts'
import { openWorkload } from './workload.ts'

const options = JSON.parse(process.env.CRASH_CHILD ?? '{}') as ChildOptions
const hits: Partial<Record<CommitPoint, number>> = {}

function say(saying: Saying): void {
  process.stdout.write(`${JSON.stringify(saying)}\n`)
}

function atPoint(point: CommitPoint): void {
  const hit = (hits[point] ?? 0) + 1
  hits[point] = hit
  if (options.kill?.point === point && options.kill.hit === hit) process.kill(process.pid, 'SIGKILL')
  if (point === 'begin' && hit % CYCLES_PER_TICK === 0) say({ say: 'tick', n: hit / CYCLES_PER_TICK })
}

/** The first number spreads processes over the tallies; the rest are back-offs, which are to be short here. */
let asked = 0
function shortRandom(): number {
  asked += 1
  return systemRandom() * (asked === 1 ? 1 : 0.01)
}

// Our parent is gone when our input ends; that we wait for it must not keep us alive.
process.stdin.on('end', () => process.exit(71)).resume()
if ('unref' in process.stdin) process.stdin.unref()

const engine = await openWorkload(options.size, {
  ledger: options.ledger,
  leaseMs: options.leaseMs,
  workers: options.workers,
  point: atPoint,
  random: shortRandom,
  name: 'crash',
  onViolation: (what) => {
    process.stderr.write(`violation: ${what}\n`)
    process.exit(70)
  },
})
engine.events.on(
  (event) => {
    if (event.type === 'lease' || event.type === 'ledger' || event.type === 'alert')
      say({ say: 'event', what: JSON.stringify(event) })
  },
  { jobs: false },
)
const uninstall = handleSignals({
  process,
  clock: systemClock,
  onStop: async () => {
    await engine.stop()
    say({ say: 'stopped' })
    uninstall()
  },
  onReload: () => {},
  exit: (code) => process.exit(code),
  onError: (error) => {
    throw error
  },
})
await engine.start()
say({ say: 'ready', owner: engine.owner })
if (await engine.drained()) {
  say({ say: 'done', hits })
  await engine.stop()
  uninstall()
}
