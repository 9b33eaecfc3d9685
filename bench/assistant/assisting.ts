/**
 * An assistant with its simulated Gmail and model in one process: what the simulator takes is part of every time. When
 * something reached Gmail is read from the simulator's own log of calls.
 */
import { ChildWorker } from '../../e2e/assistant/child-worker.ts'
import { requestSync } from '../../src/apps/assistant/actions.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  startAssistWorld,
} from '../../src/apps/assistant/assist-world.suite.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { startPushServer } from './push-server.ts'
import type { Database } from './session.ts'

export type LatencyOrder = { do: 'latency'; database: Database; mails: number }
/** What is done after `forMs` counts, whether it is all or not. */
export type BacklogOrder = {
  do: 'backlog'
  database: Database
  mails: number
  unitsPerMinute: number
  forMs: number
}
/** `workers`: processes on one ledger, this one among them. */
export type UsersOrder = {
  do: 'users'
  database: Database
  users: number
  mailsEach: number
  workers: number
  forMs: number
}

/** From the push to the call that sets the label, and to the one that makes the draft. */
export type Latency = { labelMs: number[]; draftMs: number[] }
/** `mails`: how many have their draft. `cpuMs`: of this process. */
export type Pace = { ms: number; cpuMs: number; mails: number; units: number }

const LABEL = 'threads.modify'
const DRAFT = 'drafts.create'
/** The first mails find nothing loaded and nothing prepared. */
const WARM_UP = 5
const LOOK_MS = 20

async function withWorld<T>(options: AssistWorldOptions, fn: (world: AssistWorld) => Promise<T>): Promise<T> {
  const world = await startAssistWorld(options)
  try {
    for (const user of options.users ?? [ANN]) await world.onboard(user)
    await world.settled()
    return await fn(world)
  } finally {
    await world.close()
  }
}

export function measureLatency({ database, mails }: LatencyOrder): Promise<Latency> {
  return withWorld({ database }, async (world) => {
    const latency: Latency = { labelMs: [], draftMs: [] }
    const server = await startPushServer(world)
    const { push } = world.gmail
    for (let n = -WARM_UP; n < mails; n++) {
      world.arrive({ subject: `Question ${n + WARM_UP}` })
      const served = world.sim.log.served
      const fromMs = world.clock.now()
      push.send(ANN, world.mailbox().historyId)
      await push.settled()
      await world.settled()
      if (n < 0) continue
      const calls = world.sim.log.last(world.sim.log.served - served)
      latency.labelMs.push(firstAt(calls, LABEL) - fromMs)
      latency.draftMs.push(firstAt(calls, DRAFT) - fromMs)
    }
    await server.close()
    return latency
  })
}

function firstAt(calls: readonly { operation: string; atMs: number }[], operation: string): number {
  const times = calls.filter((call) => call.operation === operation).map(({ atMs }) => atMs)
  if (times.length === 0) throw new Error(`Gmail was not asked for ${operation}`)
  return Math.min(...times)
}

/** All of it at once, as a scan finds it; what the quota allows is all that holds it back. */
export function measureBacklog(order: BacklogOrder): Promise<Pace> {
  const { database, mails, unitsPerMinute, forMs } = order
  return withWorld({ database, settings: { unitsPerMinute } }, (world) => {
    // The same words in each: the simulated Gmail looks for rare ones through all of the mailbox, which would be measured.
    for (let n = 0; n < mails; n++) world.arrive({ subject: 'A question' })
    return paced(world, { mails, forMs }, () => requestSync(world.place, ANN, { full: true }))
  })
}

export function measureUsers(order: UsersOrder): Promise<Pace> {
  const { database, users: count, mailsEach, workers, forMs } = order
  const users = Array.from({ length: count }, (_, n) => `user${n}@example.com`)
  return withWorld({ database, users }, async (world) => {
    for (const user of users) {
      for (let n = 0; n < mailsEach; n++) world.arrive({ subject: `Question ${n}` }, user)
    }
    const others: ChildWorker[] = []
    for (let n = 1; n < workers; n++) others.push(await ChildWorker.start(world))
    try {
      return await paced(world, { mails: count * mailsEach, forMs }, () =>
        Promise.all(users.map((user) => requestSync(world.place, user))),
      )
    } finally {
      for (const other of others) await other.kill()
    }
  })
}

/** Until each mail has its draft and the label that tells of it, or time is up. */
async function paced(
  world: AssistWorld,
  { mails, forMs }: { mails: number; forMs: number },
  begin: () => Promise<unknown>,
): Promise<Pace> {
  const [drafts, labels, units] = [world.called(DRAFT), world.called(LABEL), unitsOf(world)]
  const cpu = process.cpuUsage()
  const fromMs = systemClock.monotonicMs()
  await begin()
  const passed = (): number => systemClock.monotonicMs() - fromMs
  const made = (): number => world.called(DRAFT) - drafts
  // Twice: when it is sorted, and when it is drafted.
  const isDone = (): boolean => made() >= mails && world.called(LABEL) - labels >= 2 * mails
  while (!isDone() && passed() < forMs) await sleep(systemClock, LOOK_MS)
  const ms = passed()
  const { user, system } = process.cpuUsage(cpu)
  if (made() > mails) throw new Error(`${made()} drafts were made for ${mails} mails`)
  return { ms, cpuMs: (user + system) / 1_000, mails: made(), units: unitsOf(world) - units }
}

/** By what Gmail's documents say of the calls that a mail takes. */
const PRICES: Readonly<Record<string, number>> = {
  'threads.get': 40,
  'messages.get': 20,
  'messages.list': 5,
  'threads.modify': 10,
  'messages.modify': 5,
  'messages.trash': 20,
  'drafts.create': 10,
  'drafts.update': 15,
  'drafts.get': 5,
  'drafts.list': 5,
  'history.list': 2,
}

function unitsOf(world: AssistWorld): number {
  return Object.entries(PRICES).reduce((sum, [call, price]) => sum + price * world.called(call), 0)
}
