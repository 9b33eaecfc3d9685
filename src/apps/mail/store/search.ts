/**
 * Search over all shards of an archive. By date, the newest shards are asked first, and no more are asked when the
 * page is full. Shards whose times overlap (parts of one year, or months beside years) are asked together and merged.
 * A shard that cannot be read is named in the answer, and the others are searched all the same.
 */
import { UsageError } from '../../../base/errors.ts'
import { TEXT_CHARS_MAX } from '../mime/limits.ts'
import { yearAt } from '../query/operators.ts'
import type { Query } from '../query/query.ts'
import type { Hints } from './catalogue.ts'
import { type CompiledQuery, compileQuery, type Mark, type Sql } from './compiled-query.ts'
import { decompressed } from './compression.ts'
import type {
  FacetCount,
  SearchCount,
  SearchFacets,
  SearchHit,
  SearchOptions,
  SearchPage,
} from './contract.ts'
import { excerptOf, plainExcerpt } from './excerpt.ts'
import { countSql, labelCountSql, pageSql, rankSql, type StatementInput } from './search-sql.ts'
import type { ShardListing, ShardReader } from './shard-reader.ts'
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './shard-row.ts'
import { isUnreadable } from './store-errors.ts'

export type ShardSource = Pick<ShardReader, 'shards' | 'hints' | 'guarded' | 'prepare' | 'positions'>

export const PAGE_DEFAULT = 20
export const PAGE_MAX = 1_000

/** A label that fewer messages of a shard have is read first, and text is asked of each of them. */
const RARE_LABEL_MESSAGES_MAX = 64
/** A character takes at most four bytes. */
const TEXT_BYTES_MAX = TEXT_CHARS_MAX * 4

type Asked = {
  source: ShardSource
  query: Query
  compiled: CompiledQuery
  unsearched: { shard: string; reason: string }[]
}

type FoundRow = { shard: string; row: MessageRow }

export function searchShards(source: ShardSource, query: Query, options: SearchOptions = {}): SearchPage {
  const compiled = compileQuery(query, options)
  if (!compiled) return { hits: [], next: null, unsearched: [] }
  const asked: Asked = { source, query, compiled, unsearched: [] }
  const limit = Math.max(1, Math.min(PAGE_MAX, Math.trunc(options.limit ?? PAGE_DEFAULT)))
  // Without text there is nothing to tell better from worse, and the newest come first.
  const isRanked = options.order === 'rank' && compiled.match !== null
  const page = isRanked
    ? rankedPage(asked, limit, options.cursor === undefined ? null : parseRankCursor(options.cursor))
    : datedPage(asked, limit, options.cursor === undefined ? null : parseDateCursor(options.cursor))
  return {
    hits: page.found.map((found) => hitOf(asked, found)),
    next: page.next ? formatCursor(page.next) : null,
    unsearched: asked.unsearched,
  }
}

export function countShards(source: ShardSource, query: Query, options: SearchOptions = {}): SearchCount {
  const compiled = compileQuery(query, options)
  if (!compiled) return { messages: 0, bytes: 0, unsearched: [] }
  const asked: Asked = { source, query, compiled, unsearched: [] }
  let messages = 0
  let bytes = 0
  for (const shard of shardsOf(asked)) {
    const counted = ask(asked, shard, (input) => run(asked, shard.name, countSql(input)))
    const [row] = (counted ?? []) as { messages: number; bytes: number }[]
    messages += row?.messages ?? 0
    bytes += row?.bytes ?? 0
  }
  return { messages, bytes, unsearched: asked.unsearched }
}

/** Each is read with its row: more would take longer than anybody waits for what stands beside the results. */
export const FACET_MESSAGES_MAX = 10_000
const FACET_VALUES_MAX = 20

type FacetRow = Pick<MessageRow, 'internal_ms' | 'sender' | 'labels'>

export function facetShards(source: ShardSource, query: Query, options: SearchOptions = {}): SearchFacets {
  const count = countShards(source, query, options)
  const compiled = compileQuery(query, options)
  const [years, senders, labels] = [new Map(), new Map(), new Map()] as Map<string, number>[]
  let counted = 0
  if (compiled) {
    const asked: Asked = { source, query, compiled, unsearched: [] }
    const columns = 'm.internal_ms, m.sender, m.labels'
    for (const shard of shardsOf(asked)) {
      const limit = FACET_MESSAGES_MAX - counted
      if (limit <= 0) break
      const rows = ask(asked, shard, (input) =>
        run(asked, shard.name, pageSql({ ...input, columns, limit })),
      ) as FacetRow[] | undefined
      counted += rows?.length ?? 0
      for (const row of rows ?? []) {
        add(years!, String(yearAt(row.internal_ms)))
        const from = (JSON.parse(row.sender) as { address: string }[]).map(({ address }) =>
          address.toLowerCase(),
        )
        for (const address of new Set(from)) if (address !== '') add(senders!, address)
        for (const label of JSON.parse(row.labels) as string[]) add(labels!, label)
      }
    }
  }
  const byYear = (a: FacetCount, b: FacetCount): number => Number(b.value) - Number(a.value)
  return {
    ...count,
    counted,
    years: countsOf(years!).sort(byYear),
    senders: mostOf(senders!),
    labels: mostOf(labels!),
  }
}

function add(counts: Map<string, number>, value: string): void {
  counts.set(value, (counts.get(value) ?? 0) + 1)
}

const countsOf = (counts: ReadonlyMap<string, number>): FacetCount[] =>
  [...counts].map(([value, messages]) => ({ value, messages }))

const mostOf = (counts: ReadonlyMap<string, number>): FacetCount[] =>
  countsOf(counts)
    .sort((a, b) => b.messages - a.messages || (a.value < b.value ? -1 : 1))
    .slice(0, FACET_VALUES_MAX)

// By date.

type DatedPage = { found: FoundRow[]; next: DateCursor | null }

function datedPage(asked: Asked, limit: number, cursor: DateCursor | null): DatedPage {
  const found: FoundRow[] = []
  const groups = overlapping(shardsOf(asked))
  const begun = cursor ? groups.findIndex((group) => group.some(({ name }) => name === cursor.shard)) : -1
  for (const [index, group] of groups.entries()) {
    if (index < begun) continue
    // One more than the page holds: whether there is a next one.
    const wanted = limit + 1 - found.length
    if (wanted <= 0) break
    // A shard that was set aside since is in no group: then its place in time has to do.
    const isCursors = cursor !== null && (begun < 0 || index === begun)
    const rows = group.flatMap((shard) => {
      const lastPos = isCursors ? lastPosAfter(cursor, shard.name) : undefined
      return newestOf(asked, shard, { wanted, lastPos })
    })
    rows.sort((a, b) => b.row.pos - a.row.pos || comesFirst(a.shard, b.shard))
    found.push(...rows.slice(0, wanted))
  }
  const more = found.length > limit
  if (more) found.length = limit
  const last = found.at(-1)
  return { found, next: more && last ? { order: 'date', pos: last.row.pos, shard: last.shard } : null }
}

/** Two shards may have a message at the same place: the one of the later name comes first. */
function comesFirst(shard: string, other: string): number {
  return shard === other ? 0 : shard > other ? -1 : 1
}

function lastPosAfter(cursor: DateCursor, shard: string): number {
  return comesFirst(cursor.shard, shard) < 0 ? cursor.pos : cursor.pos - 1
}

function newestOf(
  asked: Asked,
  shard: ShardListing,
  { wanted, lastPos }: { wanted: number; lastPos: number | undefined },
): FoundRow[] {
  const rows = ask(asked, shard, (input) => {
    const { first, last } = input.posRange
    const posRange = { first, last: lastPos === undefined ? last : Math.min(last, lastPos) }
    return run(asked, shard.name, pageSql({ ...input, posRange, columns: MESSAGE_COLUMNS, limit: wanted }))
  })
  return ((rows ?? []) as MessageRow[]).map((row) => ({ shard: shard.name, row }))
}

/** Newest first; no shard of a group has a message from the time of another group. */
function overlapping(shards: readonly ShardListing[]): ShardListing[][] {
  const groups: ShardListing[][] = []
  let fromMs = Number.POSITIVE_INFINITY
  for (const shard of shards) {
    const last = groups.at(-1)
    if (last && shard.toMs > fromMs) last.push(shard)
    else groups.push([shard])
    fromMs = last && shard.toMs > fromMs ? Math.min(fromMs, shard.fromMs) : shard.fromMs
  }
  return groups
}

// By rank.

type Ranked = { shard: string; pos: number; score: number }

/**
 * The best of every shard, merged. A score weighs a word by how rare it is in its own shard; over shards of thousands
 * of messages that differs little, so scores are compared as they are. New mail shifts them a little too: a hit may
 * then come twice or not at all over several pages, which pages by date never do.
 */
function rankedPage(
  asked: Asked,
  limit: number,
  cursor: RankCursor | null,
): { found: FoundRow[]; next: RankCursor | null } {
  const best = shardsOf(asked).flatMap((shard): Ranked[] => {
    const rows = ask(asked, shard, (input) => {
      const after = cursor && { score: cursor.score, pos: posAfter(cursor, shard.name) }
      return run(asked, shard.name, rankSql({ ...input, limit: limit + 1, after }))
    })
    return ((rows ?? []) as { pos: number; score: number }[]).map((row) => ({ shard: shard.name, ...row }))
  })
  best.sort((a, b) => a.score - b.score || comesFirst(a.shard, b.shard) || b.pos - a.pos)
  const page = best.slice(0, limit)
  const found = page.flatMap(({ shard, pos }): FoundRow[] => {
    const sql = `SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.pos = ?`
    const rows = tolerant(asked, shard, () => run(asked, shard, { sql, params: [pos] }))
    return ((rows ?? []) as MessageRow[]).map((row) => ({ shard, row }))
  })
  const last = page.at(-1)
  return { found, next: best.length > limit && last ? { order: 'rank', ...last } : null }
}

/** Among messages of the cursor's own score, all of the shards after its own follow, and none of those before. */
function posAfter(cursor: RankCursor, shard: string): number {
  if (shard === cursor.shard) return cursor.pos
  return comesFirst(cursor.shard, shard) < 0 ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
}

// One shard.

/** Those that can hold a hit, newest first. */
function shardsOf({ source, query, compiled: { range } }: Asked): ShardListing[] {
  const inRange = source.shards().filter(({ fromMs, toMs }) => fromMs < range.toMs && range.fromMs < toMs)
  const hints = keyHints(source, query)
  return hints ? inRange.filter(({ name }) => hints(name).length > 0) : inRange
}

/** Of a query that only messages with a certain id, thread or Message-ID can answer. */
function keyHints(source: ShardSource, query: Query): Hints | undefined {
  const keyed = (query.is === 'and' ? query.of : [query]).find(isKeyed)
  if (!keyed) return undefined
  const { is, value } = keyed
  return source.hints(is, is === 'message-id' ? [value, `<${value}>`] : [value])
}

function isKeyed(query: Query): query is Extract<Query, { value: string }> {
  return query.is === 'id' || query.is === 'thread' || query.is === 'message-id'
}

/** Null where the shard has nothing or cannot be read; the latter is noted. */
function ask<Answer>(
  asked: Asked,
  shard: ShardListing,
  question: (input: StatementInput) => Answer,
): Answer | null {
  const { source, compiled } = asked
  return tolerant(asked, shard.name, () => {
    const label = rareLabelIn(source, compiled, shard.name)
    if (label?.messages === 0) return null
    return question({ compiled, posRange: posRangeOf(source, compiled, shard), rareLabel: label?.id })
  })
}

/** A shard that cannot be read takes nothing from the others. */
function tolerant<Answer>({ source, unsearched }: Asked, shard: string, work: () => Answer): Answer | null {
  try {
    return source.guarded(shard, work)
  } catch (thrown) {
    if (!isUnreadable(thrown)) throw thrown
    if (!unsearched.some((one) => one.shard === shard)) unsearched.push({ shard, reason: thrown.message })
    return null
  }
}

function rareLabelIn(
  source: ShardSource,
  { match, labels }: CompiledQuery,
  shard: string,
): { id: string; messages: number } | undefined {
  if (match === null) return undefined
  let rarest: { id: string; messages: number } | undefined
  for (const id of labels) {
    const { sql, params } = labelCountSql(id, RARE_LABEL_MESSAGES_MAX + 1)
    const row = source.prepare(shard, sql).get(...params)
    const { n: messages } = row as { n: number }
    if (messages <= RARE_LABEL_MESSAGES_MAX && messages < (rarest?.messages ?? Number.POSITIVE_INFINITY)) {
      rarest = { id, messages }
    }
  }
  return rarest
}

function posRangeOf(
  source: ShardSource,
  { range }: CompiledQuery,
  shard: ShardListing,
): { first: number; last: number } {
  const everything = { first: Number.MIN_SAFE_INTEGER, last: Number.MAX_SAFE_INTEGER }
  if (range.fromMs <= shard.fromMs && range.toMs >= shard.toMs) return everything
  const fromMs = Math.max(range.fromMs, shard.fromMs)
  const toMs = Math.min(range.toMs, shard.toMs)
  const { fromPos, toPos } = source.positions(shard.name, { fromMs, toMs })
  return { first: fromPos, last: toPos - 1 }
}

function run({ source }: Asked, shard: string, { sql, params }: Sql): unknown[] {
  return source.prepare(shard, sql).all(...params)
}

// What is shown of a hit.

function hitOf({ source, compiled }: Asked, { shard, row }: FoundRow): SearchHit {
  const message = toMessage(shard, row)
  const excerpt =
    compiled.marks.length > 0 ? excerptFrom(source, { shard, pos: row.pos }, compiled.marks) : null
  return { message, excerpt: excerpt ?? plainExcerpt(message.snippet) }
}

function excerptFrom(
  source: ShardSource,
  { shard, pos }: { shard: string; pos: number },
  marks: readonly Mark[],
): SearchHit['excerpt'] | null {
  try {
    return source.guarded(shard, () => {
      const row = source.prepare(shard, 'SELECT text FROM bodies WHERE pos = ?').get(pos)
      if (!row) return null
      const bytes = decompressed((row as { text: Uint8Array }).text, TEXT_BYTES_MAX)
      return excerptOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'), marks)
    })
  } catch {
    // The hit is there, and its snippet: that its text is damaged is for `verify` to find and to say.
    return null
  }
}

/**
 * Where a page of a search ended, as text for the next one. It names a message by its place and not by how many came
 * before it, so that mail which arrives between two pages neither repeats nor hides anything.
 */
type DateCursor = { order: 'date'; pos: number; shard: string }
type RankCursor = { order: 'rank'; score: number; pos: number; shard: string }

const DATE = /^d_(-?\d{1,16})_([a-z0-9-]{1,40})$/
const RANK = /^r_(-?\d{1,20}(?:\.\d{1,25})?(?:e[+-]?\d{1,3})?)_(-?\d{1,16})_([a-z0-9-]{1,40})$/

function formatCursor(cursor: DateCursor | RankCursor): string {
  return cursor.order === 'date'
    ? `d_${cursor.pos}_${cursor.shard}`
    : `r_${cursor.score}_${cursor.pos}_${cursor.shard}`
}

function parseDateCursor(text: string): DateCursor {
  const [, pos, shard] = DATE.exec(text) ?? []
  if (pos === undefined || shard === undefined) throw badCursor(text)
  return { order: 'date', pos: Number(pos), shard }
}

function parseRankCursor(text: string): RankCursor {
  const [, score, pos, shard] = RANK.exec(text) ?? []
  if (score === undefined || pos === undefined || shard === undefined) throw badCursor(text)
  return { order: 'rank', score: Number(score), pos: Number(pos), shard }
}

function badCursor(text: string): UsageError {
  return new UsageError(`"${text.slice(0, 80)}" is not the cursor of a page of this search.`, {
    code: 'bad-cursor',
    hint: 'Take the one that the page before gave, with the same query and the same order; without one, the search starts anew.',
  })
}
