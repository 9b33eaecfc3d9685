/**
 * One page out of the pages of several archives. By date they are merged; by rank they take turns, since scores of
 * different archives say nothing about each other. The cursor holds where each archive is.
 */
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import type { Query } from './query/query.ts'
import type { Archive, SearchHit } from './store/contract.ts'
import type { MailTables } from './store/tables.ts'

export type OpenedArchive = {
  name: string
  archive: Archive
  /** Ids by lower-case name, and names by id. */
  labels: ReadonlyMap<string, string>
  labelNames: ReadonlyMap<string, string>
}

export type AccountQuery = { opened: OpenedArchive; query: Query }

export type AccountHit = SearchHit & { opened: OpenedArchive }

export type Unsearched = { account: string; shard: string; reason: string }

export type MergedPage = { hits: AccountHit[]; next: string | null; unsearched: Unsearched[] }

type PageInput = { order: 'date' | 'rank'; limit: number; cursor: string | undefined }

/** By account: the archive's own cursor, '' where it has not begun; those at their end are left out. */
type Cursors = Record<string, string>

const cursorsShape = z.record(z.string(), z.string())

/** The archive with what its labels are called. */
export async function withLabels(tables: MailTables, name: string, archive: Archive): Promise<OpenedArchive> {
  const rows = await tables.labels(name)
  return {
    name,
    archive,
    labels: new Map(rows.map((row) => [row.name.toLowerCase(), row.id])),
    labelNames: new Map(rows.map((row) => [row.id, row.name])),
  }
}

export async function mergePages(asked: readonly AccountQuery[], input: PageInput): Promise<MergedPage> {
  const { order, limit } = input
  const names = asked.map(({ opened }) => opened.name)
  const cursors = input.cursor === undefined ? startCursors(names) : parseCursors(input.cursor, names)
  const open = asked.filter(({ opened }) => Object.hasOwn(cursors, opened.name))
  const pages = await Promise.all(
    open.map(async (one) => ({
      ...one,
      page: await pageOf(one, { order, limit, cursor: cursors[one.opened.name]! }),
    })),
  )
  const ranked = pages.flatMap(({ opened, page }, account) =>
    page.hits.map((hit, place) => ({ ...hit, opened, account, place })),
  )
  ranked.sort((a, b) =>
    order === 'date'
      ? b.message.internalMs - a.message.internalMs || a.account - b.account || a.place - b.place
      : a.place - b.place || a.account - b.account,
  )
  const hits = ranked.slice(0, limit)
  const after: Cursors = {}
  for (const { opened, query, page } of pages) {
    const taken = hits.filter((hit) => hit.opened === opened).length
    const cursor = cursors[opened.name]!
    if (taken === page.hits.length) {
      if (page.next !== null) after[opened.name] = page.next
    } else if (taken === 0) after[opened.name] = cursor
    else {
      // The place behind the last one taken is where a page of just so many ends.
      const part = await pageOf({ opened, query }, { order, limit: taken, cursor })
      if (part.next !== null) after[opened.name] = part.next
    }
  }
  return {
    hits,
    next: Object.keys(after).length === 0 ? null : formatCursors(after),
    unsearched: pages.flatMap(({ opened, page }) =>
      page.unsearched.map((one) => ({ account: opened.name, ...one })),
    ),
  }
}

function pageOf(
  { opened, query }: AccountQuery,
  { order, limit, cursor }: { order: 'date' | 'rank'; limit: number; cursor: string },
) {
  const { labels } = opened
  return opened.archive.search(query, { order, limit, labels, ...(cursor !== '' && { cursor }) })
}

function startCursors(names: readonly string[]): Cursors {
  return Object.fromEntries(names.map((name) => [name, '']))
}

function formatCursors(cursors: Cursors): string {
  return Buffer.from(JSON.stringify(cursors)).toString('base64url')
}

function parseCursors(text: string, names: readonly string[]): Cursors {
  const cursors = cursorsShape.safeParse(parseJson(Buffer.from(text, 'base64url').toString('utf8')))
  const isOurs = cursors.success && Object.keys(cursors.data).every((name) => names.includes(name))
  if (isOurs && Object.keys(cursors.data).length > 0) return cursors.data
  throw new UsageError('The cursor is not that of a page of this search.', {
    code: 'bad-cursor',
    hint: 'Take the one that the page before gave, with the same query and the same order; without one, the search starts anew.',
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // then it has not the shape either
  }
}
