/**
 * Words as tsvectors that are made here, vectors in a row for each chunk. Of readers who see much, the server compares
 * their signs; of all others they are compared here, where they are kept from one search to the next: for 20,000 chunks
 * that takes a tenth of the server's time.
 *
 * A tsvector counts positions up to 16,383 and keeps 255 of them for a word, so that phrases far down in a text, or of
 * words that it repeats, would not be found. Its words are therefore in parts that are no longer than that, and each
 * part begins with the last words of the one before.
 */
import type { Tx } from '../../ledger/contract.ts'
import { CodeCache, type ReadCodes } from '../index/code-cache.ts'
import {
  type Access,
  allOf,
  amongVisible,
  type Condition,
  countSeen,
  type DocumentWords,
  type IndexDialect,
  type Match,
  type MatchRequest,
  type NearChunk,
  type NearestRequest,
  places,
  type StoredVectors,
} from '../index/dialect.ts'
import { scoredByName } from '../index/name-score.ts'
import { type NearCode, nearestByCodes, nearestFirst, type Readable } from '../index/nearest.ts'
import { codeBytes, packVector, signsOf, similarity } from '../index/vectors.ts'
import { COLUMN_WEIGHTS, COMMON_DOCUMENTS_MIN, COMMON_SHARE, wordWeight } from '../query/fuse.ts'
import { PHRASE_WORDS_MAX, type TextField, type TextLeaf, type TextTree, wordLeaf } from '../query/query.ts'
import { FrequentWords } from './frequent-words.ts'

const PART_WORDS = 255
/** From one list of words to the next, so that they are no phrase. */
const GAP = 2
const BATCH_PARTS = 200
const BATCH_CHUNKS = 500
/** Of a word, the documents that are noted to have it. */
const HOLDERS_MAX = 3

/** Words of these fields stand a second time under a name of their own; letters and digits have no colon. */
const NAMES: Record<Exclude<TextField, 'title'>, string> = { owner: 'o:', from: 'f:', to: 't:', in: 'i:' }

/** What is kept from one search to the next by whoever reads one database only. */
type ReaderMemory = { codes: CodeCache; frequent: FrequentWords }

/** `comparedMax`: for tests. */
export function newPostgresDialect({ comparedMax = COMPARED_CONTENTS_MAX } = {}): IndexDialect {
  const memory: ReaderMemory = { codes: new CodeCache(readCodes), frequent: new FrequentWords() }
  return {
    ...postgresDialect,
    matches: (tx, request) => matches(tx, request, memory.frequent),
    nearest: (tx, request) => nearest(tx, request, { cache: memory.codes, comparedMax }),
    frequency: (tx, leaf) => frequency(tx, leaf, memory.frequent),
    documents: (tx) => memory.frequent.documents(tx),
  }
}

export const postgresDialect: IndexDialect = {
  putWords,
  addWords,

  async dropWords(tx, docId) {
    await tx.run(`DELETE FROM search_words WHERE doc_id = ?`, [docId])
    await dropVocabulary(tx, docId, [])
  },

  putVectors,

  async dropVectors(tx, contentId) {
    const models = await tx.all<{ id: number }>(`SELECT id FROM search_models`)
    for (const { id } of models) {
      await tx.run(`DELETE FROM search_codes WHERE model_id = ? AND content_id = ?`, [id, contentId])
      await tx.run(`DELETE FROM search_vectors WHERE model_id = ? AND content_id = ?`, [id, contentId])
    }
  },

  hasWords,
  matches: (tx, request) => matches(tx, request, new FrequentWords()),
  nearest: (tx, request) =>
    nearest(tx, request, { cache: new CodeCache(readCodes), comparedMax: COMPARED_CONTENTS_MAX }),
  frequency: (tx, leaf) => frequency(tx, leaf, new FrequentWords()),
  documents: (tx) => new FrequentWords().documents(tx),

  async visibleWith(tx, tree, access) {
    const where = allOf([hasWords(tree), amongVisible(access)])
    const rows = await tx.all<{ id: number }>(
      `SELECT d.id FROM search_documents d WHERE ${where.sql}`,
      where.params,
    )
    return rows.map(({ id }) => id)
  },

  visibleOf,

  async having(tx, leaf, docIds) {
    const list = this.oneOf('doc_id', docIds)
    const rows = await tx.all<{ doc_id: number }>(
      `SELECT DISTINCT doc_id FROM search_words WHERE ${list.sql} AND words @@ ?::tsquery`,
      [...list.params, queryText(leaf)],
    )
    return rows.map(({ doc_id }) => doc_id)
  },

  oneOf(column, ids): Condition {
    return { sql: `${column} = ANY (?::bigint[])`, params: [`{${ids.join(',')}}`] }
  },

  async vocabulary(tx, { from, to, limit }) {
    const rows = await tx.all<{ word: string }>(
      `SELECT DISTINCT word FROM search_vocabulary WHERE word >= ? AND word < ? ORDER BY word LIMIT ?`,
      [from, to, limit],
    )
    return rows.map(({ word }) => word)
  },
}

async function putWords(tx: Tx, docId: number, words: DocumentWords): Promise<void> {
  await tx.run(`DELETE FROM search_words WHERE doc_id = ?`, [docId])
  const parts = partsOf(words)
  for (let from = 0; from < parts.length; from += BATCH_PARTS) {
    const rows = parts.slice(from, from + BATCH_PARTS).map((vector, i) => ({ part: from + i, words: vector }))
    await tx.run(
      `INSERT INTO search_words(doc_id, part, words)
       SELECT ?, part, words::tsvector FROM json_to_recordset(?::json) AS t(part bigint, words text)`,
      [docId, JSON.stringify(rows)],
    )
  }
  const distinct = distinctWords(words)
  await dropVocabulary(tx, docId, distinct)
  await tx.run(
    `INSERT INTO search_vocabulary(word, doc_id) SELECT word, ? FROM json_array_elements_text(?::json) AS t(word)
     WHERE (SELECT count(*) FROM (SELECT 1 FROM search_vocabulary v WHERE v.word = t.word LIMIT ${HOLDERS_MAX}) AS held)
       < ${HOLDERS_MAX} AND NOT EXISTS (SELECT 1 FROM search_vocabulary v WHERE v.word = t.word AND v.doc_id = ?)`,
    [docId, JSON.stringify(distinct), docId],
  )
}

/**
 * The document holds no words any more but these. For a word that nobody holds then, another document that has it is
 * looked for: of the words of a document that are few, because frequent ones are held by several. (Of two that let go of
 * the same word at once, each counts on the other: then it is not suggested until a document with it comes again.)
 */
async function dropVocabulary(tx: Tx, docId: number, kept: readonly string[]): Promise<void> {
  await tx.run(
    `WITH gone AS (DELETE FROM search_vocabulary WHERE doc_id = ?
       AND word NOT IN (SELECT json_array_elements_text(?::json)) RETURNING word),
     alone AS (SELECT word FROM gone WHERE NOT EXISTS (
       SELECT 1 FROM search_vocabulary v WHERE v.word = gone.word AND v.doc_id <> ?))
     INSERT INTO search_vocabulary(word, doc_id) SELECT word, held.doc_id FROM alone CROSS JOIN LATERAL (
       SELECT w.doc_id FROM search_words w WHERE w.words @@ quote_literal(alone.word)::tsquery AND w.doc_id <> ?
       LIMIT 1) AS held`,
    [docId, JSON.stringify(kept), docId, docId],
  )
}

async function addWords(
  tx: Tx,
  documents: readonly { docId: number; words: DocumentWords }[],
): Promise<void> {
  const rows = documents.flatMap(({ docId, words }) =>
    partsOf(words).map((vector, part) => ({ doc_id: docId, part, words: vector })),
  )
  for (let from = 0; from < rows.length; from += BATCH_PARTS) {
    await tx.run(
      `INSERT INTO search_words(doc_id, part, words) SELECT doc_id, part, words::tsvector
       FROM json_to_recordset(?::json) AS t(doc_id bigint, part bigint, words text)`,
      [JSON.stringify(rows.slice(from, from + BATCH_PARTS))],
    )
  }
  await addVocabulary(tx, documents)
}

/** Of new documents: each word is held by the first ones that have it, until enough hold it. */
async function addVocabulary(
  tx: Tx,
  documents: readonly { docId: number; words: DocumentWords }[],
): Promise<void> {
  const holders = new Map<string, number[]>()
  for (const { docId, words } of documents) {
    for (const word of distinctWords(words)) {
      const held = holders.get(word)
      if (!held) holders.set(word, [docId])
      else if (held.length < HOLDERS_MAX) held.push(docId)
    }
  }
  const rows = [...holders].sort().flatMap(([word, held]) => held.map((doc_id, n) => ({ word, doc_id, n })))
  await tx.run(
    `INSERT INTO search_vocabulary(word, doc_id) SELECT t.word, t.doc_id
     FROM json_to_recordset(?::json) AS t(word text, doc_id bigint, n bigint)
     WHERE t.n + (SELECT count(*) FROM (SELECT 1 FROM search_vocabulary v WHERE v.word = t.word LIMIT ${HOLDERS_MAX}) AS held)
       < ${HOLDERS_MAX}`,
    [JSON.stringify(rows)],
  )
}

function distinctWords({ title, owner, from, to, folders, body }: DocumentWords): string[] {
  return [...new Set([title, owner, from.flat(), to.flat(), folders.flat(), body.flat()].flat())].sort()
}

type Weight = 'A' | 'B' | 'C' | 'D'

/** Texts of tsvectors: `'plan':1A,7 'o:ann':3B`. */
function partsOf({ title, owner, from, to, folders, body }: DocumentWords): string[] {
  const parts = new Parts()
  parts.add(title, 'A')
  parts.add(owner, 'B', NAMES.owner)
  for (const list of from) parts.add(list, 'B', NAMES.from)
  for (const list of to) parts.add(list, 'B', NAMES.to)
  for (const list of folders) parts.add(list, 'C', NAMES.in)
  for (const list of body) parts.add(list, 'D')
  return parts.end()
}

class Parts {
  readonly #done: string[] = []
  #places = new Map<string, string[]>()
  #at = 0
  #words = 0

  add(list: readonly string[], weight: Weight, name?: string): void {
    const step = PART_WORDS - PHRASE_WORDS_MAX
    for (let from = 0; from < list.length; from += step) {
      const some = list.slice(from, from + PART_WORDS)
      if (this.#words + some.length > PART_WORDS) this.#close()
      for (const word of some) {
        this.#at += 1
        this.#note(word, weight)
        if (name !== undefined) this.#note(`${name}${word}`, weight)
      }
      this.#words += some.length
      this.#at += GAP
      if (from + PART_WORDS >= list.length) break
    }
  }

  end(): string[] {
    if (this.#places.size > 0) this.#close()
    return this.#done
  }

  #note(lexeme: string, weight: Weight): void {
    const place = weight === 'D' ? `${this.#at}` : `${this.#at}${weight}`
    const places = this.#places.get(lexeme)
    if (places) places.push(place)
    else this.#places.set(lexeme, [place])
  }

  #close(): void {
    const lexemes = Array.from(this.#places, ([lexeme, places]) => `'${lexeme}':${places.join(',')}`)
    if (lexemes.length > 0) this.#done.push(lexemes.join(' '))
    this.#places = new Map()
    this.#at = 0
    this.#words = 0
  }
}

/** Parts of a document may each have some of its words: each is asked for by itself. */
function hasWords(tree: TextTree): Condition {
  if (tree.is === 'text') {
    return {
      sql: `d.id IN (SELECT w.doc_id FROM search_words w WHERE w.words @@ ?::tsquery)`,
      params: [queryText(tree)],
    }
  }
  const of = tree.of.map(hasWords)
  return {
    sql: `(${of.map(({ sql }) => sql).join(tree.is === 'and' ? ' AND ' : ' OR ')})`,
    params: of.flatMap(({ params }) => params),
  }
}

/**
 * All in one statement, and of each word a few of its documents first: most words that are asked for are rare, and of
 * those that are not, one of these is mostly visible. Word by word, and begun with the documents, each took 40 ms.
 */
async function visibleOf(tx: Tx, words: readonly string[], access: Access): Promise<string[]> {
  const { principalIds, nowMs } = access
  const rows = await tx.all<{ word: string; n: number; seen: number | null }>(
    `SELECT asked.word, few.n, few.seen FROM json_array_elements_text(?::json) WITH ORDINALITY AS asked(word, at)
     CROSS JOIN LATERAL (SELECT count(*) AS n, max(CASE WHEN EXISTS (SELECT 1 FROM search_access a
         WHERE a.principal_id IN (${places(principalIds.length)}) AND a.doc_id = held.doc_id
         AND (a.expires_at IS NULL OR a.expires_at > ?)) THEN 1 END) AS seen
       FROM (SELECT w.doc_id FROM search_words w WHERE w.words @@ quote_literal(asked.word)::tsquery
         LIMIT ${LOOKED_AT_MAX}) AS held) AS few
     ORDER BY asked.at`,
    [JSON.stringify(words), ...principalIds, nowMs],
  )
  const found: string[] = []
  for (const { word, n, seen } of rows) {
    if (seen !== null || (n >= LOOKED_AT_MAX && (await isVisible(tx, word, access)))) found.push(word)
  }
  return found
}

const LOOKED_AT_MAX = 200

/**
 * Begun with the documents of the word. Begun with those of the reader, the words of each are opened to look for one that
 * may be in none of them: for somebody who sees 20,000 documents a second, and spelling help asks for up to 60 words.
 */
async function isVisible(tx: Tx, word: string, { principalIds, nowMs }: Access): Promise<boolean> {
  const row = await tx.get(
    `SELECT 1 AS one FROM (SELECT w.doc_id FROM search_words w WHERE w.words @@ ?::tsquery OFFSET 0) AS held
     WHERE EXISTS (SELECT 1 FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
       AND a.doc_id = held.doc_id AND (a.expires_at IS NULL OR a.expires_at > ?)) LIMIT 1`,
    [queryText(wordLeaf(word)), ...principalIds, nowMs],
  )
  return row !== undefined
}

/** Words are letters and digits only, so that none of them can say anything in the language of tsquery. */
function queryText({ field, words, prefix }: TextLeaf): string {
  const name = field === null || field === 'title' ? '' : NAMES[field]
  const labels = field === 'title' ? 'A' : ''
  return words
    .map((word, i) => {
      const flags = `${prefix && i === words.length - 1 ? '*' : ''}${labels}`
      return `'${name}${word}'${flags === '' ? '' : `:${flags}`}`
    })
    .join(' <-> ')
}

const COLUMNS_READ = 'd.id, d.content_id, d.at, d.source, d.type, d.owner'
/** A word that more parts than this have is a common one, however many more they are. */
const COUNTED_MAX = 5_000
/** As in BM25: how soon a word that comes again adds little. */
const SATURATION = 1.2
const W = COLUMN_WEIGHTS
/** Of D, C, B and A. A rank of one word at one place is its weight × 0.61; brought back to 1 for the body. */
const RANKED = `ts_rank('{${0.1 * W.body}, ${0.1 * W.folders}, ${0.1 * W.owner}, ${Math.min(1, 0.1 * W.title)}}', w.words, l.query) * 16.45`

async function frequency(tx: Tx, leaf: TextLeaf, frequent: FrequentWords): Promise<number> {
  if (leaf.words.length === 1 && leaf.field === null && !leaf.prefix) {
    const known = await frequent.of(tx, leaf.words[0]!)
    if (known !== undefined) return known
  }
  const row = await tx.get<{ n: number }>(
    `SELECT count(DISTINCT doc_id) AS n FROM (SELECT doc_id FROM search_words WHERE words @@ ?::tsquery
     LIMIT ${COUNTED_MAX}) AS counted`,
    [queryText(leaf)],
  )
  return row!.n
}

async function matches(
  tx: Tx,
  { access, text, leaves, where, among }: MatchRequest,
  frequent: FrequentWords,
): Promise<Match[]> {
  const conditions = [amongVisible(access), where]
  if (among) {
    if (among.length === 0) return []
    conditions.unshift(postgresDialect.oneOf('d.id', among))
  }
  if (text !== null) conditions.unshift(hasWords(text))
  const all = allOf(conditions)
  const rows = await tx.all<Match>(
    `SELECT ${COLUMNS_READ}, 0::float8 AS score FROM search_documents d WHERE ${all.sql}`,
    all.params,
  )
  if (leaves.length === 0 || rows.length === 0) return rows
  const telling = await tellingOf(tx, leaves, frequent)
  return telling.length > 0
    ? scored(tx, rows, { access, leaves: telling })
    : scoredByName(tx, postgresDialect, { rows, leaves })
}

/** Those that tell documents apart: of one that a tenth of all documents have, ranking them says next to nothing. */
async function tellingOf(
  tx: Tx,
  leaves: readonly TextLeaf[],
  frequent: FrequentWords,
): Promise<readonly TextLeaf[]> {
  const everything = await frequent.documents(tx)
  if (everything < COMMON_DOCUMENTS_MIN) return leaves
  const telling: TextLeaf[] = []
  for (const leaf of leaves) {
    // A phrase is no more frequent than any word of it.
    const of = await Promise.all(leaf.words.map((word) => frequent.of(tx, word)))
    const isCommon = !leaf.prefix && of.every((n) => n !== undefined && n > everything * COMMON_SHARE)
    if (!isCommon) telling.push(leaf)
  }
  return telling
}

/** Each word weighed by how rare it is among what the reader sees. */
async function scored(
  tx: Tx,
  rows: Match[],
  { access, leaves }: Pick<MatchRequest, 'access' | 'leaves'>,
): Promise<Match[]> {
  const seen = await countSeen(tx, access)
  const list = postgresDialect.oneOf(
    'w.doc_id',
    rows.map(({ id }) => id),
  )
  const scores = new Map<number, number>()
  for (const leaf of leaves) {
    const found = await tx.all<{ id: number; times: number }>(
      `SELECT w.doc_id AS id, sum(${RANKED}) AS times FROM search_words w CROSS JOIN (SELECT ?::tsquery AS query) AS l
       WHERE w.words @@ ?::tsquery AND ${list.sql} GROUP BY w.doc_id`,
      [queryText(leaf), queryText(leaf), ...list.params],
    )
    // Of one word, how rare it is is the same for all.
    const having = leaves.length === 1 ? found.length : await countVisible(tx, leaf, access)
    const weight = wordWeight({ seen, having })
    for (const { id, times } of found) {
      scores.set(id, (scores.get(id) ?? 0) + (weight * times) / (times + SATURATION))
    }
  }
  for (const row of rows) row.score = scores.get(row.id) ?? 0
  return rows
}

async function countVisible(tx: Tx, leaf: TextLeaf, access: Access): Promise<number> {
  const { principalIds, nowMs } = access
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT DISTINCT w.doc_id FROM search_words w
       JOIN search_access a ON a.doc_id = w.doc_id AND a.principal_id IN (${places(principalIds.length)})
         AND (a.expires_at IS NULL OR a.expires_at > ?)
       WHERE w.words @@ ?::tsquery LIMIT ${COUNTED_MAX}) AS counted`,
    [...principalIds, nowMs, queryText(leaf)],
  )
  return row!.n
}

async function putVectors(tx: Tx, { modelId, contentId, of }: StoredVectors): Promise<void> {
  for (let from = 0; from < of.length; from += BATCH_CHUNKS) {
    const rows = of.slice(from, from + BATCH_CHUNKS).map((vector, i) => ({
      n: from + i,
      code: Buffer.from(signsOf(vector)).toString('hex'),
      exact: Buffer.from(packVector(vector)).toString('hex'),
    }))
    const json = JSON.stringify(rows)
    await tx.run(
      `INSERT INTO search_codes(model_id, content_id, n, code)
       SELECT ?, ?, n, ('x' || code)::bit varying FROM json_to_recordset(?::json) AS t(n bigint, code text)`,
      [modelId, contentId, json],
    )
    await tx.run(
      `INSERT INTO search_vectors(model_id, content_id, n, exact)
       SELECT ?, ?, n, decode(exact, 'hex') FROM json_to_recordset(?::json) AS t(n bigint, exact text)`,
      [modelId, contentId, json],
    )
  }
}

/** Of contents of ten chunks, comparing as many takes some 15 ms here, a tenth of it at a time. */
const COMPARED_CONTENTS_MAX = 20_000

/** Access first: only codes of what may be seen are compared. */
async function nearest(
  tx: Tx,
  request: NearestRequest,
  { cache, comparedMax }: { cache: CodeCache; comparedMax: number },
): Promise<NearChunk[]> {
  const found = await readable(tx, request, comparedMax)
  const { few, docIds } =
    found.contents.length > comparedMax
      ? await nearestByServer(tx, request)
      : await nearestByCodes(tx, request, { readable: found, cache })
  const near = await rescore(tx, request, few)
  return near.map((chunk) => ({ ...chunk, docIds: [...docIds.get(chunk.contentId)!] }))
}

const readCodes: ReadCodes = (tx, { modelId, contentIds }) => {
  const list = postgresDialect.oneOf('content_id', contentIds)
  // What is sent of a bit string begins with its length, in four bytes.
  return tx.all(
    `SELECT content_id, string_agg(substring(varbit_send(code) FROM 5), ''::bytea ORDER BY n) AS codes
     FROM search_codes WHERE model_id = ? AND ${list.sql} GROUP BY content_id`,
    [modelId, ...list.params],
  )
}

function readableCondition({ access, where, among }: NearestRequest): Condition {
  return allOf([
    ...(among ? [postgresDialect.oneOf('d.id', among)] : []),
    amongVisible(access),
    where,
    { sql: 'd.content_id IS NOT NULL', params: [] },
  ])
}

/** No more than tell that there are too many to be compared here. */
async function readable(tx: Tx, request: NearestRequest, comparedMax: number): Promise<Readable> {
  const all = readableCondition(request)
  const row = await tx.get<{ docs: string; contents: string }>(
    `SELECT coalesce(json_agg(id), '[]')::text AS docs, coalesce(json_agg(content_id), '[]')::text AS contents
     FROM (SELECT d.id, d.content_id FROM search_documents d WHERE ${all.sql}
       LIMIT ${comparedMax + 1}) AS readable`,
    all.params,
  )
  return { docs: JSON.parse(row!.docs) as number[], contents: JSON.parse(row!.contents) as number[] }
}

async function nearestByServer(
  tx: Tx,
  request: NearestRequest,
): Promise<{ few: readonly NearCode[]; docIds: ReadonlyMap<number, ReadonlySet<number>> }> {
  const { modelId, query, rescored } = request
  const all = readableCondition(request)
  const bits = codeBytes(query.length) * 8
  const rows = await tx.all<{ content_id: number; n: number; doc_ids: string }>(
    `WITH readable AS MATERIALIZED (SELECT d.content_id, d.id FROM search_documents d WHERE ${all.sql}),
     few AS MATERIALIZED (SELECT c.content_id, c.n FROM (SELECT DISTINCT content_id FROM readable) AS r
       JOIN search_codes c ON c.model_id = ? AND c.content_id = r.content_id
       ORDER BY bit_count(c.code # ('x' || ?)::bit(${bits})), c.content_id, c.n LIMIT ?)
     SELECT few.content_id, few.n, named.doc_ids FROM few
     JOIN (SELECT content_id, json_agg(id)::text AS doc_ids FROM readable
       WHERE content_id IN (SELECT content_id FROM few) GROUP BY content_id) AS named
       ON named.content_id = few.content_id`,
    [...all.params, modelId, Buffer.from(signsOf(query)).toString('hex'), rescored],
  )
  return {
    few: rows.map(({ content_id, n }) => ({ contentId: content_id, n })),
    docIds: new Map(
      rows.map(({ content_id, doc_ids }) => [content_id, new Set(JSON.parse(doc_ids) as number[])]),
    ),
  }
}

async function rescore(
  tx: Tx,
  { modelId, query }: NearestRequest,
  few: readonly NearCode[],
): Promise<Omit<NearChunk, 'docIds'>[]> {
  const rows = await tx.all<{ content_id: number; n: number; exact: Uint8Array }>(
    `SELECT v.content_id, v.n, v.exact FROM unnest(?::bigint[], ?::bigint[]) AS few(content_id, n)
     JOIN search_vectors v ON v.model_id = ? AND v.content_id = few.content_id AND v.n = few.n`,
    [`{${few.map(({ contentId }) => contentId).join(',')}}`, `{${few.map(({ n }) => n).join(',')}}`, modelId],
  )
  return nearestFirst(
    rows.map(({ content_id, n, exact }) => ({
      contentId: content_id,
      n,
      similarity: similarity(query, exact),
    })),
  )
}
