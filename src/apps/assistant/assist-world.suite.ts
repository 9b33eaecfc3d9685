/** The assistant in this process: a simulated Gmail and a simulated model over HTTP, and an engine on a real ledger. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { seededRandom } from '../../base/random.ts'
import type { Vault } from '../../base/vault.ts'
import { GMAIL_SCOPES } from '../../cloud/gmail/auth.ts'
import { accountKey } from '../../ledger/accounts.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { Mailbox, SimMessage } from '../../sim/gmail/mailbox.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import { type AccountSettings, SERVICE } from './account.ts'
import { type ActionPlace, requestSync } from './actions.ts'
import { type ChildOptions, type ModelOptions, ShiftedClock, Worker } from './assist-worker.suite.ts'
import type { Category, LabelRole } from './contract.ts'
import { LABELS } from './contract.ts'
import type { AssistKinds } from './kinds.ts'
import { onboard } from './onboard.ts'
import { isSeen } from './plan.ts'
import type { AssistSettings } from './settings.ts'
import type { LabelIds } from './store/accounts.ts'
import type { ThreadRecord } from './store/records.ts'
import type { AssistTables } from './store/tables.ts'

const UNTIL_MS = 60_000

/** Fails where it does not come to pass. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = systemClock.now() + UNTIL_MS
  while (!(await isSo())) {
    if (systemClock.now() > endMs) throw new Error(`It did not come to pass within ${UNTIL_MS} ms: ${isSo}`)
    await sleep(systemClock, 5)
  }
}

export const ANN = 'ann@example.com'
export const BOB = 'bob@example.net'
export const DATABASES = ['sqlite', 'postgres'] as const

export type AssistWorldOptions = ModelOptions & {
  users?: readonly string[]
  database?: (typeof DATABASES)[number]
  settings?: Partial<AssistSettings>
  accountSettings?: Partial<AccountSettings>
  sim?: Partial<SimOptions>
  models?: SimOptions['models']
  /** Of the simulated Gmail; none otherwise. */
  quota?: { unitsPerMinute: number }
}

export class AssistWorld {
  readonly sim: Sim
  readonly clock: ShiftedClock
  readonly home = mkdtempSync(join(tmpdir(), 'tidemark-assist-'))
  readonly settings: AssistSettings
  readonly ledgerUrl: string
  readonly options: AssistWorldOptions
  readonly workers: Worker[] = []
  onClose: () => Promise<void> = async () => {}
  vault!: Vault

  constructor(sim: Sim, clock: ShiftedClock, options: AssistWorldOptions, ledgerUrl: string | undefined) {
    this.sim = sim
    this.clock = clock
    this.options = options
    this.ledgerUrl = ledgerUrl ?? `sqlite:${join(this.home, 'ledger.db')}`
    this.settings = {
      apiUrl: sim.gmail.baseUrl,
      tokenUrl: sim.gmail.tokenUrl,
      unitsPerMinute: 1e9,
      priceOfGet: 20,
      requestsPerSecond: { start: 10_000, max: 10_000 },
      workers: { start: 16, max: 16 },
      fullScanMs: 1e12,
      scanDays: 10,
      backlogMax: 50,
      attempts: 3,
      modelWaitMs: 600_000,
      followUpDays: 3,
      pushTopic: undefined,
      ...options.settings,
    }
  }

  /** The first of its workers. */
  get worker(): Worker {
    return this.workers[0]!
  }

  get kinds(): AssistKinds {
    return this.worker.kinds
  }

  get tables(): AssistTables {
    return this.worker.tables
  }

  get place(): ActionPlace {
    return this.worker
  }

  get modelsUrl(): string {
    return this.sim.models.baseUrl
  }

  childOptions(): ChildOptions {
    const { settings, ledgerUrl, home, modelsUrl } = this
    const { provider, dayCost, prices, modelSeconds } = this.options
    const options = {
      ...(provider && { provider }),
      ...(dayCost !== undefined && { dayCost }),
      ...(prices && { prices }),
      ...(modelSeconds !== undefined && { modelSeconds }),
    }
    return { settings, ledgerUrl, home, modelsUrl, options }
  }

  get gmail(): Sim['gmail'] {
    return this.sim.gmail
  }

  mailbox(address = ANN): Mailbox {
    return this.gmail.mailbox(address)
  }

  /** A process more on the same ledger. */
  async start(options: { takesJobs?: boolean } = {}): Promise<Worker> {
    const worker = await Worker.open(this, options)
    this.workers.push(worker)
    return worker
  }

  async connect(address: string): Promise<void> {
    const { refreshToken } = this.gmail.issue(address, [GMAIL_SCOPES.modify])
    const secret = {
      kind: 'oauth',
      clientId: this.gmail.clientId,
      clientSecret: this.gmail.clientSecret,
      refreshToken,
      scopes: [GMAIL_SCOPES.modify],
      obtainedAtMs: this.clock.now(),
    }
    const row = { service: SERVICE, name: address }
    const sealed = this.vault.seal(accountKey(row), JSON.stringify(secret))
    await this.worker.accounts.add({ ...row, settings: {}, sealed })
  }

  /** Of the first mailbox, once it is onboarded. */
  labelIds: LabelIds | undefined

  async onboard(address = ANN): Promise<void> {
    const { labels } = await onboard(
      { ...this.worker, vault: this.vault },
      address,
      this.options.accountSettings ?? {},
    )
    this.labelIds = labels as LabelIds
  }

  /** Looks, and waits until nothing is left to do. */
  async sync(address = ANN, wish: { full?: boolean } = {}): Promise<void> {
    await requestSync(this.place, address, wish)
    await this.settled()
  }

  async settled(): Promise<void> {
    await this.worker.engine.drained()
  }

  /** Mail of somebody, in a conversation of its own unless it answers one. */
  arrive(mail: Arrival = {}, address = ANN): SimMessage {
    const raw = letter({ to: address, ...mail })
    return this.gmail.mutations(address).arrive(
      {
        raw,
        internalMs: mail.atMs ?? this.clock.now(),
        ...(mail.threadId !== undefined && { threadId: mail.threadId }),
        ...(mail.labelIds && { labelIds: mail.labelIds }),
      },
      seededRandom(1),
    )
  }

  async record(thread: string, address = ANN): Promise<ThreadRecord | undefined> {
    return this.tables.record(address, thread)
  }

  /** The assistant's labels on what is not a draft, in the trash or spam. */
  async labelsOn(thread: string, address = ANN): Promise<LabelRole[]> {
    const { labels } = (await this.tables.account(address))!
    const messages = this.mailbox(address).thread(thread)?.messages ?? []
    const shown = messages.filter(({ labelIds }) => isSeen({ labelIds: [...labelIds] }))
    return LABELS.filter((role) => shown.some(({ labelIds }) => labelIds.has(labels[role])))
  }

  async labelId(role: LabelRole, address = ANN): Promise<string> {
    return (await this.tables.account(address))!.labels[role]
  }

  /** Living drafts of a conversation, as texts. */
  drafts(thread: string, address = ANN): { id: string; messageId: string; text: string; raw: string }[] {
    const mailbox = this.mailbox(address)
    const all = mailbox
      .listDrafts({ maxResults: 500 })
      .drafts.filter(({ message }) => message.threadId === thread)
    return all
      .filter(({ message }) => !mailbox.get(message.id)!.labelIds.has('TRASH'))
      .map(({ id, message }) => {
        const raw = mailbox.get(message.id)!.raw().toString('utf8')
        return { id, messageId: message.id, raw, text: bodyOf(raw) }
      })
  }

  async jobs(kind?: string): Promise<JobRow[]> {
    const rows = await this.worker.ledger.jobs({ limit: 1_000, ...(kind !== undefined && { kind }) })
    return rows.filter((row) => row.kind.startsWith('assist.'))
  }

  async eventsOf(thread: string, address = ANN): Promise<string[]> {
    return (await this.tables.events(address, { thread })).map(({ what }) => what).reverse()
  }

  /** How often Gmail answered calls of this method. */
  called(method: string): number {
    const counts = this.sim.log.counts().requests[method] ?? {}
    return Object.values(counts).reduce((sum, n) => sum + n, 0)
  }

  async close(): Promise<void> {
    for (const worker of this.workers) await worker.stop()
    await this.onClose()
    await this.sim.close()
    rmSync(this.home, { recursive: true, force: true })
  }
}

export async function startAssistWorld(options: AssistWorldOptions = {}): Promise<AssistWorld> {
  const { users = [ANN], database } = options
  const own = database === 'postgres' ? await freshDatabase() : undefined
  const clock = new ShiftedClock()
  const sim = await startSim({
    clock,
    ...options.sim,
    gmail: {
      accounts: users.map((address) => ({ address, messages: 0 })),
      quota: options.quota ?? { unitsPerMinute: null },
    },
    models: options.models ?? {},
  })
  const world = new AssistWorld(sim, clock, options, own?.url)
  world.onClose = async () => own?.drop()
  await world.start()
  for (const user of users) await world.connect(user)
  return world
}

export type Arrival = {
  from?: string
  to?: string
  subject?: string
  text?: string
  headers?: readonly string[]
  threadId?: string
  labelIds?: readonly string[]
  atMs?: number
}

let letters = 0

export function letter({ from = `Bob <${BOB}>`, to = ANN, subject, text, headers = [] }: Arrival): Buffer {
  const n = ++letters
  return Buffer.from(
    [
      `From: ${from}`,
      `To: ${to}`,
      `Subject: ${subject ?? `A question ${n}`}`,
      `Message-ID: <letter-${n}@example.net>`,
      'Date: Tue, 17 Nov 2026 10:00:00 +0000',
      ...headers,
      'Content-Type: text/plain; charset=utf-8',
      '',
      text ?? 'Could you tell me when you have time next week?',
    ].join('\r\n'),
  )
}

/** What the model is made to say of mail: by a word in its subject. */
export function bySubject(
  words: Readonly<Record<string, Category>>,
): NonNullable<SimOptions['models']>['script'] {
  return ({ messages, json }) => {
    void json
    const prompt = messages.map(({ text }) => text).join('\n')
    if (!prompt.includes('message to sort')) return undefined
    const found = Object.entries(words).find(([word]) => prompt.includes(word))
    if (!found) return undefined
    return { json: { category: found[1], confidence: 0.9, reasoning: 'as told', language: 'en', style: '' } }
  }
}

export function bodyOf(raw: string): string {
  const [head = '', ...rest] = raw.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  return /content-transfer-encoding: base64/i.test(head) ? Buffer.from(body, 'base64').toString('utf8') : body
}

/** As the user does in Gmail: the draft keeps its id, its message is another one. */
export function edit(w: AssistWorld, draft: { id: string; raw: string }, text: string, address = ANN): void {
  const [head = ''] = draft.raw.split('\r\n\r\n')
  const kept = head
    .split('\r\n')
    .filter((line) => !/^(?:content-transfer-encoding|x-tidemark-draft)/i.test(line))
  w.mailbox(address).updateDraft(draft.id, { raw: Buffer.from(`${kept.join('\r\n')}\r\n\r\n${text}`) })
}
