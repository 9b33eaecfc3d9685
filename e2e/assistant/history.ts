/**
 * Runs a random history of two mailboxes on which their users and the assistant work at once, with pushes that come twice
 * or not at all, a history that expires, calls whose answers are lost, and processes that end at any step; and compares
 * the end with what must be true (checks.ts):
 *
 * - every conversation with mail of somebody else in the inbox is sorted, for the first time exactly once
 * - there is at most one draft of the assistant in a conversation, and no draft that the user edited is lost
 * - each conversation has the one label that its record says, or none
 * - nothing was sent but by the user, and by agents to the one whom their profile names, once for each of their calls
 * - Gmail never had to refuse a call because of the quota
 * - every call of a model is on record; sorting and drafting ask it no oftener than something happened
 * - what a day may cost was never passed, by what the model itself has counted
 * - a mailbox that is settled stays settled, and asks no model
 *
 * Every fourth history has so small a quota of Gmail that the assistant must wait for it, and every third so small a cap
 * of costs that models are not asked any more for a time; at its end it is the next day, and the cap is gone.
 *
 * Processes are workers in this one, or, with `kills`, real ones that are killed.
 */

import { requestSync } from '../../src/apps/assistant/actions.ts'
import type { Worker } from '../../src/apps/assistant/assist-worker.suite.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  startAssistWorld,
} from '../../src/apps/assistant/assist-world.suite.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import type { SimOptions } from '../../src/sim/start.ts'
import { checkMailbox, checkRest, checkService, DESK } from './checks.ts'
import { ChildWorker } from './child-worker.ts'
import { type Act, EVE, MailboxUser, type UserCounts } from './mailbox-user.ts'

export type HistoryOptions = {
  database: 'sqlite' | 'postgres'
  acts: number
  kills: boolean
}

/** `deathsAtWork`: of them, those of processes that had jobs. */
export type HistoryCounts = UserCounts &
  Record<
    'acts' | 'deaths' | 'deathsAtWork' | 'drafts' | 'agentRuns' | 'agentSent' | 'modelCalls' | 'capped',
    number
  >

export type Ran = { failure: string | undefined; counts: HistoryCounts }

const CAROL = 'carol@example.com'
/** The second one has less mail. */
const SECOND_SHARE = 0.25

const WEATHER: FaultsInput['rules'] = [
  { do: 'reset', when: 'before', probability: 0.02, service: 'gmail' },
  { do: 'reset', when: 'after', probability: 0.04, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.02, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.05, service: 'models' },
  { do: 'latency', latency: { kind: 'uniform', minMs: 0, maxMs: 120 }, probability: 0.5, service: 'models' },
]
const ROUTING = [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile: 'desk' }]
const PROFILE = { name: 'desk', tools: ['create_draft', 'apply_label', 'escalate', 'send'], send_to: [DESK] }
/** A whole history fits into the one; with the other the assistant must wait. */
const UNITS_PER_MINUTE = { wide: 30_000, narrow: 1_500 }
/** With prices of one for a million tokens: some calls fit, and not all. */
const DAY_COST = 0.012
const DAY_MS = 86_400_000
const LATER_MS = 600_000
/** Between two acts the assistant gets so far, by calls that are answered: so that it depends on no machine's speed. */
const PAUSE_CALLS_MAX = 14
const PAUSE_MS_MAX = 150
const KILL_CALLS_MAX = 16
const KILL_MS_MAX = 3_000
const LOOK_MS = 3
const REST_LOOK_MS = 25
const REST_MS_MAX = 2_500
const SETTLE_ROUNDS = 3

export async function runAssistHistory(seed: number, options: HistoryOptions): Promise<Ran> {
  const unitsPerMinute = UNITS_PER_MINUTE[seed % 4 === 0 ? 'narrow' : 'wide']
  const worldOptions: AssistWorldOptions = {
    users: [ANN, CAROL],
    database: options.database,
    settings: { modelWaitMs: 100, attempts: 10, fullScanMs: 1e12, unitsPerMinute },
    quota: { unitsPerMinute },
    accountSettings: { routing: ROUTING, profiles: [PROFILE] },
    models: { script: agentScript(seed) },
    ...(seed % 3 === 0 && { dayCost: DAY_COST }),
  }
  const world = await startAssistWorld(worldOptions)
  const run = new Run(world, seed, options)
  try {
    const wrong = await run.toTheEnd(worldOptions)
    if (wrong.length === 0) return { failure: undefined, counts: run.counts }
    const told = [...wrong.slice(0, 20), ...run.told.slice(-80).map((line) => `  ${line}`)]
    return { failure: `seed ${seed}: ${told.join('\n')}`, counts: run.counts }
  } finally {
    await run.close()
    await world.close()
  }
}

/** What agents do: one thing each, drawn by the mail; now and then something that is refused. */
function agentScript(seed: number): NonNullable<SimOptions['models']>['script'] {
  const random = seededRandom(seed)
  return ({ tools, messages }) => {
    if (tools.length === 0) return undefined
    if (messages.some(({ role }) => role === 'assistant')) return { text: 'Seen to.' }
    const calls = [
      { name: 'create_draft', input: { text: 'It comes tomorrow.' } },
      { name: 'send', input: { to: DESK, text: 'Please look after it.' } },
      { name: 'send', input: { to: EVE, text: 'Please look after it.' } },
      { name: 'apply_label', input: { label: 'waiting' } },
      { name: 'escalate', input: { reason: 'Somebody should look.' } },
    ]
    return { toolCalls: [calls[Math.floor(random() * calls.length)]!] }
  }
}

class Run {
  readonly told: string[] = []
  readonly #world: AssistWorld
  readonly #random: Random
  readonly #options: HistoryOptions
  readonly #users: readonly MailboxUser[]
  readonly #own = {
    acts: 0,
    deaths: 0,
    deathsAtWork: 0,
    drafts: 0,
    agentRuns: 0,
    agentSent: 0,
    modelCalls: 0,
    capped: 0,
  }
  #children: ChildWorker[] = []

  constructor(world: AssistWorld, seed: number, options: HistoryOptions) {
    this.#world = world
    this.#random = seededRandom(seed)
    this.#options = options
    this.#users = [ANN, CAROL].map((address) => new MailboxUser(world, address, this.#random))
  }

  get counts(): HistoryCounts {
    const [first, second] = this.#users.map(({ counts }) => counts) as [UserCounts, UserCounts]
    const names = Object.keys(first) as (keyof UserCounts)[]
    const sums = Object.fromEntries(names.map((name) => [name, first[name] + second[name]])) as UserCounts
    return { ...this.#own, ...sums }
  }

  async toTheEnd(worldOptions: AssistWorldOptions): Promise<string[]> {
    const world = this.#world
    for (const user of this.#users) await user.begin()
    for (const user of this.#users) await world.sync(user.address)
    if (this.#options.kills) {
      // All work is done by processes that can be killed.
      await this.#restart({ takesJobs: false })
      for (let n = 0; n < 2; n++) await this.#bear()
    } else await world.start()
    world.sim.faults.set({ seed: Math.floor(this.#random() * 2 ** 31), rules: WEATHER })
    const acts = this.#users.map((user) => [...user.acts(), ...this.#processActs(user)])
    for (let n = 0; n < this.#options.acts; n++) {
      const which = this.#random() < SECOND_SHARE ? 1 : 0
      const text = await chosen(acts[which]!, this.#random()).do()
      if (text !== undefined) this.told.push(`${this.#users[which]!.address.slice(0, 3)}: ${text}`)
      this.#own.acts += 1
      await this.#calls(this.#random() ** 2 * PAUSE_CALLS_MAX, PAUSE_MS_MAX)
    }
    world.sim.faults.set({ rules: [] })
    for (const child of this.#children.splice(0)) await child.kill()
    const overspent = worldOptions.dayCost === undefined ? [] : await this.#nextDay(worldOptions)
    if (this.#options.kills) await this.#restart({ takesJobs: true })
    // What waits for a model that was down need not be waited for.
    world.clock.aheadMs += LATER_MS
    for (const user of this.#users) {
      if (!(await world.tables.account(user.address))!.active) await user.switch()
    }
    for (let round = 0; round < SETTLE_ROUNDS; round++) {
      for (const { address } of this.#users) await world.sync(address, { full: round === 0 })
    }
    return [...overspent, ...(await this.#differences())]
  }

  async close(): Promise<void> {
    for (const child of this.#children) await child.kill()
  }

  #processActs(user: MailboxUser): Act[] {
    return [
      { share: 8, do: () => this.#die(user) },
      { share: 12, do: () => this.#rest(user.address) },
    ]
  }

  /** Until so many calls of Gmail or a model more are answered, or for so long. */
  async #calls(n: number, msMax: number): Promise<void> {
    const { log } = this.#world.sim
    const [enough, endMs] = [log.served + n, systemClock.monotonicMs() + msMax]
    while (log.served < enough && systemClock.monotonicMs() < endMs) await sleep(systemClock, LOOK_MS)
  }

  /** Until drafts are there, unless something keeps them. */
  async #rest(address: string): Promise<string> {
    await requestSync(this.#world.place, address)
    const endMs = systemClock.monotonicMs() + REST_MS_MAX
    while ((await this.#isBusy()) && systemClock.monotonicMs() < endMs) await sleep(systemClock, REST_LOOK_MS)
    return 'rests'
  }

  async #isBusy(): Promise<boolean> {
    const jobs = await this.#world.jobs()
    return jobs.some(({ state }) => state === 'pending' || state === 'claimed')
  }

  /** A process ends in the middle of whatever it does, and another one begins. */
  async #die(user: MailboxUser): Promise<string> {
    this.#own.deaths += 1
    user.arrive()
    await requestSync(this.#world.place, user.address)
    const calls = this.#random() * KILL_CALLS_MAX
    if (this.#options.kills) return this.#kill(calls)
    await this.#calls(calls, KILL_MS_MAX)
    const [, second] = this.#world.workers as [Worker, Worker]
    await second.stop()
    this.#world.workers.splice(1, 1)
    await this.#world.start()
    return 'a process ends'
  }

  /** After so many calls, one that has jobs; where none has any more, one that has none. */
  async #kill(calls: number): Promise<string> {
    const { log } = this.#world.sim
    const [enough, endMs] = [log.served + calls, systemClock.monotonicMs() + KILL_MS_MAX]
    let found = await this.#busiest()
    while (systemClock.monotonicMs() < endMs && (found.jobs === 0 || log.served < enough)) {
      if (found.jobs === 0 && !(await this.#isBusy())) break
      await sleep(systemClock, LOOK_MS)
      found = await this.#busiest()
    }
    const { victim, jobs } = found
    await victim.kill()
    this.#children = this.#children.filter((child) => child !== victim)
    if (jobs > 0) this.#own.deathsAtWork += 1
    await this.#bear()
    return `a process is killed that has ${jobs} jobs`
  }

  /** Of the children, by the jobs that they have claimed. */
  async #busiest(): Promise<{ victim: ChildWorker; jobs: number }> {
    const { ledger } = this.#world.worker
    const pids = new Map((await ledger.workers()).map(({ id, pid }) => [id, pid]))
    const claimed = await ledger.jobs({ state: 'claimed' })
    const jobsOf = ({ pid }: ChildWorker): number =>
      claimed.filter(({ owner }) => owner !== null && pids.get(owner) === pid).length
    const all = this.#children.map((victim) => ({ victim, jobs: jobsOf(victim) }))
    return all.toSorted((one, other) => other.jobs - one.jobs)[0]!
  }

  async #bear(): Promise<void> {
    this.#children.push(await ChildWorker.start(this.#world))
  }

  /** What was spent, by the model's own count; and then a day on which nothing is capped. */
  async #nextDay(worldOptions: AssistWorldOptions): Promise<string[]> {
    const world = this.#world
    const { inputTokens, outputTokens } = world.sim.models.counts
    const most = DAY_COST * 1e6 * this.#users.length
    const wrong: string[] = []
    const spent = inputTokens + outputTokens
    if (spent > most) wrong.push(`${spent} tokens were used of a model, ${most} were allowed`)
    for (const { address } of this.#users) {
      const day = await world.worker.calls.day(address)
      const micros = day.spent.costMicros + day.reserved.costMicros
      if (micros > DAY_COST * 1e6) wrong.push(`${address} has spent ${micros} millionths`)
      const refused = (await world.tables.account(address))!.problemCode === 'model-budget'
      if (refused) this.#own.capped += 1
    }
    delete worldOptions.dayCost
    world.clock.aheadMs += DAY_MS
    await this.#restart({ takesJobs: true })
    return wrong
  }

  async #restart(options: { takesJobs: boolean }): Promise<void> {
    const { workers } = this.#world
    for (const worker of workers.splice(0)) await worker.stop()
    await this.#world.start(options)
  }

  async #differences(): Promise<string[]> {
    const world = this.#world
    const wrong: string[] = []
    for (const user of this.#users) {
      const found = await checkMailbox(world, user, this.#own)
      wrong.push(...found.wrong)
      this.#own.drafts += found.drafts
      this.#own.agentRuns += found.agentRuns
      this.#own.agentSent += found.agentSent
    }
    wrong.push(...(await checkService(world, this.#users)), ...(await checkRest(world, this.#users)))
    this.#own.modelCalls = world.sim.models.counts.calls
    return wrong
  }
}

/** `at`: from 0 to 1. */
function chosen(acts: readonly Act[], at: number): Act {
  const all = acts.reduce((sum, { share }) => sum + share, 0)
  let before = 0
  for (const act of acts) {
    before += act.share
    if (at * all < before) return act
  }
  return acts[0]!
}
