/**
 * Somebody at work on their mailbox, in Gmail and on the pages, while the assistant works on it, too; and what they
 * remember of it: which words are theirs, and how often something happened to a conversation.
 */

import {
  approveDraft,
  correctCategory,
  editDraft,
  orderDraft,
  orderRework,
  reclassify,
  requestSync,
  switchAccount,
  type ThreadOf,
  undoEvent,
} from '../../src/apps/assistant/actions.ts'
import { type AssistWorld, BOB, edit } from '../../src/apps/assistant/assist-world.suite.ts'
import { CATEGORIES, LABELS, type LabelRole } from '../../src/apps/assistant/contract.ts'
import { DRAFT_KEY_HEADER } from '../../src/apps/assistant/reply.ts'
import type { LabelIds } from '../../src/apps/assistant/store/accounts.ts'
import { asTidemarkError, UsageError } from '../../src/base/errors.ts'
import type { Random } from '../../src/base/random.ts'

const DONE_ACTS = ['arrivals', 'pushes', 'edits', 'sent', 'discarded', 'labels', 'onPages'] as const
export type UserCounts = Record<(typeof DONE_ACTS)[number], number>

export type Act = { share: number; do: () => Promise<string | undefined> | string | undefined }

export const EVE = 'eve@shop.example'

const TEXTS = [
  'Are you free on Friday?',
  'Could you send me the plan?',
  'Your parcel has shipped.',
  'The invoice is attached, please pay until Monday.',
  'Please sign the contract.',
  'I will get back to you.',
]

/** Of each mailbox, before anybody does anything. */
const FIRST_MAILS = 3

type Thrown = { id: string; messageId: string; text: string | undefined }

export class MailboxUser {
  readonly address: string
  readonly counts = Object.fromEntries(DONE_ACTS.map((name) => [name, 0])) as UserCounts
  readonly threads: string[] = []
  /** By draft: what the user wrote into it, and has neither sent nor thrown away nor given back to be reworked. */
  readonly edited = new Map<string, { thread: string; text: string }>()
  /** Drafts of the assistant that the user has edited: nothing in them says so any more. */
  readonly ours = new Set<string>()
  /** By thread: how often something happened to it that may be a reason to ask a model. */
  readonly happened = new Map<string, number>()
  /** Threads that got a draft with words of the user back: the assistant may have written another meanwhile. */
  readonly gotBack = new Set<string>()
  /** Threads that were taken out of the trash with all that was in it: only a history tells that from a single draft. */
  readonly #backWhole = new Set<string>()
  /** By thread: drafts that went to the trash with it, and what the user had written into them. */
  readonly #thrown = new Map<string, Thrown[]>()
  readonly #world: AssistWorld
  readonly #random: Random
  #labelIds!: LabelIds
  #words = 0
  #expiredTo = 0n

  constructor(world: AssistWorld, address: string, random: Random) {
    this.#world = world
    this.address = address
    this.#random = random
  }

  async begin(): Promise<void> {
    await this.#world.onboard(this.address)
    this.#labelIds = (await this.#world.tables.account(this.address))!.labels
    for (let n = 0; n < FIRST_MAILS; n++) this.arrive()
  }

  get mailbox() {
    return this.#world.mailbox(this.address)
  }

  drafts(thread: string) {
    return this.mailbox.thread(thread) ? this.#world.drafts(thread, this.address) : []
  }

  record(thread: string) {
    return this.#world.record(thread, this.address)
  }

  acts(): Act[] {
    return [
      { share: 20, do: () => this.arrive() },
      { share: 8, do: () => this.#answer() },
      { share: 24, do: () => this.#push() },
      { share: 10, do: () => this.#label() },
      { share: 4, do: () => this.#labelOne() },
      { share: 3, do: () => this.#unlabel() },
      { share: 3, do: () => this.#waver() },
      { share: 12, do: () => this.#edit() },
      { share: 5, do: () => this.#send() },
      { share: 4, do: () => this.#discard() },
      { share: 3, do: () => this.#delete() },
      { share: 2, do: () => this.#expire() },
      { share: 3, do: () => this.#begin() },
      { share: 3, do: () => this.#archive() },
      { share: 3, do: () => this.#wake() },
      { share: 4, do: () => this.#throwAway() },
      { share: 2, do: () => this.#callSpam() },
      { share: 3, do: () => this.#takeBack() },
      { share: 3, do: () => this.#takeBackWhole() },
      { share: 2, do: () => this.#mistake() },
      { share: 2, do: () => this.switch() },
      { share: 5, do: () => this.#onPage('move', (of) => this.#move(of)) },
      { share: 4, do: () => this.#onPage('undo', (of) => this.#undo(of)) },
      { share: 3, do: () => this.#onPage('approve', (of) => approveDraft(this.#world.place, of)) },
      { share: 4, do: () => this.#onPage('rework', (of) => this.#rework(of)) },
      { share: 2, do: () => this.#onPage('ask for a draft', (of) => orderDraft(this.#world.place, of)) },
      { share: 4, do: () => this.#onPage('edit', (of) => this.#editOnPage(of)) },
      { share: 2, do: () => this.#onPage('sort again', (of) => reclassify(this.#world.place, of)) },
      { share: 4, do: () => this.#sortAgainMeanwhile() },
    ]
  }

  arrive(): string {
    const text = this.#pick(TEXTS)!
    const isBulk = this.#random() < 0.2
    const isForAgent = this.#random() < 0.2
    const mail = this.#world.arrive(
      {
        text,
        ...(isForAgent && { from: `Eve <${EVE}>` }),
        ...(isBulk && { headers: ['List-Id: <list.example.net>'] }),
      },
      this.address,
    )
    this.threads.push(mail.threadId)
    this.#note(mail.threadId)
    this.counts.arrivals += 1
    return `arrives ${mail.threadId}: ${text}`
  }

  #answer(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.#world.arrive({ threadId: thread, subject: 'Re: again', text: this.#pick(TEXTS)! }, this.address)
    this.#note(thread)
    this.counts.arrivals += 1
    return `another message in ${thread}`
  }

  /** Once, twice, or not at all; now and then with an id that is older than what was seen. */
  async #push(): Promise<string> {
    const historyId = String(this.mailbox.historyId - (this.#random() < 0.2 ? 50n : 0n))
    const times = Math.floor(this.#random() * 3)
    for (let n = 0; n < times; n++) await requestSync(this.#world.place, this.address, { historyId })
    this.counts.pushes += times
    return `push × ${times}`
  }

  #label(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const role = this.#pick(LABELS)!
    this.mailbox.modifyThread(thread, { add: [this.#labelIds[role]] })
    this.#labelled(thread, role)
    return `label ${role} on ${thread}`
  }

  /** On one message alone, as programs and filters do. */
  #labelOne(): string | undefined {
    const thread = this.#living()
    const message = this.#pick(this.mailbox.thread(thread ?? '')?.messages ?? [])
    if (thread === undefined || !message || message.labelIds.has('DRAFT')) return undefined
    const role = this.#pick(LABELS)!
    this.mailbox.modify(message.id, { add: [this.#labelIds[role]] })
    this.#labelled(thread, role)
    return `label ${role} on ${message.id} of ${thread}`
  }

  #labelled(thread: string, role: LabelRole): void {
    this.#note(thread)
    // Both hand the draft over to the assistant.
    if (role === 'rework' || role === 'needs_response') this.#giveBack(thread)
    this.counts.labels += 1
  }

  async #unlabel(): Promise<string | undefined> {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const role = this.#pick(await this.#world.labelsOn(thread, this.address))
    if (role === undefined) return undefined
    this.mailbox.modifyThread(thread, { remove: [this.#labelIds[role]] })
    this.#note(thread)
    return `label ${role} off ${thread}`
  }

  /** On, off and another one, before anybody can have looked. */
  #waver(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const [first, second] = [this.#pick(LABELS)!, this.#pick(LABELS)!]
    this.mailbox.modifyThread(thread, { add: [this.#labelIds[first]] })
    this.mailbox.modifyThread(thread, { remove: [this.#labelIds[first]] })
    this.mailbox.modifyThread(thread, { add: [this.#labelIds[second]] })
    this.#labelled(thread, second)
    return `label ${first} on and off ${thread}, and ${second} on`
  }

  #giveBack(thread: string): void {
    for (const [id, edited] of this.edited) if (edited.thread === thread) this.edited.delete(id)
  }

  #draftOfAny(): { thread: string; id: string; raw: string } | undefined {
    const all = this.threads.flatMap((thread) =>
      this.drafts(thread).map(({ id, raw }) => ({ thread, id, raw })),
    )
    return this.#pick(all)
  }

  async #edit(): Promise<string | undefined> {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    const text = `my own words ${this.#words++}`
    if (draft.raw.includes(DRAFT_KEY_HEADER)) this.ours.add(draft.id)
    edit(this.#world, draft, text, this.address)
    this.#note(draft.thread)
    // Where the user has asked for a rework, the assistant may replace what they write meanwhile.
    if (await this.#isHandedOver(draft.thread)) this.edited.delete(draft.id)
    else this.edited.set(draft.id, { thread: draft.thread, text })
    this.counts.edits += 1
    return `edits the draft ${draft.id} of ${draft.thread}: ${text}`
  }

  /** An answer of their own, beside whatever the assistant writes. */
  #begin(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    const text = `an answer of mine ${this.#words++}`
    const raw = Buffer.from(`To: ${BOB}\r\nSubject: Re: x\r\n\r\n${text}`)
    const { id } = this.mailbox.createDraft({ raw, threadId: thread })
    this.edited.set(id, { thread, text })
    this.#note(thread)
    return `begins the draft ${id} in ${thread}`
  }

  /** What the page would refuse with a reason is refused here, too. */
  async #onPage(
    what: string,
    act: (of: ThreadOf) => Promise<unknown>,
    thread = this.#living(),
  ): Promise<string | undefined> {
    if (thread === undefined || !(await this.record(thread))) return undefined
    this.#note(thread)
    try {
      await act({ account: this.address, thread })
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

  /** While its draft is being made, where there is such a one. */
  async #sortAgainMeanwhile(): Promise<string | undefined> {
    const records = await Promise.all(this.threads.map((thread) => this.record(thread)))
    const waiting = records.filter((one) => one?.status === 'pending' && one.category === 'needs_response')
    const thread = this.#pick(waiting)?.thread
    if (thread === undefined) return undefined
    return this.#onPage('sort again', (of) => reclassify(this.#world.place, of), thread)
  }

  async #editOnPage(of: ThreadOf): Promise<unknown> {
    const text = `my own words on the page ${this.#words++}`
    const before = await this.record(of.thread)
    const row =
      before?.draftKey == null ? undefined : await this.#world.tables.draft(this.address, before.draftKey)
    const draft = this.drafts(of.thread).find(({ id }) => id === row?.draftId)
    // Words that are already theirs may only be replaced by themselves.
    const was = draft && this.edited.get(draft.id)
    if (draft) this.edited.delete(draft.id)
    if (draft?.raw.includes(DRAFT_KEY_HEADER)) this.ours.add(draft.id)
    const edited = await editDraft(this.#world.place, of, text, new AbortController().signal).catch(
      (thrown) => {
        if (was && thrown instanceof UsageError) this.edited.set(draft!.id, was)
        throw thrown
      },
    )
    if (!(await this.#isHandedOver(of.thread))) this.edited.set(edited.draftId!, { thread: of.thread, text })
    return edited
  }

  #note(thread: string): void {
    this.happened.set(thread, (this.happened.get(thread) ?? 0) + 1)
  }

  /** The assistant was asked for another draft, on the page or by a label. */
  async #isHandedOver(thread: string): Promise<boolean> {
    if ((await this.record(thread))?.order != null) return true
    const given = [this.#labelIds.rework, this.#labelIds.needs_response]
    const messages = this.mailbox.thread(thread)?.messages ?? []
    return messages.some(({ labelIds }) => given.some((id) => labelIds.has(id)))
  }

  #send(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    this.mailbox.sendDraft(draft.id)
    this.#note(draft.thread)
    this.edited.delete(draft.id)
    this.counts.sent += 1
    return `sends the draft ${draft.id} of ${draft.thread}`
  }

  #discard(): string | undefined {
    const draft = this.#draftOfAny()
    if (!draft) return undefined
    this.mailbox.deleteDraft(draft.id)
    this.#note(draft.thread)
    this.edited.delete(draft.id)
    this.counts.discarded += 1
    return `discards the draft ${draft.id} of ${draft.thread}`
  }

  #delete(): string | undefined {
    const thread = this.#living()
    const message = this.#pick(this.mailbox.thread(thread ?? '')?.messages ?? [])
    if (!message || message.labelIds.has('DRAFT')) return undefined
    this.mailbox.delete(message.id)
    return `deletes ${message.id} of ${thread}`
  }

  #archive(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.mailbox.modifyThread(thread, { remove: ['INBOX'] })
    this.#note(thread)
    return `archives ${thread}`
  }

  /** Back in the inbox, as what was put off for later. */
  #wake(): string | undefined {
    const isAside = (thread: string): boolean => {
      const messages = this.mailbox.thread(thread)?.messages ?? []
      return messages.length > 0 && messages.every(({ labelIds }) => !labelIds.has('INBOX'))
    }
    const thread = this.#pick(this.threads.filter(isAside))
    if (thread === undefined) return undefined
    for (const { id, labelIds } of this.mailbox.thread(thread)!.messages) {
      if (!labelIds.has('DRAFT') && !labelIds.has('SENT')) this.mailbox.modify(id, { add: ['INBOX'] })
    }
    this.#note(thread)
    return `brings ${thread} back to the inbox`
  }

  /** All of a conversation, with the drafts in it. */
  #throwAway(thread = this.#living()): string | undefined {
    if (thread === undefined) return undefined
    const thrown = this.drafts(thread).map(({ id, messageId }) => ({
      id,
      messageId,
      text: this.edited.get(id)?.text,
    }))
    this.#thrown.set(thread, [...(this.#thrown.get(thread) ?? []), ...thrown])
    this.mailbox.trashThread(thread)
    this.#giveBack(thread)
    this.#note(thread)
    return `throws ${thread} away`
  }

  #callSpam(): string | undefined {
    const thread = this.#living()
    if (thread === undefined) return undefined
    for (const { id, labelIds } of this.mailbox.thread(thread)!.messages) {
      if (!labelIds.has('DRAFT')) this.mailbox.modify(id, { add: ['SPAM'] })
    }
    this.#note(thread)
    return `calls ${thread} spam`
  }

  #putAway(labels: readonly string[]) {
    const all = this.threads.flatMap((thread) => this.mailbox.thread(thread)?.messages ?? [])
    return all.filter(({ labelIds }) => labels.some((label) => labelIds.has(label)) && !labelIds.has('DRAFT'))
  }

  /** Out of the trash and spam, one message after another. Of drafts only those that the user threw away. */
  async #takeBack(): Promise<string | undefined> {
    const away = this.#putAway(['TRASH', 'SPAM'])
    const { threadId } = this.#pick(away) ?? {}
    if (threadId === undefined) return undefined
    for (const { id, threadId: of } of away) {
      if (of === threadId) this.mailbox.modify(id, { remove: ['TRASH', 'SPAM'] })
    }
    this.#note(threadId)
    const thrown = this.#thrown.get(threadId) ?? []
    const back = thrown.filter(({ messageId }) => this.mailbox.get(messageId)?.labelIds.has('TRASH'))
    for (const { messageId } of back) this.mailbox.untrash(messageId)
    await this.#haveBack(threadId, back)
    return `takes ${threadId} back, with the drafts [${back.map(({ id }) => id)}]`
  }

  /** Out of the trash with all that is in it: also drafts that the assistant has replaced. */
  async #takeBackWhole(thread = this.#pick(this.#putAway(['TRASH']))?.threadId): Promise<string | undefined> {
    if (thread === undefined) return undefined
    const thrown = this.#thrown.get(thread) ?? []
    const inTrash = thrown.filter(({ messageId }) => this.mailbox.get(messageId)?.labelIds.has('TRASH'))
    const before = new Set(this.drafts(thread).map(({ id }) => id))
    this.mailbox.untrashThread(thread)
    this.#note(thread)
    await this.#haveBack(thread, inTrash)
    if (await this.#isScannedNext()) this.gotBack.add(thread)
    this.#backWhole.add(thread)
    const back = this.drafts(thread).filter(({ id }) => !before.has(id))
    if (back.some(({ id }) => this.ours.has(id))) this.gotBack.add(thread)
    return `takes all of ${thread} back, with the drafts [${back.map(({ id }) => id)}]`
  }

  /** Thrown away and taken back at once. */
  async #mistake(): Promise<string | undefined> {
    const thread = this.#living()
    if (thread === undefined) return undefined
    this.#throwAway(thread)
    await this.#takeBackWhole(thread)
    return `throws ${thread} away, and takes it back at once`
  }

  async #haveBack(thread: string, back: readonly Thrown[]): Promise<void> {
    this.#thrown.delete(thread)
    for (const { id, text } of back) {
      if (text === undefined) continue
      this.gotBack.add(thread)
      if (!(await this.#isHandedOver(thread))) this.edited.set(id, { thread, text })
    }
  }

  /** Off, and at the next time on again. */
  async switch(): Promise<string> {
    const { active } = (await this.#world.tables.account(this.address))!
    await switchAccount(this.#world.place, this.address, !active)
    if (!active) {
      // What was under way is asked for anew.
      for (const thread of this.threads) this.#note(thread)
      this.#scanned()
    }
    return `switches it ${active ? 'off' : 'on'}`
  }

  #expire(): string {
    this.mailbox.expireHistory()
    this.#expiredTo = this.mailbox.historyId
    this.#scanned()
    return 'history expires'
  }

  async #isScannedNext(): Promise<boolean> {
    const { cursor, fullWanted, active } = (await this.#world.tables.account(this.address))!
    return !active || fullWanted > 0 || BigInt(cursor ?? 0) < this.#expiredTo
  }

  /** A scan sees what is there, and not how it came. */
  #scanned(): void {
    for (const thread of this.#backWhole) this.gotBack.add(thread)
  }

  #living(): string | undefined {
    return this.#pick(this.threads.filter((thread) => this.mailbox.thread(thread)))
  }

  #pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.#random() * all.length)]
  }
}
