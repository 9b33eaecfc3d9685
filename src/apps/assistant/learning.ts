/**
 * What the user says about their mail: rules, which decide before any model, and examples, from which models and the
 * local classifier learn. A correction becomes an example at once, and a rule that is off, for the user to look at, to
 * try on past mail, and to switch on.
 */
import { UsageError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { Category, VisibleMessage } from './contract.ts'
import type { AssistKinds } from './kinds.ts'
import { matchesAddress } from './rules.ts'
import type { Taught, ThreadRecord } from './store/records.ts'
import {
  addRule,
  changeRule,
  type Example,
  putExample,
  type Rule,
  type RuleMatch,
  removeExample,
  removeRule,
  ruleMatch,
  setExample,
} from './store/rules.ts'
import { ruleFor } from './store/tables.ts'

const EXAMPLE_CHARS_MAX = 1_000
const REPLAY_THREADS_MAX = 5_000
const REPLAY_PART = 500
const SHOWN_MAX = 100
const ARCHIVE_MAX = 50

type Sorted = Pick<VisibleMessage, 'subject'> & { from: { address: string } }

export function fitsRule({ from, subject }: RuleMatch, message: Sorted): boolean {
  if (from !== undefined && !matchesAddress(from, message.from.address)) return false
  return subject === undefined || message.subject.toLowerCase().includes(subject.toLowerCase())
}

/** The first that is on and fits. */
export function matchingRule(rules: readonly Rule[], message: Sorted): Rule | undefined {
  return rules.find(({ enabled, match }) => enabled && fitsRule(match, message))
}

type Corrected = Pick<VisibleMessage, 'subject' | 'newText' | 'from'>

/** The example that a correction becomes. */
export function taughtBy({ from, subject, newText }: Corrected, category: Category): Taught {
  return { text: `${from.name}\n${subject}\n${newText}`.slice(0, EXAMPLE_CHARS_MAX), category }
}

/** In the transaction of the correction. */
export async function learnFrom(
  tx: Tx,
  about: {
    record: Pick<ThreadRecord, 'account' | 'thread'>
    message: Corrected
    category: Category
    nowMs: number
  },
): Promise<void> {
  const { message, category, nowMs } = about
  const { account, thread } = about.record
  await putExample(tx, { account, thread, ...taughtBy(message, category) }, nowMs)
  const from = message.from.address.toLowerCase()
  if (from === '' || (await ruleFor(tx, account, { from }))) return
  const note = `from your correction of “${message.subject.slice(0, 80)}”`
  await addRule(
    tx,
    { account, match: { from }, category, note, enabled: false, origin: 'correction', thread },
    nowMs,
  )
}

export type RuleInput = { match: RuleMatch; category: Category; note?: string; enabled?: boolean }
type Place = Pick<AssistKinds, 'tables' | 'clock' | 'ledger'>

export async function createRule(place: Place, account: string, input: RuleInput): Promise<Rule> {
  const match = ruleMatch.parse(input.match)
  const { category, note = '', enabled = true } = input
  const id = await place.ledger.transaction((tx) =>
    addRule(tx, { account, match, category, note, enabled, origin: 'user', thread: null }, place.clock.now()),
  )
  return (await place.tables.rule(account, id))!
}

export async function updateRule(
  place: Place,
  { account, id }: Pick<Rule, 'account' | 'id'>,
  change: Partial<RuleInput>,
): Promise<Rule> {
  const rule = await place.tables.rule(account, id)
  if (!rule) throw noRule(id)
  const next = { ...rule, ...change, match: ruleMatch.parse(change.match ?? rule.match) }
  await place.ledger.transaction((tx) => changeRule(tx, { account, id }, next, place.clock.now()))
  return (await place.tables.rule(account, id)) ?? next
}

export async function deleteRule(place: Place, of: Pick<Rule, 'account' | 'id'>): Promise<void> {
  if (!(await place.ledger.transaction((tx) => removeRule(tx, of)))) throw noRule(of.id)
}

export async function switchExample(
  place: Place,
  of: Pick<Example, 'account' | 'id' | 'enabled'>,
): Promise<void> {
  if (!(await place.ledger.transaction((tx) => setExample(tx, of)))) throw noExample(of.id)
}

export async function deleteExample(place: Place, of: Pick<Example, 'account' | 'id'>): Promise<void> {
  if (!(await place.ledger.transaction((tx) => removeExample(tx, of)))) throw noExample(of.id)
}

function noExample(id: number): UsageError {
  return new UsageError(`There is no example #${id}.`, { code: 'example-unknown' })
}

function noRule(id: number): UsageError {
  return new UsageError(`There is no rule #${id}.`, { code: 'rule-unknown' })
}

export type Replay = {
  /** Conversations that were looked at. */
  looked: number
  /** That the rule fits, and how many of them would be sorted otherwise. */
  fits: number
  changes: number
  /** Some of those that would change. */
  shown: {
    thread: string
    subject: string
    sender: string
    before: Category
    after: Category
    atMs: number
  }[]
  /** Mail of the archive that fits, which was never sorted; null where it could not be searched. */
  archive: { fits: number; shown: { title: string; atMs: number | null }[] } | null
}

/** What a rule would have done: nothing changes. */
export async function replayRule(
  kinds: Pick<AssistKinds, 'tables' | 'search' | 'accounts' | 'clock'>,
  account: string,
  rule: Pick<RuleInput, 'match' | 'category'>,
  signal: AbortSignal,
): Promise<Replay> {
  const match = ruleMatch.parse(rule.match)
  const replay: Replay = { looked: 0, fits: 0, changes: 0, shown: [], archive: null }
  let after = ''
  while (replay.looked < REPLAY_THREADS_MAX) {
    const records = await kinds.tables.page(account, { after, limit: REPLAY_PART })
    for (const { thread, subject, sender, category, lastAtMs } of records) {
      replay.looked += 1
      if (!fitsRule(match, { subject, from: { address: sender } })) continue
      replay.fits += 1
      if (category === rule.category || category === null) continue
      replay.changes += 1
      if (replay.shown.length < SHOWN_MAX) {
        replay.shown.push({ thread, subject, sender, before: category, after: rule.category, atMs: lastAtMs })
      }
    }
    after = records.at(-1)?.thread ?? ''
    if (records.length < REPLAY_PART) break
  }
  replay.archive = await archived(kinds, account, match, signal).catch((thrown: unknown) => {
    if (signal.aborted) throw thrown
    // A search that is too busy just now says nothing about the rule.
    return null
  })
  return replay
}

async function archived(
  kinds: Pick<AssistKinds, 'search' | 'accounts' | 'clock'>,
  account: string,
  { from, subject }: RuleMatch,
  signal: AbortSignal,
): Promise<Replay['archive']> {
  const reader = await kinds.accounts.reader(account)
  if (reader.principals.length === 0) return null
  const sender = from?.replaceAll(/[*?]/g, '').replace(/^[@.]/, '')
  const words = [
    ...(sender ? [`from:${sender}`] : []),
    ...(subject === undefined ? [] : [`"${subject.replaceAll('"', ' ')}"`]),
  ]
  const search = await kinds.search()
  const answer = await search.search({
    text: words.join(' '),
    reader,
    mode: 'words',
    sort: 'newest',
    limit: ARCHIVE_MAX,
    filters: { type: ['mail'] },
    nowMs: kinds.clock.now(),
    signal,
  })
  return {
    fits: answer.total,
    shown: answer.hits.map(({ title, modifiedAtMs }) => ({
      title: title.map((piece) => piece.text).join(''),
      atMs: modifiedAtMs,
    })),
  }
}
