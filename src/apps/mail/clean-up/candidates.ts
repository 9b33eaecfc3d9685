/**
 * The messages that a run is about, page by page from the archive: those of a query that are older than its limit.
 * What the index alone already refuses is passed over and counted.
 */
import { z } from 'zod'
import type { Query } from '../query/query.ts'
import type { Archive, IdEntry } from '../store/contract.ts'
import type { Candidate, Sum } from '../store/journal.ts'
import { indexRefusal, isConcerned, type Purpose, type RefusalClass } from './verdict.ts'

export const CANDIDATE_PAGE = 500
/** Ten times the largest mailbox that anyone has shown: a search that never ends must end. */
const PAGES_MAX = 200_000

/** Where to go on: after these ids of that millisecond, or at a search's next page. */
export const Place = z.union([
  z.object({ fromMs: z.number(), seen: z.array(z.string()) }),
  z.object({ cursor: z.string() }),
])
export type Place = z.output<typeof Place>

export type Selection = Purpose & {
  /** Null: everything. */
  query: Query | null
  /** Messages that arrived before it. */
  cutoffMs: number
  labelIds: ReadonlyMap<string, string>
  nowMs: number
}

/** What the ledger knows at this moment. */
export type Standing = {
  markS: number | null
  bad: ReadonlySet<string>
  /** Up to there the archive knows what happened in the mailbox; null where it does not. */
  cursor: string | null
  /** Except to these: see stale-labels.ts. */
  stale: ReadonlySet<string>
}

export type PassedOver = Partial<Record<RefusalClass, Sum>>

export type CandidatePage = {
  candidates: Candidate[]
  passedOver: { entry: IdEntry; class: RefusalClass }[]
  unsearched: readonly string[]
  /** Null after the last page. */
  next: Place | null
}

export async function* candidatePages(
  archive: Archive,
  selection: Selection,
  standing: Standing,
  from: Place | null = null,
): AsyncGenerator<CandidatePage> {
  const pages =
    selection.query === null ? byTime(archive, selection, from) : bySearch(archive, selection, from)
  for await (const { entries, unsearched, next } of pages) {
    const page: CandidatePage = { candidates: [], passedOver: [], unsearched, next }
    for (const entry of entries) {
      if (!isConcerned(selection, entry.labelIds)) continue
      const refused = indexRefusal({
        ...entry,
        markS: standing.markS,
        isBad: standing.bad.has(entry.id),
        isImported: entry.source === 'import',
      })
      if (refused) page.passedOver.push({ entry, class: refused.class })
      else page.candidates.push(toCandidate(entry))
    }
    yield page
  }
}

export function addPassedOver(
  sums: PassedOver,
  passed: readonly { entry: Pick<IdEntry, 'id' | 'bytes'>; class: RefusalClass }[],
): PassedOver {
  const added = { ...sums }
  for (const { entry, class: what } of passed) {
    const sum = added[what] ?? { messages: 0, bytes: 0, example: entry.id }
    added[what] = { ...sum, messages: sum.messages + 1, bytes: sum.bytes + entry.bytes }
  }
  return added
}

type Page = { entries: readonly IdEntry[]; unsearched: readonly string[]; next: Place | null }

async function* byTime(archive: Archive, { cutoffMs }: Selection, from: Place | null): AsyncGenerator<Page> {
  const start = from && 'fromMs' in from ? from : { fromMs: Number.MIN_SAFE_INTEGER, seen: [] }
  const seen = new Set(start.seen)
  let next: { fromMs: number; seen: string[] } = start
  for await (const page of archive.entries({
    fromMs: start.fromMs,
    toMs: cutoffMs,
    pageSize: CANDIDATE_PAGE,
  })) {
    const entries = page.filter(({ id }) => !seen.has(id))
    const lastMs = page.at(-1)?.internalMs
    if (lastMs === undefined) continue
    const before = next.fromMs === lastMs ? next.seen : []
    const ofLast = entries.filter(({ internalMs }) => internalMs === lastMs).map(({ id }) => id)
    next = { fromMs: lastMs, seen: [...before, ...ofLast] }
    yield { entries, unsearched: [], next }
  }
}

async function* bySearch(archive: Archive, selection: Selection, from: Place | null): AsyncGenerator<Page> {
  const { cutoffMs, labelIds, nowMs } = selection
  const query: Query = { is: 'and', of: [selection.query!, { is: 'before', atMs: cutoffMs }] }
  let cursor = from && 'cursor' in from ? from.cursor : undefined
  for (let turned = 0; turned < PAGES_MAX; turned++) {
    const options = { order: 'date', limit: CANDIDATE_PAGE, labels: labelIds, now: nowMs } as const
    const page = await archive.search(query, { ...options, ...(cursor === undefined ? {} : { cursor }) })
    yield {
      entries: page.hits.map(({ message }) => message),
      unsearched: page.unsearched.map(({ shard }) => shard),
      next: page.next === null ? null : { cursor: page.next },
    }
    if (page.next === null) return
    cursor = page.next
  }
}

function toCandidate({ id, internalMs, bytes, labelIds }: IdEntry): Candidate {
  return { id, internalMs, bytes, labelIds }
}
