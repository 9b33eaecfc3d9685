/**
 * One task for one subject, in this process alone, so that neither another subject's heap and compiled code
 * nor an earlier case's connections are in the numbers. The order comes as JSON in the first argument, the
 * answer goes to the parent as a message.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/base/clock.ts'
import { PeerMissing } from '../peers.ts'
import { measure, type Task } from './measure.ts'
import type { Target } from './subject.ts'
import { findSubject } from './subjects.ts'

export type Order = {
  subject: string
  target: Target
  concurrency: number
  task: Task
  /** Begin only when told to: others begin at the same moment. */
  waits?: boolean
}
export type Answer = { values: number[] } | { missing: string } | { error: string }

const READY = 'ready'
const FILE = fileURLToPath(import.meta.url)
/** As bin/tidemark starts Node; the same for every subject. */
const NODE_FLAGS = ['--max-semi-space-size=4']
const NODE_COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
/** Filling a slow peer with a million jobs is what takes longest. */
const CHILD_MS_MAX = 300_000
/** A subject that does not close by itself is cut off: its numbers are already in. */
const TEARDOWN_MS_MAX = 10_000

/** In the parent: runs the order in a fresh process. Never throws for what the subject did. */
export function runOrder(order: Order): Promise<Answer> {
  return run(order, () => {})
}

/** In as many processes at once. The slowest decides: what one did not do, another had to. */
export async function runTogether(order: Order, processes: number): Promise<Answer> {
  const begin: (() => void)[] = []
  const onReady = (go: () => void): void => {
    if (begin.push(go) === processes) for (const one of begin) one()
  }
  const answers = await Promise.all(
    Array.from({ length: processes }, () => run({ ...order, waits: true }, onReady)),
  )
  const failed = answers.find((answer) => !('values' in answer))
  if (failed) return failed
  return { values: valuesTogether(answers.flatMap((answer) => ('values' in answer ? [answer.values] : []))) }
}

/** All have seen the time of the one server, each only its own. */
function valuesTogether(lists: readonly number[][]): number[] {
  const most = (at: number): number => Math.max(...lists.map((values) => values[at]!))
  if (lists.some((values) => values.length < 3)) return [most(0)]
  const clients = lists.reduce((sum, [, both, server]) => sum + both! - server!, 0)
  return [most(0), clients + most(2), most(2)]
}

async function run(order: Order, onReady: (go: () => void) => void): Promise<Answer> {
  const child = fork(FILE, [JSON.stringify(order)], {
    stdio: ['ignore', 2, 2, 'ipc'],
    execArgv: NODE_FLAGS,
    env: { ...process.env, NODE_COMPILE_CACHE },
  })
  let answer: Answer = { error: 'its process ended without an answer' }
  child.on('message', (message) => {
    if (message === READY) onReady(() => child.send(READY))
    else answer = message as Answer
  })
  const cancel = systemClock.timer(CHILD_MS_MAX, () => {
    answer = { error: `not done after ${CHILD_MS_MAX / 1000} s` }
    child.kill('SIGKILL')
  })
  await once(child, 'exit')
  cancel()
  return answer
}

async function work(order: Order): Promise<Answer> {
  try {
    const subject = await findSubject(order.subject).create(order)
    await subject.setup()
    if (order.waits) {
      const told = once(process, 'message')
      process.send?.(READY)
      await told
    }
    const values = await measure(subject, order.task, { clock: systemClock, target: order.target })
    const cancel = systemClock.timer(TEARDOWN_MS_MAX, () => finish({ values }))
    await subject.teardown()
    cancel()
    return { values }
  } catch (error) {
    if (error instanceof PeerMissing) return { missing: error.message }
    return { error: describeError(error) }
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return process.env.TIDEMARK_DEBUG ? (error.stack ?? error.message) : error.message
}

function finish(answer: Answer): void {
  process.send?.(answer, () => process.exit(0))
}

if (process.argv[1] === FILE && process.send) {
  // A parent that is gone takes its measurements with it.
  process.on('disconnect', () => process.exit(1))
  finish(await work(JSON.parse(process.argv[2] ?? '{}') as Order))
}
