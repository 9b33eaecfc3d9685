/** Words by FTS5, vectors in rows of many, whose signs are compared here. */
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
  visible,
} from '../index/dialect.ts'
import { scoredByName } from '../index/name-score.ts'
import { type NearCode, nearestByCodes, nearestFirst, type Readable } from '../index/nearest.ts'
import { PART_CHUNKS } from '../index/tables.ts'
import { exactBytes, joinBytes, packVector, signsOf, similarity } from '../index/vectors.ts'
import { COLUMN_WEIGHTS, COMMON_DOCUMENTS_MIN, COMMON_SHARE, wordWeight } from '../query/fuse.ts'
import { type TextField, type TextLeaf, type TextTree, wordLeaf } from '../query/query.ts'
import { WordCounts } from './word-counts.ts'

/** A word that no text has: two parts of a column are no phrase. */
const APART = ' \u01c1 '

const COLUMNS: Record<TextField, string> = {
  title: 'title',
  owner: 'owner',
  from: 'sender',
  to: 'receiver',
  in: 'folders',
}

const W = COLUMN_WEIGHTS
const SCORE = `-bm25(search_words, ${W.title}, ${W.body}, ${W.owner}, ${W.from}, ${W.to}, ${W.folders})`
const COLUMNS_READ = 'd.id, d.content_id, d.at, d.source, d.type, d.owner'

/** What is kept from one search to the next by whoever reads one database only. */
export type ReaderMemory = { codes: CodeCache; counts: WordCounts }

export function newReaderMemory(): ReaderMemory {
  return { codes: new CodeCache(readCodes), counts: new WordCounts() }
}

export function sqliteDialectWith(memory: ReaderMemory): IndexDialect {
  return {
    ...sqliteDialect,
    matches: (tx, request) => matches(tx, request, memory.counts),
    nearest: (tx, request) => nearest(tx, request, memory.codes),
    frequency: (tx, leaf) => frequency(tx, leaf, memory.counts),
    documents: (tx) => memory.counts.documents(tx),
    visibleWith: (tx, tree, access) => visibleWith(tx, { tree, access }, memory.counts),
    visibleOf: (tx, words, access) => visibleOf(tx, { words, access }, memory.counts),
  }
}

export const sqliteDialect: IndexDialect = {
  async putWords(tx, docId, words) {
    await this.dropWords(tx, docId)
    await tx.run(
      `INSERT INTO search_words(rowid, title, body, owner, sender, receiver, folders) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [docId, ...texts(words)],
    )
  },

  async addWords(tx, documents) {
    if (documents.length === 0) return
    await tx.run(
      `INSERT INTO search_words(rowid, title, body, owner, sender, receiver, folders)
       VALUES ${documents.map(() => '(?, ?, ?, ?, ?, ?, ?)').join(', ')}`,
      documents.flatMap(({ docId, words }) => [docId, ...texts(words)]),
    )
  },

  async dropWords(tx, docId) {
    // A deletion writes rows of FTS5's own, whose numbers are the connection's last inserted ones from then on. They are
    // too large for JavaScript, and every statement of others that is run would fail by them, until something is inserted.
    await tx.all(`DELETE FROM search_words WHERE rowid = ?`, [docId])
    await tx.all(`INSERT OR REPLACE INTO search_last(id) VALUES (1)`)
  },

  putVectors,

  async dropVectors(tx, contentId) {
    const models = await tx.all<{ id: number }>(`SELECT id FROM search_models`)
    for (const { id } of models) {
      await tx.run(`DELETE FROM search_codes WHERE model_id = ? AND content_id = ?`, [id, contentId])
      await tx.run(`DELETE FROM search_vectors WHERE model_id = ? AND content_id = ?`, [id, contentId])
    }
  },

  hasWords(tree): Condition {
    return {
      sql: `d.id IN (SELECT rowid FROM search_words WHERE search_words MATCH ?)`,
      params: [matchText(tree)],
    }
  },

  matches: (tx, request) => matches(tx, request, new WordCounts()),
  nearest: (tx, request) => nearest(tx, request, new CodeCache(readCodes)),
  frequency: (tx, leaf) => frequency(tx, leaf, new WordCounts()),
  documents: (tx) => new WordCounts().documents(tx),
  visibleWith: (tx, tree, access) => visibleWith(tx, { tree, access }, new WordCounts()),
  visibleOf: (tx, words, access) => visibleOf(tx, { words, access }, new WordCounts()),

  async having(tx, leaf, docIds) {
    const list = this.oneOf('rowid', docIds)
    const rows = await tx.all<{ rowid: number }>(
      `SELECT rowid FROM search_words WHERE search_words MATCH ? AND ${list.sql}`,
      [matchText(leaf), ...list.params],
    )
    return rows.map(({ rowid }) => rowid)
  },

  oneOf(column, ids): Condition {
    return { sql: `${column} IN (SELECT value FROM json_each(?))`, params: [JSON.stringify(ids)] }
  },

  async vocabulary(tx, { from, to, limit }) {
    const rows = await tx.all<{ term: string }>(
      `SELECT term FROM search_vocabulary WHERE term >= ? AND term < ? LIMIT ?`,
      [from, to, limit],
    )
    return rows.map(({ term }) => term)
  },
}

function texts({ title, body, owner, from, to, folders }: DocumentWords): string[] {
  const joined = (lists: readonly (readonly string[])[]): string =>
    lists.map((list) => list.join(' ')).join(APART)
  return [title.join(' '), joined(body), owner.join(' '), joined(from), joined(to), joined(folders)]
}

/** FTS5's own language. Words are letters and digits only, so that none of them can say anything in it. */
export function matchText(tree: TextTree): string {
  if (tree.is !== 'text') return `(${tree.of.map(matchText).join(tree.is === 'and' ? ' AND ' : ' OR ')})`
  const column = tree.field === null ? '' : `${COLUMNS[tree.field]} : `
  return `${column}"${tree.words.join(' ')}"${tree.prefix ? ' *' : ''}`
}

// --- Who may see what has the words -----------------------------------------

/** With no more documents to see, each of them is looked up in the lists of the words: some 20 µs for each. */
const FEW_VISIBLE = 300
/** Up to so many documents that have the words, access is looked up for each: some 0.3 µs. */
const FEW_MATCHES = 2_000

type Asked = { tree: TextTree; access: Access }

/**
 * `visible` before the document is looked at: most of those that have the words may not be seen. Which way is fast
 * depends on which list is short. A word of 90,000 documents of which 2,000 are visible takes 25 ms by looking up the
 * access of each and 8 ms by going through the list beside that of what is visible; where 100 are visible, 4 ms by
 * looking for those in the word's list.
 */
async function visibleRow(tx: Tx, { tree, access }: Asked, counts: WordCounts): Promise<Condition> {
  const { principalIds, nowMs } = access
  const params = [...principalIds, nowMs]
  const readable = `SELECT a.doc_id FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
    AND (a.expires_at IS NULL OR a.expires_at > ?)`
  if ((await matchesMax(tx, tree, counts)) <= FEW_MATCHES) {
    const sql = `EXISTS (SELECT 1 FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
      AND a.doc_id = search_words.rowid AND (a.expires_at IS NULL OR a.expires_at > ?))`
    return { sql, params }
  }
  // Where a word is only begun, the lists of all that begin so are joined first: once, and not for each document.
  if (hasPrefix(tree)) return { sql: `+search_words.rowid IN (${readable})`, params }
  const few = await tx.all(`${readable} LIMIT ${FEW_VISIBLE + 1}`, params)
  // With a plus sign the list of the words is gone through as a whole, without one each is looked for in it.
  return { sql: `${few.length > FEW_VISIBLE ? '+' : ''}search_words.rowid IN (${readable})`, params }
}

function hasPrefix(tree: TextTree): boolean {
  return tree.is === 'text' ? tree.prefix : tree.of.some(hasPrefix)
}

/** No more documents than this have the words. */
async function matchesMax(tx: Tx, tree: TextTree, counts: WordCounts): Promise<number> {
  const of: number[] = []
  if (tree.is === 'text') {
    const whole = tree.prefix ? tree.words.slice(0, -1) : tree.words
    for (const word of whole) of.push(await counts.of(tx, word))
  } else for (const part of tree.of) of.push(await matchesMax(tx, part, counts))
  if (of.length === 0) return Number.POSITIVE_INFINITY
  return tree.is === 'or' ? of.reduce((sum, n) => sum + n, 0) : Math.min(...of)
}

async function visibleWith(tx: Tx, asked: Asked, counts: WordCounts): Promise<number[]> {
  const may = await visibleRow(tx, asked, counts)
  const row = await tx.get<{ ids: string }>(
    `SELECT json_group_array(rowid) AS ids FROM search_words WHERE search_words MATCH ? AND ${may.sql}`,
    [matchText(asked.tree), ...may.params],
  )
  return JSON.parse(row!.ids) as number[]
}

async function visibleOf(
  tx: Tx,
  { words, access }: { words: readonly string[]; access: Access },
  counts: WordCounts,
): Promise<string[]> {
  const found: string[] = []
  for (const word of words) {
    const tree = wordLeaf(word)
    const may = await visibleRow(tx, { tree, access }, counts)
    const row = await tx.get(
      `SELECT 1 AS one FROM search_words WHERE search_words MATCH ? AND ${may.sql} LIMIT 1`,
      [matchText(tree), ...may.params],
    )
    if (row !== undefined) found.push(word)
  }
  return found
}

// --- By words ---------------------------------------------------------------

async function frequency(tx: Tx, leaf: TextLeaf, counts: WordCounts): Promise<number> {
  if (leaf.words.length === 1 && leaf.field === null && !leaf.prefix) return counts.of(tx, leaf.words[0]!)
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM search_words WHERE search_words MATCH ?`,
    [matchText(leaf)],
  )
  return row!.n
}

async function matches(tx: Tx, request: MatchRequest, counts: WordCounts): Promise<Match[]> {
  const { access, text, leaves, where, among } = request
  if (among) {
    if (among.length === 0) return []
    const all = allOf([sqliteDialect.oneOf('d.id', among), visible(access), where])
    return tx.all<Match>(
      `SELECT ${COLUMNS_READ}, 0.0 AS score FROM search_documents d INDEXED BY search_documents_brief WHERE ${all.sql}`,
      all.params,
    )
  }
  if (text === null) {
    const all = allOf([amongVisible(access), where])
    const rows = await tx.all<Match>(
      `SELECT ${COLUMNS_READ}, 0.0 AS score FROM search_documents d INDEXED BY search_documents_brief WHERE ${all.sql}`,
      all.params,
    )
    if (leaves.length === 0 || rows.length === 0) return rows
    return scored(tx, rows, { access, leaves }, counts)
  }
  const telling = await tellingOf(tx, leaves, counts)
  // How rare the word is, which the score is multiplied with, is the same for all.
  const isAll = leaves.length === 1 && telling.length === 1
  const all = allOf([await visibleRow(tx, { tree: text, access }, counts), where])
  const rows = await tx.all<Match>(
    `SELECT ${COLUMNS_READ}, ${isAll ? SCORE : '0.0'} AS score FROM search_words
     CROSS JOIN search_documents d INDEXED BY search_documents_brief ON d.id = search_words.rowid
     WHERE search_words MATCH ? AND ${all.sql}`,
    [matchText(text), ...all.params],
  )
  if (isAll || rows.length === 0) return rows
  return telling.length > 0
    ? scored(tx, rows, { access, leaves: telling }, counts)
    : scoredByName(tx, sqliteDialect, { rows, leaves })
}

/**
 * Those that tell documents apart. A score makes the index go through the whole list of each word once more; for words
 * that a tenth of all documents have, that is most of a search, and says next to nothing.
 */
async function tellingOf(
  tx: Tx,
  leaves: readonly TextLeaf[],
  counts: WordCounts,
): Promise<readonly TextLeaf[]> {
  const everything = await counts.documents(tx)
  if (everything < COMMON_DOCUMENTS_MIN) return leaves
  const telling: TextLeaf[] = []
  for (const leaf of leaves) {
    if ((await matchesMax(tx, leaf, counts)) <= everything * COMMON_SHARE) telling.push(leaf)
  }
  return telling
}

/**
 * Each word by itself, against the best match of it, and weighed by how rare it is among what the reader sees: the
 * database's own score of several weighs them by how rare they are among all documents.
 */
async function scored(
  tx: Tx,
  rows: Match[],
  { access, leaves }: Pick<MatchRequest, 'access' | 'leaves'>,
  counts: WordCounts,
): Promise<Match[]> {
  const seen = await countSeen(tx, access)
  const scores = new Map<number, number>()
  for (const tree of leaves) {
    const may = await visibleRow(tx, { tree, access }, counts)
    const found = await tx.all<{ id: number; score: number }>(
      `SELECT rowid AS id, ${SCORE} AS score FROM search_words WHERE search_words MATCH ? AND ${may.sql}`,
      [matchText(tree), ...may.params],
    )
    const best = found.reduce((most, { score }) => Math.max(most, score), Number.MIN_VALUE)
    const weight = wordWeight({ seen, having: found.length })
    for (const { id, score } of found) scores.set(id, (scores.get(id) ?? 0) + (weight * score) / best)
  }
  for (const row of rows) row.score = scores.get(row.id) ?? 0
  return rows
}

// --- By meaning -------------------------------------------------------------

async function putVectors(tx: Tx, { modelId, contentId, of }: StoredVectors): Promise<void> {
  for (let part = 0; part * PART_CHUNKS < of.length; part++) {
    const some = of.slice(part * PART_CHUNKS, (part + 1) * PART_CHUNKS)
    const key = [modelId, contentId, part]
    await tx.run(`INSERT INTO search_codes(model_id, content_id, part, codes) VALUES (?, ?, ?, ?)`, [
      ...key,
      joinBytes(some.map(signsOf)),
    ])
    await tx.run(`INSERT INTO search_vectors(model_id, content_id, part, exact) VALUES (?, ?, ?, ?)`, [
      ...key,
      joinBytes(some.map(packVector)),
    ])
  }
}

/** Access first: only codes of what may be seen are gone through. */
async function nearest(tx: Tx, request: NearestRequest, cache: CodeCache): Promise<NearChunk[]> {
  const { few, docIds } = await nearestByCodes(tx, request, { readable: await readable(tx, request), cache })
  const near = await rescore(tx, request, few)
  return near.map((chunk) => ({ ...chunk, docIds: [...docIds.get(chunk.contentId)!] }))
}

const readCodes: ReadCodes = (tx, { modelId, contentIds }) =>
  tx.all(
    `SELECT content_id, codes FROM search_codes
     WHERE model_id = ? AND content_id IN (SELECT value FROM json_each(?)) ORDER BY content_id, part`,
    [modelId, JSON.stringify(contentIds)],
  )

/** Documents and their contents, side by side. As two texts of numbers they come in half the time of rows. */
async function readable(tx: Tx, { access, where, among }: NearestRequest): Promise<Readable> {
  const { principalIds, nowMs } = access
  const lists = `SELECT json_group_array(d.id) AS docs, json_group_array(d.content_id) AS contents`
  const read = async (from: string, all: Condition) => {
    const row = await tx.get<{ docs: string; contents: string }>(
      `${lists} FROM ${from} WHERE d.content_id IS NOT NULL AND ${all.sql}`,
      all.params,
    )
    return { docs: JSON.parse(row!.docs) as number[], contents: JSON.parse(row!.contents) as number[] }
  }
  if (among) {
    const all = allOf([sqliteDialect.oneOf('d.id', among), visible(access), where])
    return read(`search_documents d INDEXED BY search_documents_brief`, all)
  }
  const mine: Condition = {
    sql: `a.principal_id IN (${places(principalIds.length)}) AND (a.expires_at IS NULL OR a.expires_at > ?)`,
    params: [...principalIds, nowMs],
  }
  return read(
    `search_access a CROSS JOIN search_documents d INDEXED BY search_documents_brief ON d.id = a.doc_id`,
    allOf([mine, where]),
  )
}

/** All in one statement, and of each row no more than the one vector: row by row it took twice as long. */
async function rescore(
  tx: Tx,
  { modelId, query }: NearestRequest,
  few: readonly NearCode[],
): Promise<Omit<NearChunk, 'docIds'>[]> {
  const bytes = exactBytes(query.length)
  const rows = await tx.all<{ at: number; exact: Uint8Array }>(
    `SELECT few.key AS at, substr(v.exact, 1 + (few.value ->> 1) % ${PART_CHUNKS} * ${bytes}, ${bytes}) AS exact
     FROM json_each(?) few CROSS JOIN search_vectors v ON v.model_id = ? AND v.content_id = few.value ->> 0
     AND v.part = (few.value ->> 1) / ${PART_CHUNKS}`,
    [JSON.stringify(few.map(({ contentId, n }) => [contentId, n])), modelId],
  )
  return nearestFirst(
    rows.map(({ at, exact }) => ({
      contentId: few[at]!.contentId,
      n: few[at]!.n,
      similarity: similarity(query, exact),
    })),
  )
}
