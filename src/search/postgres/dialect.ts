/**
 * Words as tsvectors that are made here, vectors in a row for each chunk, whose signs the server compares.
 *
 * A tsvector counts positions up to 16,383 and keeps 255 of them for a word, so that phrases far down in a text, or of
 * words that it repeats, would not be found. Its words are therefore in parts that are no longer than that, and each
 * part begins with the last words of the one before.
 */
import type { Tx } from '../../ledger/contract.ts'
import {
  allOf,
  type Condition,
  type DocumentWords,
  type IndexDialect,
  type Match,
  type MatchRequest,
  type NearChunk,
  type NearestRequest,
  type StoredVectors,
  visible,
} from '../index/dialect.ts'
import { codeBytes, packVector, signsOf, similarity } from '../index/vectors.ts'
import { COLUMN_WEIGHTS } from '../query/fuse.ts'
import { PHRASE_WORDS_MAX, type TextField, type TextLeaf, type TextTree } from '../query/query.ts'

const PART_WORDS = 255
/** From one list of words to the next, so that they are no phrase. */
const GAP = 2
const BATCH_PARTS = 200
const BATCH_CHUNKS = 500
/** Of a word, the documents that are noted to have it. */
const HOLDERS_MAX = 3

/** Words of these fields stand a second time under a name of their own; letters and digits have no colon. */
const NAMES: Record<Exclude<TextField, 'title'>, string> = { owner: 'o:', from: 'f:', to: 't:', in: 'i:' }

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
  matches,
  nearest,

  async frequency(tx, leaf) {
    const row = await tx.get<{ n: number }>(
      `SELECT count(DISTINCT doc_id) AS n FROM (SELECT doc_id FROM search_words WHERE words @@ ?::tsquery
       LIMIT ${COUNTED_MAX}) AS counted`,
      [queryText(leaf)],
    )
    return row!.n
  },

  async documents(tx) {
    const row = await tx.get<{ n: number | null }>(`SELECT max(id) AS n FROM search_documents`)
    return row?.n ?? 0
  },

  async visibleWith(tx, tree, access) {
    const where = allOf([hasWords(tree), visible(access)])
    const rows = await tx.all<{ id: number }>(
      `SELECT d.id FROM search_documents d WHERE ${where.sql}`,
      where.params,
    )
    return rows.map(({ id }) => id)
  },

  async isVisible(tx, tree, access) {
    const where = allOf([hasWords(tree), visible(access)])
    const row = await tx.get(
      `SELECT 1 AS one FROM search_documents d WHERE ${where.sql} LIMIT 1`,
      where.params,
    )
    return row !== undefined
  },

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

async function matches(tx: Tx, { access, text, leaves, where, among }: MatchRequest): Promise<Match[]> {
  const conditions = [visible(access), where]
  if (among) conditions.unshift(postgresDialect.oneOf('d.id', among))
  if (text !== null) conditions.unshift(hasWords(text))
  const all = allOf(conditions)
  if (leaves.length === 0) {
    const found = `SELECT ${COLUMNS_READ}, 0.0 AS score FROM search_documents d WHERE ${all.sql}`
    return tx.all<Match>(found, all.params)
  }
  const rows = leaves.map(() => '(?::tsquery)').join(', ')
  return tx.all<Match>(
    `WITH found AS MATERIALIZED (SELECT ${COLUMNS_READ} FROM search_documents d WHERE ${all.sql}),
     every AS (SELECT greatest(reltuples, 1) AS n FROM pg_class WHERE oid = 'search_words'::regclass),
     leaves AS MATERIALIZED (SELECT query, (SELECT count(*) FROM (
         SELECT 1 FROM search_words o WHERE o.words @@ query LIMIT ${COUNTED_MAX}) AS counted) AS n
       FROM (VALUES ${rows}) AS asked(query)),
     ranked AS (SELECT w.doc_id, l.query, l.n, sum(${RANKED}) AS times
       FROM leaves l JOIN search_words w ON w.words @@ l.query AND w.doc_id IN (SELECT id FROM found)
       GROUP BY w.doc_id, l.query, l.n),
     scored AS (SELECT doc_id, sum(ln(1 + greatest(every.n, ranked.n) / (ranked.n + 0.5)) * times / (times + ${SATURATION})) AS score
       FROM ranked, every GROUP BY doc_id)
     SELECT found.*, coalesce(scored.score, 0) AS score FROM found LEFT JOIN scored ON scored.doc_id = found.id`,
    [...all.params, ...leaves.map(queryText)],
  )
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

type ExactRow = { content_id: number; n: number; exact: Uint8Array; doc_ids: string }

/** Access first: only codes of what may be seen are compared. */
async function nearest(tx: Tx, request: NearestRequest): Promise<NearChunk[]> {
  const { access, where, among, modelId, query, rescored } = request
  const all = allOf([...(among ? [postgresDialect.oneOf('d.id', among)] : []), visible(access), where])
  const bits = codeBytes(query.length) * 8
  const rows = await tx.all<ExactRow>(
    `WITH readable AS MATERIALIZED (SELECT d.content_id, d.id FROM search_documents d
       WHERE d.content_id IS NOT NULL AND ${all.sql}),
     few AS MATERIALIZED (SELECT c.content_id, c.n FROM (SELECT DISTINCT content_id FROM readable) AS r
       JOIN search_codes c ON c.model_id = ? AND c.content_id = r.content_id
       ORDER BY bit_count(c.code # ('x' || ?)::bit(${bits})), c.content_id, c.n LIMIT ?)
     SELECT v.content_id, v.n, v.exact, named.doc_ids FROM few
     JOIN (SELECT content_id, json_agg(id)::text AS doc_ids FROM readable
       WHERE content_id IN (SELECT content_id FROM few) GROUP BY content_id) AS named
       ON named.content_id = few.content_id
     JOIN search_vectors v ON v.model_id = ? AND v.content_id = few.content_id AND v.n = few.n`,
    [...all.params, modelId, Buffer.from(signsOf(query)).toString('hex'), rescored, modelId],
  )
  return rows
    .map(({ content_id, n, exact, doc_ids }) => ({
      contentId: content_id,
      n,
      similarity: similarity(query, exact),
      docIds: JSON.parse(doc_ids) as number[],
    }))
    .sort((a, b) => b.similarity - a.similarity || a.contentId - b.contentId || a.n - b.n)
}
