/**
 * Runs a random history of a mailbox that its user and the assistant work on at once, with pushes that come twice or not
 * at all, a history that expires, calls whose answers are lost, and processes that end at any step; and compares the end
 * with what must be true:
 *
 * - every conversation with mail of somebody else in the inbox is sorted, for the first time exactly once
 * - there is at most one draft of the assistant in a conversation, and no draft that the user edited is lost
 * - each conversation has the one label that its record says, or none
 * - nothing was sent but by the user, and by agents to the one whom their profile names, once for each of their calls
 * - Gmail never had to refuse a call because of the quota
 * - every call of a model is on record; sorting and drafting ask it no oftener than something happened
 * - a mailbox that is settled stays settled, and asks no model
 *
 * The user acts in Gmail and on the pages: another category, undo, approve, rework with an instruction, an edit; archives
 * and throws away conversations or calls them spam, takes them back with their drafts, and switches the assistant off and on.
 *
 * Processes are workers in this one, or, with `kills`, real ones that are killed.
 */

import {
  approveDraft,
  correctCategory,
  editDraft,
  orderRework,
  reclassify,
  requestSync,
  switchAccount,
  type ThreadOf,
  undoEvent,
} from '../../src/apps/assistant/actions.ts'
import { callKey } from '../../src/apps/assistant/agent/run.ts'
import {
  ANN,
  type AssistWorld,
  BOB,
  edit,
  startAssistWorld,
  type Worker,
} from '../../src/apps/assistant/assist-world.suite.ts'
import { CATEGORIES, LABELS, type LabelRole } from '../../src/apps/assistant/contract.ts'
import { isSeen } from '../../src/apps/assistant/plan.ts'
import { DRAFT_KEY_HEADER, messageIdOf } from '../../src/apps/assistant/reply.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { asTidemarkError, UsageError } from '../../src/base/errors.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import type { SimOptions } from '../../src/sim/start.ts'
import { ChildWorker } from './child-worker.ts'

export type HistoryOptions = {
  database: 'sqlite' | 'postgres'
  acts: number
  kills: boolean
}

export type HistoryCounts = Record<
  | 'acts'
  | 'arrivals'
  | 'pushes'
  | 'deaths'
  | 'edits'
  | 'sent'
  | 'discarded'
  | 'labels'
  | 'drafts'
  | 'onPages'
  | 'agentRuns'
  | 'agentSent'
  | 'modelCalls',
  number
>

export type Ran = { failure: string | undefined; counts: HistoryCounts }

const WEATHER: FaultsInput['rules'] = [
  { do: 'reset', when: 'before', probability: 0.02, service: 'gmail' },
  { do: 'reset', when: 'after', probability: 0.04, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.02, service: 'gmail' },
  { do: 'error', status: 503, probability: 0.05, service: 'models' },
]
const EVE = 'eve@shop.example'
/** Whoever is not the user. */
const OTHERS = /^From: .*(?:bob@example\.net|eve@shop\.example)/m
/** Whom agents may send to. */
const DESK = 'desk@owner.example'
const ROUTING = [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile: 'desk' }]
const PROFILE = { name: 'desk', tools: ['create_draft', 'apply_label', 'escalate', 'send'], send_to: [DESK] }
/** What a minute allows: so much that it is felt, and so little that a whole history fits. */
const UNITS_PER_MINUTE = 30_000
const PAUSE_MS_MAX = 60
const REST_MS_MAX = 5_000
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
    settings: { modelWaitMs: 100, attempts: 10, fullScanMs: 1e12, unitsPerMinute: UNITS_PER_MINUTE },
    quota: { unitsPerMinute: UNITS_PER_MINUTE },
    accountSettings: { routing: ROUTING, profiles: [PROFILE] },
    models: { script: agentScript(seed) },
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
    onPages: 0,
    agentRuns: 0,
    agentSent: 0,
    modelCalls: 0,
  }
  readonly #world: AssistWorld
  readonly #random: Random
  readonly #options: HistoryOptions
  readonly #threads: string[] = []
  /** By draft: what the user wrote into it, and has neither sent nor thrown away nor given back to be reworked. */
  readonly #edited = new Map<string, { thread: string; text: string }>()
  /** Drafts of the assistant that the user has edited: nothing in them says so any more. */
  readonly #ours = new Set<string>()
  /** By thread: how often something happened to it that may be a reason to ask a model. */
  readonly #happened = new Map<string, number>()
  /** By thread: drafts that went to the trash with it, and what the user had written into them. */
  readonly #thrown = new Map<string, { id: string; messageId: string; text: string | undefined }[]>()
  /** Threads that got a draft with words of the user back: the assistant may have written another meanwhile. */
  readonly #gotBack = new Set<string>()
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
    if (!(await world.tables.account(ANN))!.active) await this.#switch()
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
      { share: 3, do: () => this.#begin() },
      { share: 2, do: () => this.#archive() },
      { share: 3, do: () => this.#throwAway() },
      { share: 2, do: () => this.#callSpam() },
      { share: 3, do: () => this.#takeBack() },
      { share: 2, do: () => this.#switch() },
      { share: 5, do: () => this.#onPage('move', (of) => this.#move(of)) },
      { share: 4, do: () => this.#onPage('undo', (of) => this.#undo(of)) },
      { share: 3, do: () => this.#onPage('approve', (of) => approveDraft(this.#world.place, of)) },
      { share: 4, do: () => this.#onPage('rework', (of) => this.#rework(of)) },
      { share: 4, do: () => this.#onPage('edit', (of) => this.#editOnPage(of)) },
      { share: 2, do: () => this.#onPage('sort again', (of) => reclassify(this.#world.place, of)) },
    ]
  }

  #arrive(): string {
    const text = this.#pick(TEXTS)!
    const isBulk = this.#random() < 0.2
    const isForAgent = this.#random() < 0.2
    const mail = this.#world.arrive({
      text,
      ...(isForAgent && { from: `Eve <${EVE}>` }),
      ...(isBulk && { headers: ['List-Id: <list.example.net>'] }),
    })
    this.#threads.push(mail.threadId)
    this.#note(mail.threadId)
    this.counts.arrivals += 1
    return `arrives ${mail.threadId}: ${text}`
  }

  #answer(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.#world.arrive({ threadId: thread, subject: 'Re: again', text: this.#pick(TEXTS)! })
    this.#note(thread)
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
    this.#note(thread)
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
    this.#note(thread)
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

  async #edit(): Promise<string | undefined> {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    const text = `my own words ${this.counts.edits}`
    if (draft.raw.includes(DRAFT_KEY_HEADER)) this.#ours.add(draft.id)
    edit(this.#world, draft, text)
    this.#note(draft.thread)
    // Where the user has asked for a rework, the assistant may replace what they write meanwhile.
    const isOrdered = (await this.#world.record(draft.thread))?.order != null
    if (isOrdered || this.#isGiven(draft.thread)) this.#edited.delete(draft.id)
    else this.#edited.set(draft.id, { thread: draft.thread, text })
    this.counts.edits += 1
    return `edits the draft ${draft.id} of ${draft.thread}: ${text}`
  }

  /** An answer of their own, beside whatever the assistant writes. */
  #begin(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const text = `an answer of mine ${this.counts.acts}`
    const raw = Buffer.from(`To: ${BOB}\r\nSubject: Re: x\r\n\r\n${text}`)
    const { id } = this.#world.mailbox().createDraft({ raw, threadId: thread })
    this.#edited.set(id, { thread, text })
    this.#note(thread)
    return `begins the draft ${id} in ${thread}`
  }

  /** What the page would refuse with a reason is refused here, too. */
  async #onPage(what: string, act: (of: ThreadOf) => Promise<unknown>): Promise<string | undefined> {
    const thread = this.#living()
    if (thread === undefined || !(await this.#world.record(thread))) return undefined
    this.#note(thread)
    try {
      await act({ account: ANN, thread })
    } catch (thrown) {
      // Gmail fails at times, and then the page says so.
      const isTold = thrown instanceof UsageError || asTidemarkError(thrown).kind === 'transient'
      if (!isTold) throw thrown
      return `on the page: ${what} ${thread}, refused: ${asTidemarkError(thrown).code}`
    }
    this.counts.onPages += 1
    return `on the page: ${what} ${thread}`
  }

  #move(of: ThreadOf): Promise<unknown> {
    return correctCategory(this.#world.place, of, this.#pick(CATEGORIES)!)
  }

  async #undo({ account, thread }: ThreadOf): Promise<unknown> {
    const events = await this.#world.tables.events(account, { thread })
    const event = this.#pick(events.filter(({ undo, undoneAtMs }) => undo && undoneAtMs === null))
    return event && undoEvent(this.#world.place, account, event.id)
  }

  #rework(of: ThreadOf): Promise<unknown> {
    this.#giveBack(of.thread)
    return orderRework(this.#world.place, of, 'Shorter, please.')
  }

  async #editOnPage(of: ThreadOf): Promise<unknown> {
    const text = `my own words on the page ${this.counts.acts}`
    const before = await this.#world.record(of.thread)
    const row = before?.draftKey == null ? undefined : await this.#world.tables.draft(ANN, before.draftKey)
    const draft = this.#world.drafts(of.thread).find(({ id }) => id === row?.draftId)
    // Words that are already theirs may only be replaced by themselves.
    const was = draft && this.#edited.get(draft.id)
    if (draft) this.#edited.delete(draft.id)
    if (draft?.raw.includes(DRAFT_KEY_HEADER)) this.#ours.add(draft.id)
    const edited = await editDraft(this.#world.place, of, text, new AbortController().signal).catch(
      (thrown) => {
        if (was && thrown instanceof UsageError) this.#edited.set(draft!.id, was)
        throw thrown
      },
    )
    const isOrdered = (await this.#world.record(of.thread))?.order != null
    if (!isOrdered && !this.#isGiven(of.thread))
      this.#edited.set(edited.draftId!, { thread: of.thread, text })
    return edited
  }

  #note(thread: string): void {
    this.#happened.set(thread, (this.#happened.get(thread) ?? 0) + 1)
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
    this.#note(draft.thread)
    this.#edited.delete(draft.id)
    this.counts.sent += 1
    return `sends the draft ${draft.id} of ${draft.thread}`
  }

  #discard(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    this.#world.mailbox().deleteDraft(draft.id)
    this.#note(draft.thread)
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

  #archive(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.#world.mailbox().modifyThread(thread, { remove: ['INBOX'] })
    this.#note(thread)
    return `archives ${thread}`
  }

  /** All of a conversation, with the drafts in it. */
  #throwAway(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const drafts = this.#world.drafts(thread)
    const thrown = drafts.map(({ id, messageId }) => ({ id, messageId, text: this.#edited.get(id)?.text }))
    this.#thrown.set(thread, [...(this.#thrown.get(thread) ?? []), ...thrown])
    this.#world.mailbox().trashThread(thread)
    this.#giveBack(thread)
    this.#note(thread)
    return `throws ${thread} away`
  }

  #callSpam(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const mailbox = this.#world.mailbox()
    for (const { id, labelIds } of mailbox.thread(thread)!.messages) {
      if (!labelIds.has('DRAFT')) mailbox.modify(id, { add: ['SPAM'] })
    }
    this.#note(thread)
    return `calls ${thread} spam`
  }

  /** Out of the trash and spam. Of drafts only what the user threw away: the assistant does so with what it has replaced. */
  async #takeBack(): Promise<string | undefined> {
    const mailbox = this.#world.mailbox()
    const all = this.#threads.flatMap((thread) => mailbox.thread(thread)?.messages ?? [])
    const isAway = (labels: ReadonlySet<string>): boolean => labels.has('TRASH') || labels.has('SPAM')
    const away = all.filter(({ labelIds }) => isAway(labelIds) && !labelIds.has('DRAFT'))
    const { threadId } = this.#pick(away) ?? {}
    if (threadId === undefined) return undefined
    for (const { id, threadId: of } of away) {
      if (of === threadId) mailbox.modify(id, { remove: ['TRASH', 'SPAM'] })
    }
    this.#note(threadId)
    const drafts = await this.#draftsBack(threadId)
    return `takes ${threadId} back, with the drafts [${drafts}]`
  }

  async #draftsBack(thread: string): Promise<string[]> {
    const mailbox = this.#world.mailbox()
    const isOrdered = (await this.#world.record(thread))?.order != null
    const thrown = this.#thrown.get(thread) ?? []
    this.#thrown.delete(thread)
    const back = thrown.filter(({ messageId }) => mailbox.get(messageId)?.labelIds.has('TRASH'))
    for (const { id, messageId, text } of back) {
      mailbox.untrash(messageId)
      if (text === undefined) continue
      this.#gotBack.add(thread)
      if (!isOrdered && !this.#isGiven(thread)) this.#edited.set(id, { thread, text })
    }
    return back.map(({ id }) => id)
  }

  /** Off, and at the next time on again. */
  async #switch(): Promise<string> {
    const { active } = (await this.#world.tables.account(ANN))!
    await switchAccount(this.#world.place, ANN, !active)
    // What was under way is asked for anew.
    if (!active) for (const thread of this.#threads) this.#note(thread)
    return `switches it ${active ? 'off' : 'on'}`
  }

  /** Until drafts are there, unless something keeps them. */
  async #rest(): Promise<string> {
    await requestSync(this.#world.place, ANN)
    await Promise.race([this.#world.settled(), sleep(systemClock, REST_MS_MAX)])
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
      if (ours > 1 && !this.#gotBack.has(thread)) wrong.push(`${thread} has ${ours} drafts of the assistant`)
      const shown = (found?.messages ?? []).filter(({ labelIds }) => isSeen({ labelIds: [...labelIds] }))
      const isInbox = shown.some(
        (message) => message.labelIds.has('INBOX') && OTHERS.test(message.raw().toString('utf8')),
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
      if (record?.status === 'agent') wrong.push(`${thread} is still with an agent`)
      if (record?.status === 'drafted' && found && ours === 0)
        wrong.push(`${thread} is drafted and has no draft`)
    }
    for (const [id, { thread, text }] of this.#edited) {
      const draft = world.drafts(thread).find((one) => one.id === id)
      if (!draft) wrong.push(`the draft ${id} of ${thread}, edited to “${text}”, is lost`)
      else if (!draft.text.includes(text)) wrong.push(`the draft ${id} of ${thread} no longer says “${text}”`)
    }
    wrong.push(...(await this.#wronglySent()), ...(await this.#wronglyAsked()))
    const { callsRefused } = world.gmail.quota.usage(ANN)
    if (callsRefused > 0) wrong.push(`Gmail refused ${callsRefused} calls because of the quota`)
    const { onTheirWay, inbox, classified, skipped } = await world.tables.balance(ANN)
    if (onTheirWay > 0) wrong.push(`${onTheirWay} messages are still on their way`)
    if (inbox !== classified + skipped + onTheirWay) wrong.push('the sum of the inbox does not hold')
    const failed = (await world.jobs()).filter(({ state }) => state === 'failed')
    for (const { kind, key, error } of failed) wrong.push(`${kind} ${key} failed: ${error}`)
    return wrong
  }

  async #wronglySent(): Promise<string[]> {
    const world = this.#world
    const wrong: string[] = []
    const { messages } = world.mailbox().list({ labelIds: ['SENT'], maxResults: 500 })
    const all = messages.map(({ id }) => world.mailbox().get(id)!.raw().toString('utf8'))
    const byAgents = all.filter((raw) => /^Auto-Submitted:/m.test(raw))
    this.counts.agentSent = byAgents.length
    const byUser = all.length - byAgents.length
    if (byUser > this.counts.sent) wrong.push(`${byUser} were sent, ${this.counts.sent} of them by the user`)
    if (world.called('messages.send') > 0) wrong.push('a message was sent that was no draft')
    for (const raw of byAgents) {
      const to = /^To: (.*)\r$/m.exec(raw)?.[1]
      if (to !== DESK || /^b?cc:/im.test(raw)) wrong.push(`an agent sent mail to ${to}`)
    }
    const ids = byAgents.map((raw) => /^Message-ID: (.*)\r$/m.exec(raw)?.[1])
    if (new Set(ids).size < ids.length) wrong.push('an agent sent the same mail twice')
    const runs = await world.worker.runs.runs({ accounts: [ANN] })
    this.counts.agentRuns = runs.length
    const sends = new Set<string>()
    const sentFor = new Map<string, number>()
    for (const run of runs) {
      const steps = await world.worker.runs.steps(run.id)
      for (const { number } of steps) {
        const id = messageIdOf(callKey(run.key, number), { name: '', address: ANN })
        if (ids.includes(`<${id}>`)) sentFor.set(run.message, (sentFor.get(run.message) ?? 0) + 1)
      }
      if (run.status === 'running') continue
      for (const { number, tool, outcome } of steps) {
        if (tool === 'send' && outcome === 'done') sends.add(`${run.id}/${number}`)
      }
    }
    for (const [message, n] of sentFor) if (n > 1) wrong.push(`${n} mails were sent because of ${message}`)
    if ([...sentFor.values()].reduce((sum, n) => sum + n, 0) < byAgents.length)
      wrong.push('mail was sent that no call of an agent wanted')
    if (sends.size > byAgents.length)
      wrong.push(`${sends.size} calls say that they sent, ${byAgents.length} did`)
    return wrong
  }

  /** A model is asked when something happened, or when a process ended before its answer was written down. */
  async #wronglyAsked(): Promise<string[]> {
    const { calls } = this.#world.worker
    const rows = await calls.costs({ days: 2 })
    const recorded = rows.reduce((sum, row) => sum + row.calls, 0)
    const served = this.#world.sim.models.counts.calls
    this.counts.modelCalls = served
    const wrong = served > recorded ? [`${served} calls of a model, ${recorded} on record`] : []
    for (const thread of new Set(this.#threads)) {
      const all = await calls.calls({ accounts: [ANN], threadId: thread, limit: 500 })
      const most = 1 + (this.#happened.get(thread) ?? 0) + this.counts.deaths
      for (const purpose of ['classify', 'draft'] as const) {
        const answered = all.filter((one) => one.purpose === purpose && one.outcome === 'ok').length
        if (answered > most) wrong.push(`${thread}: ${answered} × ${purpose}, and ${most} reasons for it`)
      }
    }
    return wrong
  }

  /** By their header, or, where the user has edited them, by their id. */
  async #oursAmong(thread: string, drafts: readonly { id: string; raw: string }[]): Promise<number> {
    const known = new Set((await this.#world.tables.drafts(ANN, thread)).map(({ draftId }) => draftId))
    return drafts.filter(
      ({ id, raw }) => known.has(id) || this.#ours.has(id) || raw.includes(DRAFT_KEY_HEADER),
    ).length
  }

  /** What is settled stays so. */
  async #restless(): Promise<string[]> {
    const world = this.#world
    const others = async (): Promise<number> =>
      (await world.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
    const [before, history] = [await others(), world.mailbox().historyId]
    const asked = world.sim.models.counts.calls
    await world.sync()
    await world.sync(ANN, { full: true })
    const [news, calls] = [(await others()) - before, world.sim.models.counts.calls - asked]
    if (news === 0 && calls === 0 && world.mailbox().historyId === history) return []
    const kinds = (await world.jobs()).map(({ kind, key, note }) => `${kind} ${key}: ${note}`)
    return [
      `it does not come to rest: ${news} new jobs, ${calls} calls of a model\n${kinds.slice(0, 6).join('\n')}`,
    ]
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
