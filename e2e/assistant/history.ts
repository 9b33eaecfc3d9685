/**
 * Runs a random history of a mailbox that its user and the assistant work on at once, with pushes that come twice or not
 * at all, a history that expires, calls whose answers are lost, and processes that end at any step; and compares the end
 * with what must be true:
 *
 * - every conversation with mail of somebody else in the inbox is sorted, for the first time exactly once
 * - there is at most one draft of the assistant in a conversation, and no draft that the user edited is lost
 * - each conversation has the one label that its record says, or none
 * - nothing was sent but by the user
 * - a mailbox that is settled stays settled
 *
 * Processes are workers in this one, or, with `kills`, real ones that are killed.
 */

import { requestSync } from '../../src/apps/assistant/actions.ts'
import {
  ANN,
  type AssistWorld,
  BOB,
  edit,
  startAssistWorld,
  type Worker,
} from '../../src/apps/assistant/assist-world.suite.ts'
import { LABELS, type LabelRole } from '../../src/apps/assistant/contract.ts'
import { DRAFT_KEY_HEADER } from '../../src/apps/assistant/reply.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import { ChildWorker } from './child-worker.ts'

export type HistoryOptions = {
  database: 'sqlite' | 'postgres'
  acts: number
  kills: boolean
}

export type HistoryCounts = Record<
  'acts' | 'arrivals' | 'pushes' | 'deaths' | 'edits' | 'sent' | 'discarded' | 'labels' | 'drafts',
  number
>

export type Ran = { failure: string | undefined; counts: HistoryCounts }

const WEATHER: FaultsInput['rules'] = [
  { do: 'reset', when: 'before', probability: 0.02, service: 'gmail' },
  { do: 'reset', when: 'after', probability: 0.04, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.02, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.05, service: 'models' },
]
const PAUSE_MS_MAX = 60
const REST_MS = 600
const SETTLE_ROUNDS = 3

const TEXTS = [
  'Are you free on Friday?',
  'Could you send me the plan?',
  'Your parcel has shipped.',
  'The invoice is attached, please pay until Monday.',
  'Please sign the contract.',
  'I will get back to you.',
]

export async function runAssistHistory(seed: number, options: HistoryOptions): Promise<Ran> {
  const world = await startAssistWorld({
    database: options.database,
    settings: { modelWaitMs: 100, attempts: 10, fullScanMs: 1e12 },
  })
  const run = new Run(world, seed, options)
  try {
    const wrong = await run.toTheEnd()
    if (wrong.length === 0) return { failure: undefined, counts: run.counts }
    const told = [...wrong.slice(0, 20), ...run.told.slice(-80).map((line) => `  ${line}`)]
    return { failure: `seed ${seed}: ${told.join('\n')}`, counts: run.counts }
  } finally {
    await run.close()
    await world.close()
  }
}

type Act = { share: number; do: () => Promise<string | undefined> | string | undefined }

class Run {
  readonly told: string[] = []
  readonly counts: HistoryCounts = {
    acts: 0,
    arrivals: 0,
    pushes: 0,
    deaths: 0,
    edits: 0,
    sent: 0,
    discarded: 0,
    labels: 0,
    drafts: 0,
  }
  readonly #world: AssistWorld
  readonly #random: Random
  readonly #options: HistoryOptions
  readonly #threads: string[] = []
  /** By draft: what the user wrote into it, and has neither sent nor thrown away nor given back to be reworked. */
  readonly #edited = new Map<string, { thread: string; text: string }>()
  #children: ChildWorker[] = []

  constructor(world: AssistWorld, seed: number, options: HistoryOptions) {
    this.#world = world
    this.#random = seededRandom(seed)
    this.#options = options
  }

  async toTheEnd(): Promise<string[]> {
    const world = this.#world
    await world.onboard()
    await world.settled()
    if (this.#options.kills) for (let n = 0; n < 2; n++) await this.#bear()
    else await world.start()
    world.sim.faults.set({ seed: Math.floor(this.#random() * 2 ** 31), rules: WEATHER })
    const acts = this.#acts()
    const shares = acts.reduce((sum, { share }) => sum + share, 0)
    for (let n = 0; n < this.#options.acts; n++) {
      const text = await chosen(acts, this.#random() * shares).do()
      if (text !== undefined) this.told.push(text)
      this.counts.acts += 1
      await sleep(systemClock, this.#random() ** 2 * PAUSE_MS_MAX)
    }
    world.sim.faults.set({ rules: [] })
    for (const child of this.#children.splice(0)) await child.kill()
    for (let round = 0; round < SETTLE_ROUNDS; round++) await world.sync(ANN, { full: round === 0 })
    return [...(await this.#differences()), ...(await this.#restless())]
  }

  async close(): Promise<void> {
    for (const child of this.#children) await child.kill()
  }

  #acts(): Act[] {
    return [
      { share: 20, do: () => this.#arrive() },
      { share: 8, do: () => this.#answer() },
      { share: 24, do: () => this.#push() },
      { share: 10, do: () => this.#label() },
      { share: 3, do: () => this.#unlabel() },
      { share: 12, do: () => this.#edit() },
      { share: 5, do: () => this.#send() },
      { share: 4, do: () => this.#discard() },
      { share: 3, do: () => this.#delete() },
      { share: 2, do: () => this.#expire() },
      { share: 6, do: () => this.#die() },
      { share: 12, do: () => this.#rest() },
    ]
  }

  #arrive(): string {
    const text = this.#pick(TEXTS)!
    const isBulk = this.#random() < 0.2
    const mail = this.#world.arrive({ text, ...(isBulk && { headers: ['List-Id: <list.example.net>'] }) })
    this.#threads.push(mail.threadId)
    this.counts.arrivals += 1
    return `arrives ${mail.threadId}: ${text}`
  }

  #answer(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.#world.arrive({ threadId: thread, subject: 'Re: again', text: this.#pick(TEXTS)! })
    this.counts.arrivals += 1
    return `another message in ${thread}`
  }

  /** Once, twice, or not at all; now and then with an id that is older than what was seen. */
  async #push(): Promise<string> {
    const historyId = String(this.#world.mailbox().historyId - (this.#random() < 0.2 ? 50n : 0n))
    const times = Math.floor(this.#random() * 3)
    for (let n = 0; n < times; n++) await requestSync(this.#world.place, ANN, { historyId })
    this.counts.pushes += times
    return `push × ${times}`
  }

  async #label(): Promise<string | undefined> {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const role = this.#pick(LABELS)!
    this.#world.mailbox().modifyThread(thread, { add: [await this.#world.labelId(role)] })
    // Both hand the draft over to the assistant.
    if (role === 'rework' || role === 'needs_response') this.#giveBack(thread)
    this.counts.labels += 1
    return `label ${role} on ${thread}`
  }

  async #unlabel(): Promise<string | undefined> {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const roles = await this.#world.labelsOn(thread)
    const role = this.#pick(roles)
    if (role === undefined) return undefined
    this.#world.mailbox().modifyThread(thread, { remove: [await this.#world.labelId(role)] })
    return `label ${role} off ${thread}`
  }

  #giveBack(thread: string): void {
    for (const [id, edited] of this.#edited) if (edited.thread === thread) this.#edited.delete(id)
  }

  #draftOfAny(): { thread: string; id: string; raw: string } | undefined {
    const all = this.#threads.flatMap((thread) =>
      this.#world.mailbox().thread(thread)
        ? this.#world.drafts(thread).map(({ id, raw }) => ({ thread, id, raw }))
        : [],
    )
    return this.#pick(all)
  }

  #edit(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    const text = `my own words ${this.counts.edits}`
    edit(this.#world, draft, text)
    // Where the user has asked for a rework, the assistant may replace what they write meanwhile.
    if (!this.#isGiven(draft.thread)) this.#edited.set(draft.id, { thread: draft.thread, text })
    this.counts.edits += 1
    return `edits the draft ${draft.id} of ${draft.thread}: ${text}`
  }

  #isGiven(thread: string): boolean {
    const given = this.#given(['rework', 'needs_response'])
    const messages = this.#world.mailbox().thread(thread)?.messages ?? []
    return messages.some(({ labelIds }) => given.some((id) => labelIds.has(id)))
  }

  #given(roles: readonly LabelRole[]): string[] {
    return roles.map((role) => this.#labelIds![role])
  }

  get #labelIds() {
    return this.#world.labelIds
  }

  #send(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    this.#world.mailbox().sendDraft(draft.id)
    this.#edited.delete(draft.id)
    this.counts.sent += 1
    return `sends the draft ${draft.id} of ${draft.thread}`
  }

  #discard(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    this.#world.mailbox().deleteDraft(draft.id)
    this.#edited.delete(draft.id)
    this.counts.discarded += 1
    return `discards the draft ${draft.id} of ${draft.thread}`
  }

  #delete(): string | undefined {
    const thread = this.#living()
    const message = this.#pick(this.#world.mailbox().thread(thread ?? '')?.messages ?? [])
    if (!message || message.labelIds.has('DRAFT')) return undefined
    this.#world.mailbox().delete(message.id)
    return `deletes ${message.id} of ${thread}`
  }

  /** Long enough for drafts to be there. */
  async #rest(): Promise<string> {
    await requestSync(this.#world.place, ANN)
    await sleep(systemClock, REST_MS)
    return 'rests'
  }

  #expire(): string {
    this.#world.mailbox().expireHistory()
    return 'history expires'
  }

  /** A process ends in the middle of whatever it does, and another one begins. */
  async #die(): Promise<string> {
    this.counts.deaths += 1
    if (this.#options.kills) {
      await this.#children.shift()?.kill()
      await this.#bear()
      return 'a process is killed'
    }
    const [, second] = this.#world.workers as [Worker, Worker]
    await second.stop()
    this.#world.workers.splice(1, 1)
    await this.#world.start()
    return 'a process ends'
  }

  async #bear(): Promise<void> {
    this.#children.push(await ChildWorker.start(this.#world))
  }

  async #differences(): Promise<string[]> {
    const world = this.#world
    const wrong: string[] = []
    for (const thread of new Set(this.#threads)) {
      const found = world.mailbox().thread(thread)
      const drafts = found ? world.drafts(thread) : []
      const record = await world.record(thread)
      const ours = await this.#oursAmong(thread, drafts)
      this.counts.drafts += ours
      if (ours > 1) wrong.push(`${thread} has ${ours} drafts of the assistant`)
      const shown = (found?.messages ?? []).filter(
        ({ labelIds }) => !labelIds.has('DRAFT') && !labelIds.has('TRASH'),
      )
      const isInbox = shown.some(
        (message) => message.labelIds.has('INBOX') && message.raw().toString('utf8').includes(BOB),
      )
      if (isInbox && (record?.category ?? null) === null)
        wrong.push(`${thread} is in the inbox and not sorted`)
      if (shown.length > 0 && record) {
        const [labels, wanted] = [await world.labelsOn(thread), record.label === null ? [] : [record.label]]
        if (labels.join() !== wanted.join() || !record.isApplied) {
          wrong.push(`${thread} has the labels [${labels}], its record (${record.status}) says [${wanted}]`)
        }
      }
      const firsts = (await world.eventsOf(thread)).filter((what) => what === 'classified').length
      if (firsts > 1) wrong.push(`${thread} was sorted for the first time ${firsts} times`)
      const isWaiting = record?.category === 'needs_response' && record.status === 'pending'
      if (isWaiting) wrong.push(`${thread} still waits for its draft: ${record.problem ?? 'no problem told'}`)
      if (record?.status === 'drafted' && found && ours === 0)
        wrong.push(`${thread} is drafted and has no draft`)
    }
    for (const [id, { thread, text }] of this.#edited) {
      const draft = world.drafts(thread).find((one) => one.id === id)
      if (!draft) wrong.push(`the draft ${id} of ${thread}, edited to “${text}”, is lost`)
      else if (!draft.text.includes(text)) wrong.push(`the draft ${id} of ${thread} no longer says “${text}”`)
    }
    const sent = world.mailbox().list({ labelIds: ['SENT'], maxResults: 500 }).messages.length
    if (sent > this.counts.sent) wrong.push(`${sent} were sent, ${this.counts.sent} of them by the user`)
    if (world.called('messages.send') + world.called('drafts.send') > 0) wrong.push('something was sent')
    const { onTheirWay, inbox, classified, skipped } = await world.tables.balance(ANN)
    if (onTheirWay > 0) wrong.push(`${onTheirWay} messages are still on their way`)
    if (inbox !== classified + skipped + onTheirWay) wrong.push('the sum of the inbox does not hold')
    const failed = (await world.jobs()).filter(({ state }) => state === 'failed')
    for (const { kind, key, error } of failed) wrong.push(`${kind} ${key} failed: ${error}`)
    return wrong
  }

  /** By their header, or, where the user has edited them, by their id. */
  async #oursAmong(thread: string, drafts: readonly { id: string; raw: string }[]): Promise<number> {
    const known = new Set((await this.#world.tables.drafts(ANN, thread)).map(({ draftId }) => draftId))
    return drafts.filter(({ id, raw }) => known.has(id) || raw.includes(DRAFT_KEY_HEADER)).length
  }

  /** What is settled stays so. */
  async #restless(): Promise<string[]> {
    const world = this.#world
    const others = async (): Promise<number> =>
      (await world.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
    const [before, history] = [await others(), world.mailbox().historyId]
    await world.sync()
    await world.sync(ANN, { full: true })
    const after = await others()
    if (after === before && world.mailbox().historyId === history) return []
    const kinds = (await world.jobs()).map(({ kind, key, note }) => `${kind} ${key}: ${note}`)
    return [`it does not come to rest: ${after - before} new jobs\n${kinds.slice(0, 6).join('\n')}`]
  }

  #living(): string | undefined {
    return this.#pick(this.#threads.filter((thread) => this.#world.mailbox().thread(thread)))
  }

  #pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.#random() * all.length)]
  }
}

function chosen(acts: readonly Act[], at: number): Act {
  let before = 0
  for (const act of acts) {
    before += act.share
    if (at < before) return act
  }
  return acts[0]!
}
