/** The measurements: the same code for every subject. Each runs in a process of its own (child.ts). */
import { readFileSync } from 'node:fs'
import { type Clock, sleep } from '../../src/base/clock.ts'
import { type ProcessorUs, processorUs } from './processor.ts'
import type { Each, Subject, Target } from './subject.ts'

export type Task =
  | { do: 'enqueue one by one'; count: number }
  | { do: 'enqueue in batches'; count: number }
  | { do: 'settle'; count: number }
  | { do: 'block'; count: number }
  | { do: 'enqueue with keys'; count: number }
  | { do: 'fan in'; count: number }
  | { do: 'drain'; count: number; each?: Each }
  | { do: 'drain together'; count: number; processes: number; each?: Each }
  | { do: 'pick up'; count: number; spreadMs: number }
  | { do: 'memory'; count: number; forMs: number }
  | { do: 'raw'; variant: string; count: number }

export const BATCH = 1000
/** Rare enough to take nothing from those who work. */
const TOGETHER_POLL_MS = 20
/** An engine that has just started is not idle yet: listeners connect, first polls end. */
const IDLE_MS = 500
/** The last job is done and the workers are at rest again. */
const GAP_MS = 15
/** Steps of the golden ratio cover the spread evenly: a poller is met at every phase of its period. */
const GAP_STEP = (Math.sqrt(5) - 1) / 2

/** The numbers of a task, the deciding one first. */
export async function measure(
  subject: Subject,
  task: Task,
  { clock, target }: { clock: Clock; target: Target },
): Promise<number[]> {
  switch (task.do) {
    case 'enqueue one by one':
      return [await rate(clock, task.count, () => enqueueOneByOne(subject, task.count))]
    case 'enqueue in batches':
      return [await rate(clock, task.count, () => enqueueInBatches(subject, task.count))]
    case 'settle':
      await required(subject.settle, 'settle').call(subject, task.count)
      return []
    case 'block':
      await required(subject.block, 'block').call(subject, task.count)
      return []
    case 'drain':
      return withProcessor(target, task.count, () => drain(subject, task, clock))
    case 'drain together':
      return withProcessor(target, task.count, () => drainTogether(subject, task.each, clock))
    case 'enqueue with keys':
      return [await rate(clock, task.count, () => enqueueWithKeys(subject, task.count))]
    case 'fan in':
      return await fanIn(subject, task.count, clock)
    case 'pick up':
      return await pickUp(subject, task, clock)
    case 'memory':
      return [await memory(subject, task, clock)]
    case 'raw':
      return [await required(subject.raw, 'raw').call(subject, task.variant, task.count)]
  }
}

async function enqueueOneByOne(subject: Subject, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await subject.enqueueOne(n)
}

async function enqueueInBatches(subject: Subject, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += BATCH) await subject.enqueueMany(Math.min(BATCH, count - sent))
}

async function enqueueWithKeys(subject: Subject, count: number): Promise<void> {
  const enqueue = required(subject.enqueueKeyed, 'enqueue with keys')
  for (let sent = 0; sent < count; sent += BATCH) await enqueue.call(subject, Math.min(BATCH, count - sent))
}

/** Seconds until they are stored, and until the one that waits for all of them runs. */
async function fanIn(subject: Subject, count: number, clock: Clock): Promise<number[]> {
  const last = counter(1)
  const fromMs = clock.monotonicMs()
  await required(subject.fanIn, 'fan in').call(subject, count, () => last.add(1))
  const storedMs = clock.monotonicMs()
  await subject.start({ onJobs: () => {} })
  await last.reached
  return [(storedMs - fromMs) / 1000, (clock.monotonicMs() - fromMs) / 1000]
}

/** The number that `run` gives, and µs a job of processor time: of client and server, and of the server alone. */
async function withProcessor(target: Target, count: number, run: () => Promise<number>): Promise<number[]> {
  const before = processorUs(target)
  const value = await run()
  const after = processorUs(target)
  if (!before || !after) return [value]
  const perJob = (of: keyof ProcessorUs): number => (after[of] - before[of]) / count
  return [value, perJob('client') + perJob('server'), perJob('server')]
}

/** Seconds from the start of the workers until nothing is left, whoever did it. */
async function drainTogether(subject: Subject, each: Each | undefined, clock: Clock): Promise<number> {
  const fromMs = clock.monotonicMs()
  await subject.start({ onJobs: () => {}, each })
  while ((await subject.left()) > 0) await sleep(clock, TOGETHER_POLL_MS)
  return (clock.monotonicMs() - fromMs) / 1000
}

/** Jobs per second, from the start of the workers to the last job durably completed. */
async function drain(
  subject: Subject,
  { count, each }: { count: number; each?: Each },
  clock: Clock,
): Promise<number> {
  const handled = counter(count)
  const perS = await rate(clock, count, async () => {
    await subject.start({ onJobs: handled.add, each })
    await handled.reached
    await subject.drained()
  })
  const left = await subject.left()
  if (left > 0) throw new Error(`${left} jobs were left when the subject said that it was done`)
  return perS
}

/** p50 and p99 in ms from calling enqueue to the start of the handler, on an idle engine. */
async function pickUp(
  subject: Subject,
  task: { count: number; spreadMs: number },
  clock: Clock,
): Promise<number[]> {
  let started: () => void = () => {}
  await subject.start({ onJobs: () => started() })
  await sleep(clock, IDLE_MS)
  const latenciesMs: number[] = []
  for (let n = 0; n < task.count; n++) {
    await sleep(clock, GAP_MS + ((n * GAP_STEP) % 1) * task.spreadMs)
    const fromMs = clock.monotonicMs()
    const handler = new Promise<void>((resolve) => {
      started = () => {
        latenciesMs.push(clock.monotonicMs() - fromMs)
        resolve()
      }
    })
    await Promise.all([handler, subject.enqueueOne(n)])
  }
  return [percentile(latenciesMs, 0.5), percentile(latenciesMs, 0.99)]
}

/** The highest resident size in MB while the backlog is being worked off, for a limited time. */
async function memory(
  subject: Subject,
  task: { count: number; forMs: number },
  clock: Clock,
): Promise<number> {
  const handled = counter(task.count)
  const untilMs = clock.monotonicMs() + task.forMs
  const timeIsUp = counter(1)
  const cancel = clock.timer(task.forMs, () => timeIsUp.add(1), { keepAlive: true })
  const onJobs = (count: number): void => {
    handled.add(count)
    // Some subjects never leave the microtask queue while they have work: a timer alone would not fire.
    if (clock.monotonicMs() > untilMs) timeIsUp.add(1)
  }
  await subject.start({ onJobs })
  await Promise.race([handled.reached, timeIsUp.reached])
  cancel()
  if (handled.count() === 0) throw new Error('no job was handled in the given time')
  return peakResidentMb()
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  if (value === undefined) throw new Error('a percentile needs at least one value')
  return value
}

async function rate(clock: Clock, count: number, run: () => Promise<void>): Promise<number> {
  const fromMs = clock.monotonicMs()
  await run()
  return count / ((clock.monotonicMs() - fromMs) / 1000)
}

function counter(target: number): { add(count: number): void; count(): number; reached: Promise<void> } {
  let count = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const add = (more: number): void => {
    count += more
    if (count >= target) resolve()
  }
  return { add, count: () => count, reached: promise }
}

/** From /proc where it is: getrusage also counts what the parent held when it forked. */
function peakResidentMb(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1024
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
  if (!peak?.[1]) throw new Error('/proc/self/status has no VmHWM')
  return Number(peak[1]) / 1024
}

function required<T>(method: T | undefined, name: string): T {
  if (!method) throw new Error(`this subject cannot ${name}`)
  return method
}
