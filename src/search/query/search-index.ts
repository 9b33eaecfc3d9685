/**
 * One search, in one snapshot of the database:
 *
 *   text ─▶ parse ─▶ plan ─▶ by words ┐
 *                          ─▶ by meaning ┴▶ fuse ─▶ total, facets ─▶ a page ─▶ snippets, why
 *
 * What is found is the same set for the total, the facets and the pages: documents that have all words, with few of those
 * also documents that have most of them, and documents of the nearest chunks; each under the same filters and access.
 * Copies of one content are one hit, and count once, unless they are asked for apart.
 */
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { Reader, SearchAnswer, SearchRequest } from '../contract.ts'
import { type Access, ALWAYS, allOf, type Condition, countSeen, type IndexDialect } from '../index/dialect.ts'
import { wordsOf } from '../index/words.ts'
import { type Cursor, fingerprintOf, readCursor, writeCursor } from './cursor.ts'
import { didYouMean } from './did-you-mean.ts'
import { countFacets } from './facets.ts'
import { formatSearch } from './format.ts'
import {
  COMMON_DOCUMENTS_MIN,
  COMMON_SHARE,
  FEW_DOCUMENTS,
  NEAREST_CHUNKS,
  NEAREST_MIN,
  nearness,
  PARTIAL_COVERAGE,
  PARTIAL_COVERAGE_MAX,
  RESCORED_CHUNKS,
  rank,
  total,
  wordWeight,
} from './fuse.ts'
import { assembleHits } from './hits.ts'
import type { Found, Look, Ranked } from './look.ts'
import { parseSearch } from './parse.ts'
import { conditionOf, filterCondition, type Plan, parted, planOf, textTreesOf } from './plan.ts'
import type { Query, TextLeaf } from './query.ts'

/** A request without what cannot be sent to another thread. */
export type SearchInput = Omit<SearchRequest, 'signal'> & {
  /** By which access expires: the database's clock. */
  accessNowMs: number
  meaning: QueryVector | { missing: NonNullable<SearchAnswer['fellBack']> } | null
}

/** `chance`: the similarity up to which a chunk says nothing. `strong`: that from which on it is an answer. */
export type QueryVector = { model: string; chance: number; strong: number; query: Float32Array }

export const PRINCIPALS_MAX = 100
export const LIMIT_MAX = 200

/** Where words alone took longer than this, nothing is looked for by meaning, and the answer says so. */
export const WORDS_MS_MAX = 3_000

export async function searchIndex(
  tx: Tx,
  dialect: IndexDialect,
  input: SearchInput,
  clock: Clock,
): Promise<SearchAnswer> {
  const fromMs = clock.monotonicMs()
  const fingerprint = fingerprintOf(input)
  const cursor = input.cursor === undefined ? null : readCursor(input.cursor, fingerprint)
  // Later pages count back from when the first was asked for.
  const nowMs = cursor?.nowMs ?? input.nowMs
  const query = parseSearch(input.text, { now: nowMs, me: addressesOf(input.reader) })
  const plan = planOf(query)
  const access = await accessOf(tx, input.reader.principals, input.accessNowMs)
  const filters = filterCondition(input.filters ?? {})
  const look: Look = { tx, dialect, plan, access, filters, nearWith: undefined, having: new Map() }
  const mode = input.mode ?? 'auto'
  const found = new Map<number, Found>()
  const by: SearchAnswer['by'][number][] = []
  const meaning = plan.meaning === '' || mode === 'words' ? null : input.meaning
  const model = meaning && 'model' in meaning ? await modelOf(tx, meaning) : undefined
  if (cursor?.isByMeaning && model === undefined) throw cannotFollow()
  let isLate = false
  if (access.principalIds.length > 0) {
    if (mode !== 'meaning' || plan.meaning === '') {
      by.push('words')
      await findByWords(look, found)
    }
    isLate = clock.monotonicMs() - fromMs > WORDS_MS_MAX
    if (model !== undefined && meaning && 'model' in meaning && (cursor?.isByMeaning ?? !isLate)) {
      by.push('meaning')
      await findByMeaning(look, found, { modelId: model, query: meaning.query, chance: meaning.chance })
    }
  }
  const groups = groupsOf([...found.values()], { ...input, isNumber: isNumber(plan), nowMs })
  const page = groups.slice(firstAfter(groups, cursor, input.sort), undefined).slice(0, limitOf(input))
  const last = page.at(-1)
  const isLast = last === undefined || last === groups.at(-1)
  const isByMeaning = by.includes('meaning')
  return {
    hits: await assembleHits(
      look,
      page.map(([lead]) => lead!),
    ),
    total: groups.length,
    facets: input.facets ? await countFacets(tx, dialect, groups) : {},
    nextCursor: isLast
      ? null
      : writeCursor(cursorAt(last[0]!, input.sort, { nowMs, fingerprint, isByMeaning })),
    understood: formatSearch(query),
    by,
    fellBack: isByMeaning ? null : (fellBackOf(meaning, model) ?? leftOutOf(meaning, { cursor, isLate })),
    answered: groups.some((group) => group.some(({ isWeak }) => !isWeak)),
    didYouMean: cursor === null && hasFewWords(found) ? await didYouMean(look, query) : null,
  }
}

const TOO_LATE = {
  code: 'took-too-long',
  text: 'Looking for the words took long: this search was by words only.',
} as const

const AS_BEFORE = {
  code: 'first-page-by-words',
  text: 'The first page was by words only, and so are those that follow.',
} as const

/** Where it could have been by meaning, and was not. */
function leftOutOf(
  meaning: SearchInput['meaning'],
  { cursor, isLate }: { cursor: Cursor | null; isLate: boolean },
): SearchAnswer['fellBack'] {
  if (meaning === null) return null
  if (cursor !== null) return AS_BEFORE
  return isLate ? TOO_LATE : null
}

function cannotFollow(): TidemarkError {
  return new TidemarkError('The pages before were by meaning too, which this one cannot be.', {
    kind: 'transient',
    code: 'search-changed',
    hint: 'Try again in a while, or ask for the first page again, without a cursor.',
  })
}

/** With enough that has the words there is no need for help. */
function hasFewWords(found: ReadonlyMap<number, Found>): boolean {
  let n = 0
  for (const { words } of found.values()) if (words?.isWhole) n += 1
  return n < FEW_DOCUMENTS
}

/** What `me` stands for: a principal is a service and an address. */
export function addressesOf({ principals }: Reader): string[] {
  const addresses = principals.map((principal) => principal.slice(principal.indexOf(':') + 1))
  return [...new Set(addresses)].filter((address) => wordsOf(address).length > 0).slice(0, PRINCIPALS_MAX)
}

/** Principals that the index does not know see nothing. */
export async function accessOf(tx: Tx, principals: readonly string[], nowMs: number): Promise<Access> {
  const names = [...new Set(principals)].slice(0, PRINCIPALS_MAX)
  if (names.length === 0) return { principalIds: [], nowMs }
  const rows = await tx.all<{ id: number }>(
    `SELECT id FROM search_principals WHERE name IN (${names.map(() => '?').join(', ')}) ORDER BY id`,
    names,
  )
  return { principalIds: rows.map(({ id }) => id), nowMs }
}

function limitOf({ limit }: SearchInput): number {
  return Math.max(1, Math.min(LIMIT_MAX, Math.floor(limit)))
}

async function modelOf(tx: Tx, { model, query }: QueryVector): Promise<number | undefined> {
  const row = await tx.get<{ id: number }>(`SELECT id FROM search_models WHERE name = ? AND dims = ?`, [
    model,
    query.length,
  ])
  return row?.id
}

function fellBackOf(meaning: SearchInput['meaning'], model: number | undefined): SearchAnswer['fellBack'] {
  if (meaning === null) return null
  if ('missing' in meaning) return meaning.missing
  if (model !== undefined) return null
  return {
    code: 'no-vectors',
    text: `Nothing has been embedded by ${meaning.model} yet: this search was by words only.`,
  }
}

// --- By words ---------------------------------------------------------------

async function findByWords(look: Look, found: Map<number, Found>): Promise<void> {
  const { tx, dialect, plan, access, filters } = look
  const { text, leaves, rest } = plan
  const where = allOf([await restCondition(look, rest), filters])
  const matches = await dialect.matches(tx, { access, text, leaves, where })
  for (const match of matches) {
    found.set(match.id, { ...match, words: { score: match.score, coverage: 1, isWhole: true }, near: null })
  }
  // Of what was found all of the query holds: it stands for what has the words only where all of it is asked of what is near.
  if (text !== null && plan.isNearWhole) look.nearWith = [...found.keys()]
  if (matches.length < FEW_DOCUMENTS) await findPartly(look, found)
}

/** What must hold of documents without all words: by a condition, and, where it says something of words, by their list. */
async function nearby(look: Look): Promise<{ where: Condition; among?: readonly number[] }> {
  const { tx, dialect, plan, access, filters } = look
  const { text, rest } = parted(plan.near)
  const where = allOf([await restCondition(look, rest), filters])
  if (text === null) return { where }
  look.nearWith ??= await dialect.visibleWith(tx, text, access)
  return { where, among: look.nearWith }
}

/**
 * What it says of words is looked for among what is visible, once for words and for meaning: as a part of each statement,
 * a word of 85,000 documents that is left out was listed twice, and took 38 of 48 ms where 2,000 are visible.
 */
async function restCondition({ tx, dialect, access, having }: Look, rest: Query): Promise<Condition> {
  for (const tree of textTreesOf(rest)) {
    const key = JSON.stringify(tree)
    if (!having.has(key)) having.set(key, await dialect.visibleWith(tx, tree, access))
  }
  return conditionOf(rest, (tree) => dialect.oneOf('d.id', having.get(JSON.stringify(tree))!))
}

/** Words that stand alone: a phrase in quotes or a field is wanted as it is. */
function bareLeaves({ leaves, text }: Plan): TextLeaf[] {
  const required = text === null ? [] : text.is === 'and' ? text.of : [text]
  return leaves.filter((leaf) => leaf.field === null && !leaf.exact && required.includes(leaf))
}

/**
 * Documents that have most of the words, by their weight: the rarer a word, the more it says. Common words say nothing,
 * and are not looked for: a question is full of them.
 */
async function findPartly(look: Look, found: Map<number, Found>): Promise<void> {
  const { tx, dialect, plan, access } = look
  const leaves = bareLeaves(plan)
  if (leaves.length < 2) return
  const { where, among } = await nearby(look)
  const allowed = among && new Set(among)
  const partly = new Map<number, number>()
  let weightOfAll = 0
  const seen = await countSeen(tx, access)
  for (const leaf of await uncommon(look, leaves)) {
    const having = await dialect.visibleWith(tx, leaf, access)
    const weight = wordWeight({ seen, having: having.length })
    weightOfAll += weight
    for (const id of having) partly.set(id, (partly.get(id) ?? 0) + weight)
  }
  const ids = [...partly.keys()].filter(
    (id) => !found.has(id) && partly.get(id)! / weightOfAll >= PARTIAL_COVERAGE && (allowed?.has(id) ?? true),
  )
  if (ids.length === 0) return
  // By their words, those that have most stand behind all that have all: the scores of the two are not alike.
  const scores = [...found.values()].flatMap(({ words }) => words?.score ?? [])
  const scoreOfAll = scores.length === 0 ? weightOfAll : Math.min(...scores)
  for (const match of await dialect.matches(tx, { access, text: null, leaves: [], where, among: ids })) {
    const coverage = Math.min(PARTIAL_COVERAGE_MAX, partly.get(match.id)! / weightOfAll)
    const words = { score: coverage * scoreOfAll, coverage, isWhole: false }
    found.set(match.id, { ...match, words, near: null })
  }
}

async function uncommon({ tx, dialect }: Look, leaves: readonly TextLeaf[]): Promise<TextLeaf[]> {
  const everything = await dialect.documents(tx)
  if (everything < COMMON_DOCUMENTS_MIN) return [...leaves]
  const telling: TextLeaf[] = []
  for (const leaf of leaves) {
    if ((await dialect.frequency(tx, leaf)) <= everything * COMMON_SHARE) telling.push(leaf)
  }
  return telling
}

// --- By meaning -------------------------------------------------------------

async function findByMeaning(
  look: Look,
  found: Map<number, Found>,
  { modelId, query, chance }: { modelId: number; query: Float32Array; chance: number },
): Promise<void> {
  const { tx, dialect, access } = look
  const near = await dialect.nearest(tx, {
    access,
    ...(await nearby(look)),
    modelId,
    query,
    rescored: RESCORED_CHUNKS,
  })
  // Something is always nearest. Where even that is far, nothing here is about what was asked.
  if (nearness(near[0]?.similarity ?? 0, chance) < NEAREST_MIN) return
  const best = new Map<number, NonNullable<Found['near']>>()
  for (const { n, similarity, docIds } of near.slice(0, NEAREST_CHUNKS)) {
    if (similarity <= chance) break
    for (const id of docIds) if (!best.has(id)) best.set(id, { similarity, chunk: n })
  }
  // What those must fulfil was asked when they were named, in the same snapshot.
  const ids = [...best.keys()].filter((id) => !found.has(id))
  const others = await dialect.matches(tx, { access, text: null, leaves: [], where: ALWAYS, among: ids })
  for (const match of others) found.set(match.id, { ...match, words: null, near: null })
  for (const [id, nearest] of best) {
    const before = found.get(id)
    if (before) found.set(id, { ...before, near: nearest })
  }
}

// --- Order ------------------------------------------------------------------

type Sort = SearchInput['sort']

/** The number of an invoice, the name of a part: it is there or it is not, and what is like it is something else. */
function isNumber({ leaves }: Plan): boolean {
  const asked = leaves.filter(({ field }) => field === null)
  return asked.length > 0 && asked.every(({ typed }) => /\p{Nd}/u.test(typed))
}

type Ordering = Pick<SearchInput, 'sort' | 'copies' | 'meaning' | 'nowMs'> & { isNumber: boolean }

/** Each group with its lead first, in the order of the leads. */
function groupsOf(found: Found[], { sort, copies, meaning, nowMs, isNumber }: Ordering): Ranked[][] {
  const { chance, strong } = meaning && 'chance' in meaning ? meaning : { chance: 0, strong: 1 }
  const bestWords = found.reduce((best, { words }) => Math.max(best, words?.score ?? 0), 0)
  const ranked = found.map((one) => {
    const known = { words: one.words, similarity: one.near?.similarity ?? null, atMs: one.at }
    const parts = rank(known, { bestWords, chance, nowMs })
    const isStrong = one.near !== null && !isNumber && one.near.similarity >= strong
    const isWeak = one.words === null && !isStrong
    return { ...one, parts, total: total(parts), isWeak }
  })
  ranked.sort((a, b) => compare(placeOf(a, sort), placeOf(b, sort)))
  if (copies === 'apart') return ranked.map((one) => [one])
  return [...Map.groupBy(ranked, ({ id, content_id }) => content_id ?? `#${id}`).values()]
}

/** By what a document stands before another, and then by its id. */
type Place = { by: number; id: number }

function placeOf({ total, at, id }: Ranked, sort: Sort): Place {
  if (sort === 'newest') return { by: -(at ?? Number.MIN_SAFE_INTEGER), id: -id }
  if (sort === 'oldest') return { by: at ?? Number.MAX_SAFE_INTEGER, id }
  return { by: -total, id: -id }
}

function compare(a: Place, b: Place): number {
  return a.by - b.by || a.id - b.id
}

function cursorAt(
  lead: Ranked,
  sort: Sort,
  { fingerprint, nowMs, isByMeaning }: Omit<Cursor, 'by' | 'id'>,
): Cursor {
  const { by, id } = placeOf(lead, sort)
  return { fingerprint, nowMs, isByMeaning, by, id }
}

function firstAfter(groups: readonly Ranked[][], cursor: Cursor | null, sort: Sort): number {
  if (cursor === null) return 0
  const at = groups.findIndex(([lead]) => compare(placeOf(lead!, sort), cursor) > 0)
  return at === -1 ? groups.length : at
}
