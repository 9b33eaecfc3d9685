/**
 * How a query may go on: operators, what may stand behind them, labels, and who writes most. Senders are counted in
 * the background and kept for a while, since counting reads whole archives.
 */
import { operators } from '../query/operators.ts'
import type { MailServices } from './route.ts'

export type Suggestion = { text: string; what: string }

const SHOWN_MAX = 12
const SENDERS_MAX = 500
const SENDERS_KEPT_MS = 600_000
/** How long an answer waits for senders that are still being counted. */
const SENDERS_WAIT_MS = 150

const VALUES: Record<string, readonly string[]> = {
  in: ['inbox', 'sent', 'trash', 'spam', 'drafts', 'archive', 'anywhere'],
  is: ['unread', 'read', 'starred', 'important', 'deleted', 'imported'],
  has: ['attachment'],
  category: ['primary', 'social', 'promotions', 'updates', 'forums'],
  deleted: ['yes', 'no'],
  newer_than: ['7d', '1m', '1y'],
  older_than: ['1y', '2y', '5y'],
  larger: ['1M', '10M'],
  smaller: ['10K'],
}
const LABELLED = new Set(['label', 'in'])
const ADDRESSED = new Set(['from', 'to', 'cc', 'bcc'])

/** The last word of the query, which is being typed, and what stands before it. */
const LAST = /^(.*?)(-?)(?:([a-z_0-9]+):)?("?)([^\s"(){}:]*)$/is

export async function suggest(services: MailServices, text: string): Promise<Suggestion[]> {
  const [, before = '', not = '', operator, quote = '', typed = ''] = LAST.exec(text) ?? []
  if (before !== '' && !/[\s({]$/.test(before)) return []
  const start = `${before}${not}`
  if (operator === undefined) {
    return quote === '' && typed !== '' ? operatorsFor(start, typed.toLowerCase()) : []
  }
  const name = operator.toLowerCase()
  if (!operators.has(name)) return []
  const values = await valuesOf(services, name)
  const wanted = typed.toLowerCase()
  return values
    .filter(({ value }) => value.toLowerCase().includes(wanted) && value.toLowerCase() !== wanted)
    .sort(
      (a, b) =>
        Number(b.value.toLowerCase().startsWith(wanted)) - Number(a.value.toLowerCase().startsWith(wanted)),
    )
    .slice(0, SHOWN_MAX)
    .map(({ value, what }) => ({ text: `${start}${name}:${quoted(value)}`, what }))
}

function operatorsFor(start: string, typed: string): Suggestion[] {
  return [...operators]
    .filter(([name]) => name.startsWith(typed))
    .slice(0, SHOWN_MAX)
    .map(([name, { allows }]) => ({ text: `${start}${name}:`, what: allows }))
}

async function valuesOf(
  services: MailServices,
  operator: string,
): Promise<{ value: string; what: string }[]> {
  const values = (VALUES[operator] ?? []).map((value) => ({ value, what: operators.get(operator)!.allows }))
  if (LABELLED.has(operator)) {
    const names = await labelNames(services)
    values.push(...names.map((value) => ({ value, what: 'label' })))
  }
  if (ADDRESSED.has(operator)) {
    values.push({ value: 'me', what: 'the account itself' })
    values.push(...(await sendersOf(services)).map((value) => ({ value, what: 'writes often' })))
  }
  return values
}

async function labelNames({ mail }: MailServices): Promise<string[]> {
  const names = new Set<string>()
  for (const account of mail.accounts.names()) {
    for (const { name } of await mail.tables.labels(account)) names.add(name)
  }
  return [...names]
}

type Counted = { atMs: number; senders: Promise<string[]> }
const countedBy = new WeakMap<MailServices['mail'], Counted>()

async function sendersOf(services: MailServices): Promise<string[]> {
  const { mail, clock } = services
  let counted = countedBy.get(mail)
  if (!counted || clock.monotonicMs() - counted.atMs > SENDERS_KEPT_MS) {
    // Suggestions are a help: without an archive there are fewer.
    counted = { atMs: clock.monotonicMs(), senders: countSenders(services).catch(() => []) }
    countedBy.set(mail, counted)
  }
  const { senders } = counted
  let cancel = (): void => {}
  const late = new Promise<string[]>((resolve) => {
    cancel = clock.timer(SENDERS_WAIT_MS, () => resolve([]))
  })
  return Promise.race([senders, late]).finally(() => cancel())
}

async function countSenders({ mail }: MailServices): Promise<string[]> {
  const totals = new Map<string, number>()
  for (const name of mail.accounts.names()) {
    const { archive } = await mail.accounts.get(name)
    for (const { key, messages } of (await archive.stats('sender', SENDERS_MAX)).rows) {
      if (key !== '') totals.set(key, (totals.get(key) ?? 0) + messages)
    }
  }
  return [...totals]
    .sort(([, a], [, b]) => b - a)
    .slice(0, SENDERS_MAX)
    .map(([address]) => address)
}

function quoted(value: string): string {
  return /^[^\s(){}"“”]+$/.test(value) ? value : `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
