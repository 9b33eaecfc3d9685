/** What the assistant knows, as it is read. */
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { Category, DecidedBy, LabelRole, ThreadStatus } from '../contract.ts'
import type { AccountRow, LabelIds, LabelNames } from './accounts.ts'
import type { Actor, DraftRow, DraftState, MessageState, ThreadRecord, Undo } from './records.ts'
import { textsFrom } from './rows.ts'
import type { Example, Rule } from './rules.ts'
import { ASSIST_TABLES, assistSchema } from './schema.ts'
import { type RawSend, type SendRow, sendOf } from './sends.ts'

export type EventRow = {
  id: number
  account: string
  thread: string
  atMs: number
  what: string
  why: string
  by: Actor
  undo: Undo | null
  undoneAtMs: number | null
}

/** `inbox` = classified + skipped + onTheirWay */
export type Balance = {
  inbox: number
  classified: number
  skipped: number
  onTheirWay: number
  /** Of those on their way: what waits for the user to agree to its cost. */
  held: number
}

export type ThreadFilter = {
  accounts: readonly string[]
  status?: ThreadStatus | undefined
  category?: Category | undefined
  /** Of an earlier page: newest first. */
  before?: { updatedAtMs: number; thread: string } | undefined
  limit: number
}

/** Sorted, and not in the trash or spam with its label (unseenLabel). */
const SHOWN = `category IS NOT NULL AND NOT (applied = 1 AND label IS NULL AND label_was IS NOT NULL)`
const RULES_MAX = 1_000
const EXAMPLES_MAX = 2_000
const EVENTS_MAX = 500
const DRAFTS_MAX = 100

export class AssistTables {
  readonly ledger: Ledger

  private constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  static async open(ledger: Ledger): Promise<AssistTables> {
    await ledger.migrateApp(ASSIST_TABLES, assistSchema(ledger.dialect))
    return new AssistTables(ledger)
  }

  async accounts(): Promise<AccountRow[]> {
    const rows = await this.#all<RawAccount>(`SELECT * FROM assist_accounts ORDER BY account`)
    return rows.map(accountOf)
  }

  async account(account: string): Promise<AccountRow | undefined> {
    const row = await this.#get<RawAccount>(`SELECT * FROM assist_accounts WHERE account = ?`, [account])
    return row && accountOf(row)
  }

  async record(account: string, thread: string): Promise<ThreadRecord | undefined> {
    const row = await this.#get<RawRecord>(`SELECT * FROM assist_threads WHERE account = ? AND thread = ?`, [
      account,
      thread,
    ])
    return row && recordOf(row)
  }

  async records(account: string, threads: readonly string[]): Promise<ReadonlyMap<string, ThreadRecord>> {
    if (threads.length === 0) return new Map()
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<RawRecord>(`SELECT * FROM assist_threads WHERE account = ? AND thread IN (${textsFrom(tx)})`, [
        account,
        JSON.stringify(threads),
      ]),
    )
    return new Map(rows.map((row) => [row.thread, recordOf(row)]))
  }

  /** Those that are classified and not thrown away, newest change first. */
  async list(filter: ThreadFilter): Promise<ThreadRecord[]> {
    const { accounts, status, category, before, limit } = filter
    const where = [SHOWN]
    const params: Value[] = [JSON.stringify(accounts)]
    if (status !== undefined) {
      where.push(`status = ?`)
      params.push(status)
    }
    if (category !== undefined) {
      where.push(`category = ?`)
      params.push(category)
    }
    if (before) {
      where.push(`(updated_at < ? OR (updated_at = ? AND thread > ?))`)
      params.push(before.updatedAtMs, before.updatedAtMs, before.thread)
    }
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<RawRecord>(
        `SELECT * FROM assist_threads WHERE account IN (${textsFrom(tx)}) AND ${where.join(' AND ')}
         ORDER BY updated_at DESC, thread LIMIT ${Math.trunc(limit)}`,
        params,
      ),
    )
    return rows.map(recordOf)
  }

  /** In the order of threads, for whoever looks at all of them a page at a time. */
  async page(
    account: string,
    { status, after, limit }: { status?: ThreadStatus; after: string; limit: number },
  ): Promise<ThreadRecord[]> {
    const rows = await this.#all<RawRecord>(
      `SELECT * FROM assist_threads WHERE account = ? AND thread > ? AND category IS NOT NULL
       ${status === undefined ? '' : 'AND status = ?'} ORDER BY thread LIMIT ${Math.trunc(limit)}`,
      status === undefined ? [account, after] : [account, after, status],
    )
    return rows.map(recordOf)
  }

  /** Sent mail whose answer is overdue. */
  async followUps(account: string, nowMs: number, limit: number): Promise<ThreadRecord[]> {
    const rows = await this.#all<RawRecord>(
      `SELECT * FROM assist_threads WHERE account = ? AND follow_up_at IS NOT NULL AND follow_up_at <= ?
       ORDER BY follow_up_at, thread LIMIT ${Math.trunc(limit)}`,
      [account, nowMs],
    )
    return rows.map(recordOf)
  }

  /** How many threads of those that are listed have each status and category. */
  async counts(account: string): Promise<{ status: ThreadStatus; category: Category; count: number }[]> {
    const rows = await this.#all<{ status: ThreadStatus; category: Category; n: number }>(
      `SELECT status, category, COUNT(*) AS n FROM assist_threads WHERE account = ? AND ${SHOWN}
       GROUP BY status, category ORDER BY status, category`,
      [account],
    )
    return rows.map(({ status, category, n }) => ({ status, category, count: Number(n) }))
  }

  /** Counted from rows: each message has exactly one state, so the sides of the sum cannot differ. */
  async balance(account: string): Promise<Balance> {
    const rows = await this.#all<{ state: MessageState; n: number }>(
      `SELECT state, COUNT(*) AS n FROM assist_messages WHERE account = ? AND state <> 'gone' GROUP BY state`,
      [account],
    )
    const of = (state: MessageState): number => Number(rows.find((row) => row.state === state)?.n ?? 0)
    const [classified, skipped, held] = [of('classified'), of('skipped'), of('held')]
    const onTheirWay = of('waiting') + held
    return { inbox: classified + skipped + onTheirWay, classified, skipped, onTheirWay, held }
  }

  /** Messages of a thread that are on their way. */
  async waiting(account: string, thread: string): Promise<string[]> {
    const rows = await this.#all<{ message: string }>(
      `SELECT message FROM assist_messages WHERE account = ? AND thread = ? AND state IN ('waiting', 'held')`,
      [account, thread],
    )
    // Sorted here: for an order by message SQLite would read all messages of the mailbox.
    return rows.map(({ message }) => message).sort()
  }

  /** How much is on its way, or waits for a yes. */
  async backlog(account: string, which: 'held' | 'all'): Promise<FoundBacklog> {
    const states = which === 'held' ? `= 'held'` : `IN ('waiting', 'held')`
    const row = await this.#get<{ mails: number; threads: number; seen_at: number; synced_at: number }>(
      `SELECT COUNT(*) AS mails, COUNT(DISTINCT thread) AS threads,
         MAX(CASE WHEN state = 'held' THEN seen_at END) AS seen_at,
         (SELECT synced_at FROM assist_accounts WHERE account = ?) AS synced_at
       FROM assist_messages
       WHERE account = ? AND state ${states}`,
      [account, account],
    )
    return {
      mails: Number(row?.mails ?? 0),
      threads: Number(row?.threads ?? 0),
      drafts: await this.heldDrafts(account),
      // What was held after the last look had ended is of one that has not.
      isBeingCounted: Number(row?.seen_at ?? -1) > Number(row?.synced_at ?? -1),
    }
  }

  /** What keeps drafts from being written that are wanted; null where nothing does. */
  async draftProblem(account: string): Promise<{ code: string; text: string } | null> {
    const row = await this.#get<{ code: string; problem: string | null }>(
      `SELECT problem_code AS code, problem FROM assist_threads
       WHERE account = ? AND status = 'pending' AND problem_code IN ('model-down', 'model-budget', 'model-unusable')
       ORDER BY updated_at DESC LIMIT 1`,
      [account],
    )
    return row ? { code: row.code, text: row.problem ?? '' } : null
  }

  /** Drafts that wait for a yes to their cost. */
  async heldDrafts(account: string): Promise<number> {
    const row = await this.#get<{ n: number }>(
      `SELECT COUNT(*) AS n FROM assist_threads WHERE account = ? AND status = 'pending' AND problem_code = 'held'`,
      [account],
    )
    return Number(row?.n ?? 0)
  }

  /** Threads with messages on their way, a page in the order of threads. */
  async waitingThreads(account: string, after: string, limit: number): Promise<string[]> {
    const rows = await this.#all<{ thread: string }>(
      `SELECT DISTINCT thread FROM assist_messages WHERE account = ? AND state = 'waiting' AND thread > ?
       ORDER BY thread LIMIT ${Math.trunc(limit)}`,
      [account, after],
    )
    return rows.map(({ thread }) => thread)
  }

  /** Threads that an agent has yet to see to, a page in their order. */
  async agentThreads(account: string, after: string, limit: number): Promise<string[]> {
    const rows = await this.#all<{ thread: string }>(
      `SELECT thread FROM assist_threads WHERE account = ? AND status = 'agent' AND thread > ?
       ORDER BY thread LIMIT ${Math.trunc(limit)}`,
      [account, after],
    )
    return rows.map(({ thread }) => thread)
  }

  async messages(
    account: string,
    thread: string,
  ): Promise<{ message: string; state: MessageState; reason: string; seenAtMs: number }[]> {
    const rows = await this.#all<{ message: string; state: MessageState; reason: string; seen_at: number }>(
      `SELECT message, state, reason, seen_at FROM assist_messages WHERE account = ? AND thread = ?`,
      [account, thread],
    )
    return rows.map(({ seen_at, ...row }) => ({ ...row, seenAtMs: Number(seen_at) }))
  }

  /** Of these, which are known, and their threads. */
  async knownMessages(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<{ message: string; thread: string }>(
        `SELECT message, thread FROM assist_messages WHERE account = ? AND message IN (${textsFrom(tx)})`,
        [account, JSON.stringify(ids)],
      ),
    )
    return new Map(rows.map(({ message, thread }) => [message, thread]))
  }

  /** All that were ever meant for a thread, newest last. */
  async drafts(account: string, thread: string): Promise<DraftRow[]> {
    const rows = await this.#all<RawDraft>(
      `SELECT * FROM assist_drafts WHERE account = ? AND thread = ? ORDER BY made_at, draft_key LIMIT ${DRAFTS_MAX}`,
      [account, thread],
    )
    return rows.map(draftOf)
  }

  async draft(account: string, key: string): Promise<DraftRow | undefined> {
    const row = await this.#get<RawDraft>(`SELECT * FROM assist_drafts WHERE account = ? AND draft_key = ?`, [
      account,
      key,
    ])
    return row && draftOf(row)
  }

  async send(account: string, key: string): Promise<SendRow | undefined> {
    const row = await this.#get<RawSend>(`SELECT * FROM assist_sends WHERE account = ? AND send_key = ?`, [
      account,
      key,
    ])
    return row && sendOf(row)
  }

  /** Those that should be in Gmail now. */
  async openDrafts(account: string): Promise<DraftRow[]> {
    const rows = await this.#all<RawDraft>(
      `SELECT * FROM assist_drafts WHERE account = ? AND state IN ('intended', 'live', 'edited') ORDER BY draft_key`,
      [account],
    )
    return rows.map(draftOf)
  }

  /** By the messages of drafts that are, or were, ours, or only those that the user threw away: their threads. */
  async draftThreads(
    account: string,
    messages: readonly string[],
    which: 'all' | 'gone' = 'all',
  ): Promise<ReadonlyMap<string, string>> {
    if (messages.length === 0) return new Map()
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<{ message: string; thread: string }>(
        `SELECT message, thread FROM assist_drafts WHERE account = ? AND message IN (${textsFrom(tx)})${which === 'gone' ? ` AND state = 'gone' AND guessed = 0` : ''}`,
        [account, JSON.stringify(messages)],
      ),
    )
    return new Map(rows.map(({ message, thread }) => [message, thread]))
  }

  /** Of a thread, or of all of them, newest first. */
  async events(
    account: string,
    { thread, sinceMs = 0, limit = EVENTS_MAX }: { thread?: string; sinceMs?: number; limit?: number },
  ): Promise<EventRow[]> {
    const rows = await this.#all<RawEvent>(
      `SELECT * FROM assist_events WHERE account = ? AND at >= ? ${thread === undefined ? '' : 'AND thread = ?'}
       ORDER BY id DESC LIMIT ${Math.min(EVENTS_MAX, Math.trunc(limit))}`,
      thread === undefined ? [account, sinceMs] : [account, sinceMs, thread],
    )
    return rows.map(eventOf)
  }

  async event(id: number): Promise<EventRow | undefined> {
    const row = await this.#get<RawEvent>(`SELECT * FROM assist_events WHERE id = ?`, [id])
    return row && eventOf(row)
  }

  async eventCounts(account: string, sinceMs: number): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#all<{ what: string; n: number }>(
      `SELECT what, COUNT(*) AS n FROM assist_events WHERE account = ? AND at >= ? GROUP BY what`,
      [account, sinceMs],
    )
    return new Map(rows.map(({ what, n }) => [what, Number(n)]))
  }

  async rules(account: string): Promise<Rule[]> {
    const rows = await this.#all<RawRule>(
      `SELECT * FROM assist_rules WHERE account = ? ORDER BY id LIMIT ${RULES_MAX}`,
      [account],
    )
    return rows.map(ruleOf)
  }

  async rule(account: string, id: number): Promise<Rule | undefined> {
    const row = await this.#get<RawRule>(`SELECT * FROM assist_rules WHERE account = ? AND id = ?`, [
      account,
      id,
    ])
    return row && ruleOf(row)
  }

  async examples(account: string): Promise<Example[]> {
    const rows = await this.#all<RawExample>(
      `SELECT * FROM assist_examples WHERE account = ? ORDER BY id DESC LIMIT ${EXAMPLES_MAX}`,
      [account],
    )
    return rows.map(({ id, account: of, thread, sample, category, enabled, created_at }) => ({
      id: Number(id),
      account: of,
      thread,
      text: sample,
      category,
      enabled: Boolean(Number(enabled)),
      createdAtMs: Number(created_at),
    }))
  }

  #get<T extends object>(sql: string, params: readonly Value[] = []): Promise<T | undefined> {
    return this.ledger.driver.read((tx: Tx) => tx.get<T>(sql, params))
  }

  #all<T extends object>(sql: string, params: readonly Value[] = []): Promise<T[]> {
    return this.ledger.driver.read((tx: Tx) => tx.all<T>(sql, params))
  }
}

/** Whether some rule, on or off, is about just this sender. */
export async function ruleFor(tx: Tx, account: string, match: Rule['match']): Promise<boolean> {
  const row = await tx.get(`SELECT id FROM assist_rules WHERE account = ? AND matches = ?`, [
    account,
    JSON.stringify(match),
  ])
  return row !== undefined
}

type RawAccount = Record<'active' | 'sync_wanted' | 'full_wanted' | 'onboarded_at', number> &
  Record<'account' | 'settings' | 'labels', string> &
  Record<'cursor' | 'pushed_history' | 'watch_problem' | 'problem' | 'problem_code', string | null> &
  Record<'label_names' | 'refused_by', string | null> &
  Record<'pushed_at' | 'mail_at' | 'synced_at' | 'full_at' | 'watch_expires_at' | 'briefed_at', number | null>

function accountOf(row: RawAccount): AccountRow {
  return {
    account: row.account,
    active: Boolean(Number(row.active)),
    settings: row.settings,
    labels: JSON.parse(row.labels) as LabelIds,
    labelNames: row.label_names === null ? null : (JSON.parse(row.label_names) as LabelNames),
    cursor: row.cursor,
    syncWanted: Number(row.sync_wanted),
    fullWanted: Number(row.full_wanted),
    pushedHistory: row.pushed_history,
    pushedAtMs: numberOf(row.pushed_at),
    mailAtMs: numberOf(row.mail_at),
    syncedAtMs: numberOf(row.synced_at),
    fullAtMs: numberOf(row.full_at),
    watchExpiresAtMs: numberOf(row.watch_expires_at),
    watchProblem: row.watch_problem,
    problem: row.problem,
    problemCode: row.problem_code,
    refusedBy: row.refused_by,
    briefedAtMs: numberOf(row.briefed_at),
    onboardedAtMs: Number(row.onboarded_at),
  }
}

type RawRecord = Record<'version' | 'confidence' | 'is_automated' | 'last_at' | 'reworks', number> &
  Record<'applied' | 'forced', number> &
  Record<'created_at' | 'updated_at', number> &
  Record<'account' | 'thread' | 'reasoning' | 'language' | 'style' | 'subject' | 'sender', string> &
  Record<'sources' | 'removed', string> &
  Record<'answered' | 'draft_key' | 'wish' | 'problem' | 'problem_code', string | null> &
  Record<'follow_up_at' | 'classified_at', number | null> & {
    status: ThreadStatus
    category: Category | null
    decided_by: DecidedBy | null
    label: LabelRole | null
    label_was: LabelRole | null
  }

function recordOf(row: RawRecord): ThreadRecord {
  return {
    account: row.account,
    thread: row.thread,
    version: Number(row.version),
    status: row.status,
    category: row.category,
    confidence: Number(row.confidence),
    reasoning: row.reasoning,
    language: row.language,
    style: row.style,
    by: row.decided_by,
    isAutomated: Boolean(Number(row.is_automated)),
    label: row.label,
    labelWas: row.label_was,
    isApplied: Boolean(Number(row.applied)),
    isForced: Boolean(Number(row.forced)),
    subject: row.subject,
    sender: row.sender,
    answered: row.answered,
    lastAtMs: Number(row.last_at),
    reworks: Number(row.reworks),
    draftKey: row.draft_key,
    order: row.wish === null ? null : (JSON.parse(row.wish) as ThreadRecord['order']),
    sources: JSON.parse(row.sources) as ThreadRecord['sources'],
    removed: JSON.parse(row.removed) as ThreadRecord['removed'],
    problem: row.problem,
    problemCode: row.problem_code,
    followUpAtMs: numberOf(row.follow_up_at),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
    classifiedAtMs: numberOf(row.classified_at),
  }
}

type FoundBacklog = { mails: number; threads: number; drafts: number; isBeingCounted: boolean }

type RawDraft = Record<'account' | 'draft_key' | 'thread' | 'text_hash' | 'answered' | 'draft_text', string> &
  Record<'draft_id' | 'message' | 'beside', string | null> & {
    state: DraftState
    made_at: number
    guessed: number
  }

function draftOf(row: RawDraft): DraftRow {
  return {
    account: row.account,
    key: row.draft_key,
    thread: row.thread,
    state: row.state,
    textHash: row.text_hash,
    draftId: row.draft_id,
    messageId: row.message,
    answered: row.answered,
    text: row.draft_text,
    madeAtMs: Number(row.made_at),
    beside: row.beside === null ? null : (JSON.parse(row.beside) as string[]),
    isGuessed: Number(row.guessed) === 1,
  }
}

type RawEvent = Record<'account' | 'thread' | 'what' | 'why', string> & {
  id: number
  at: number
  done_by: Actor
  undo: string | null
  undone_at: number | null
}

function eventOf(row: RawEvent): EventRow {
  return {
    id: Number(row.id),
    account: row.account,
    thread: row.thread,
    atMs: Number(row.at),
    what: row.what,
    why: row.why,
    by: row.done_by,
    undo: row.undo === null ? null : (JSON.parse(row.undo) as Undo),
    undoneAtMs: numberOf(row.undone_at),
  }
}

type RawRule = Record<'account' | 'matches' | 'note', string> & {
  id: number
  category: Category
  enabled: number
  origin: Rule['origin']
  thread: string | null
  hits: number
  created_at: number
  updated_at: number
}

function ruleOf(row: RawRule): Rule {
  return {
    id: Number(row.id),
    account: row.account,
    match: JSON.parse(row.matches) as Rule['match'],
    category: row.category,
    note: row.note,
    enabled: Boolean(Number(row.enabled)),
    origin: row.origin,
    thread: row.thread,
    hits: Number(row.hits),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
  }
}

type RawExample = {
  id: number
  account: string
  thread: string
  sample: string
  category: Category
  enabled: number
  created_at: number
}

function numberOf(value: number | null): number | null {
  return value === null ? null : Number(value)
}
