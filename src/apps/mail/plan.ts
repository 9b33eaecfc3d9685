/**
 * Pure decisions of the sync: how the mailbox is cut into slices, how they are asked for, and how many messages go
 * into a batch.
 *
 * Positions in a mail stream are seconds since the epoch. The first slice has no lower bound and the last no upper
 * bound when they are asked for, so that no message falls outside, whatever its date.
 */
import type { MailChoices } from './account.ts'

export type Granularity = 'day' | 'week' | 'month'

/** [fromS, toS); `isFirst` and `isLast` are asked for without a bound on that side. */
export type Slice = { fromS: number; toS: number }

/** Mailboxes of up to this many messages are cut by the month, then by the week, and larger ones by the day. */
const MONTHLY_MESSAGES_MAX = 20_000
const WEEKLY_MESSAGES_MAX = 200_000
const DAY_S = 86_400
const DAYS_OF: Record<Granularity, number> = { day: 1, week: 7, month: 30 }
const SLICES_MAX = 50_000

export function granularityFor(messages: number, wanted: Granularity | 'auto'): Granularity {
  if (wanted !== 'auto') return wanted
  if (messages <= MONTHLY_MESSAGES_MAX) return 'month'
  return messages <= WEEKLY_MESSAGES_MAX ? 'week' : 'day'
}

/**
 * From `originS`, where the stream begins, to `endS`. Everything before the oldest message is one slice with the
 * first of it, and `sinceS` leaves out what is older.
 */
export function slicesOf(input: {
  originS: number
  oldestS: number
  endS: number
  granularity: Granularity
}): Slice[] {
  const { originS, oldestS, endS } = input
  const stepS = DAYS_OF[input.granularity] * DAY_S
  const slices: Slice[] = []
  let fromS = originS
  // Whole days in UTC, so that slices read well.
  let toS = (Math.floor(Math.max(originS, oldestS) / DAY_S) + DAYS_OF[input.granularity]) * DAY_S
  while (toS < endS && slices.length < SLICES_MAX - 1) {
    slices.push({ fromS, toS })
    fromS = toS
    toS += stepS
  }
  if (fromS < endS) slices.push({ fromS, toS: endS })
  return slices
}

/** How a position in the stream is written as a mark. */
export function markOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}

export type ListBounds = {
  fromS: number | null
  toS: number | null
}

/**
 * Whether Gmail's bounds are inclusive is not documented. So a slice is asked for with the second after it, never with one
 * before it: a message is listed by its own slice or by an older one, and the mark cannot pass it before it is settled.
 */
export function sliceQuery(bounds: ListBounds, choices: MailChoices, part?: string): string {
  const terms: string[] = []
  if (bounds.fromS !== null) terms.push(`after:${bounds.fromS}`)
  if (bounds.toS !== null) terms.push(`before:${bounds.toS + 1}`)
  terms.push(...choiceTerms(choices))
  if (part) terms.push(part)
  return terms.join(' ')
}

/** Of a stretch without a neighbour before it, whose second after it would be its own first one. */
export function standingAlone({ fromS, toS }: ListBounds): ListBounds {
  return { fromS: fromS === null ? null : Math.max(0, fromS - 1), toS }
}

function choiceTerms({ spam, trash, onlyLabels, skipLabels }: MailChoices): string[] {
  const terms: string[] = []
  if (!spam && trash) terms.push('-in:spam')
  if (!trash && spam) terms.push('-in:trash')
  if (onlyLabels.length > 0) terms.push(`{${onlyLabels.map(labelTerm).join(' ')}}`)
  for (const label of skipLabels) terms.push(`-${labelTerm(label)}`)
  return terms
}

/** Spam and trash are in a listing only when asked for. */
export function wantsSpamOrTrash({ spam, trash }: MailChoices): boolean {
  return spam || trash
}

/** Gmail writes label names with dashes for what is no letter or digit. */
export function labelTerm(name: string): string {
  return `label:${/^[\w-]+$/.test(name) ? name : `"${name.replaceAll('"', '')}"`}`
}

/** A mailbox that one label dominates is listed in two parts. */
export function listParts(sliceByLabel: string | undefined): (string | undefined)[] {
  return sliceByLabel ? [labelTerm(sliceByLabel), `-${labelTerm(sliceByLabel)}`] : [undefined]
}

/** Does a message that was fetched belong into the archive? Its labels may have changed since it was listed. */
export function isWanted(
  labelIds: readonly string[],
  choices: MailChoices,
  idOf: (label: string) => string | undefined,
): boolean {
  if (!choices.spam && labelIds.includes('SPAM')) return false
  if (!choices.trash && labelIds.includes('TRASH')) return false
  const has = (name: string): boolean => labelIds.includes(idOf(name) ?? name)
  if (choices.skipLabels.some(has)) return false
  return choices.onlyLabels.length === 0 || choices.onlyLabels.some(has)
}

/** Halves a slice that turned out to be too deep; null when it cannot be cut. */
export function cutOf({ fromS, toS }: Slice): number | null {
  const middleS = Math.floor((fromS + toS) / 2)
  return middleS > fromS && middleS < toS ? middleS : null
}

export const BATCH_MIN = 200
export const BATCH_MAX = 500
const BATCH_STEP = 25
const BATCH_CUT = 0.75
/** Slower batches lose more when they fail. */
const BATCH_SLOW_MS = 120_000

/** How many messages the next batches get, by how the last ones went. */
export class BatchSize {
  #size: number
  readonly #min: number
  readonly #max: number

  constructor(start: number) {
    this.#size = start
    this.#min = Math.min(BATCH_MIN, start)
    this.#max = Math.max(BATCH_MAX, start)
  }

  get size(): number {
    return Math.round(this.#size)
  }

  went(batch: { ms: number; errors: number }): void {
    const isFine = batch.errors === 0 && batch.ms <= BATCH_SLOW_MS
    const next = isFine ? this.#size + BATCH_STEP : this.#size * BATCH_CUT
    this.#size = Math.min(this.#max, Math.max(this.#min, next))
  }
}

const SUSPECTS_MAX = 10_000
/** Older answers count for less. */
const ANSWERS_MAX = 2_000
/** A good message is called bad with a chance below this. */
const MISTAKEN_MAX = 1e-6
/** On worse days than this a message has as many tries as on such a day: 39. */
const SHARE_MAX = 0.7

/**
 * How often messages of an account fail that come later: the service on a bad day. Messages that never come say
 * nothing about that. Known to this process alone: after a restart it is learned anew.
 */
export class FailureRate {
  readonly #failures = new Map<string, number>()
  #answers = 0
  #failed = 0

  failed(id: string): void {
    if (this.#failures.size >= SUSPECTS_MAX && !this.#failures.has(id)) return
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1)
  }

  came(id: string): void {
    const failures = this.#failures.get(id) ?? 0
    this.#failures.delete(id)
    this.#answers += 1 + failures
    this.#failed += failures
    if (this.#answers < ANSWERS_MAX) return
    this.#answers /= 2
    this.#failed /= 2
  }

  /** As many tries as make it unlikely that a good message fails in all of them. */
  get tries(): number {
    const share = this.#answers === 0 ? 0 : this.#failed / this.#answers
    return share === 0 ? 0 : Math.ceil(Math.log(MISTAKEN_MAX) / Math.log(Math.min(share, SHARE_MAX)))
  }
}

export function chunksOf<T>(items: readonly T[], size: number): T[][] {
  const chunks: T[][] = []
  for (let at = 0; at < items.length; at += size) chunks.push(items.slice(at, at + size))
  return chunks
}
