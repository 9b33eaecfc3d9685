/** Words by FTS5, vectors in rows of many, whose signs are compared here. */
import type { Tx } from '../../ledger/contract.ts'
import {
  type Access,
  allOf,
  amongVisible,
  type Condition,
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
import { PART_CHUNKS } from '../index/tables.ts'
import {
  agreement,
  codeBytes,
  exactBytes,
  joinBytes,
  packVector,
  signsOf,
  signTable,
  similarity,
} from '../index/vectors.ts'
import { COLUMN_WEIGHTS } from '../query/fuse.ts'
import type { TextField, TextLeaf, TextTree } from '../query/query.ts'
import { CodeCache } from './code-cache.ts'
import { NearestFew } from './nearest-few.ts'

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

/** `codes`: kept from one search to the next by whoever reads one database only. */
export function sqliteDialectWith(codes: CodeCache): IndexDialect {
  return { ...sqliteDialect, nearest: (tx, request) => nearest(tx, request, codes) }
}

export const sqliteDialect: IndexDialect = {
  async putWords(tx, docId, words) {
    await this.dropWords(tx, docId)
    await tx.run(
      `INSERT INTO search_words(rowid, title, body, owner, sender, receiver, folders) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [docId, ...texts(words)],
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

  matches,
  nearest: (tx, request) => nearest(tx, request, new CodeCache()),

  async frequency(tx, leaf) {
    const { words, field, prefix } = leaf
    const isWord = words.length === 1 && field === null && !prefix
    const row = isWord
      ? await tx.get<{ n: number }>(`SELECT doc AS n FROM search_vocabulary WHERE term = ?`, [words[0]!])
      : await tx.get<{ n: number }>(`SELECT count(*) AS n FROM search_words WHERE search_words MATCH ?`, [
          matchText(leaf),
        ])
    return row?.n ?? 0
  },

  async visibleWith(tx, leaf, access) {
    const may = visibleRow(access)
    const rows = await tx.all<{ rowid: number }>(
      `SELECT rowid FROM search_words WHERE search_words MATCH ? AND ${may.sql}`,
      [matchText(leaf), ...may.params],
    )
    return rows.map(({ rowid }) => rowid)
  },

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

/** `visible` before the document is looked at: most of those that have the words may not be seen. */
function visibleRow({ principalIds, nowMs }: Access): Condition {
  const sql = `EXISTS (SELECT 1 FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
    AND a.doc_id = search_words.rowid AND (a.expires_at IS NULL OR a.expires_at > ?))`
  return { sql, params: [...principalIds, nowMs] }
}

/** Access is looked up for each document that has the words; where nothing is said of words, access comes first. */
async function matches(tx: Tx, { access, text, leaves, where, among }: MatchRequest): Promise<Match[]> {
  if (among) {
    const list = sqliteDialect.oneOf(among.column, among.ids)
    const all = allOf([list, visible(access), where])
    return tx.all<Match>(
      `SELECT ${COLUMNS_READ}, 0.0 AS score FROM search_documents d WHERE ${all.sql}`,
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
    return withScores(tx, { access, text: anyOf(leaves), leaves, where }, rows)
  }
  const all = allOf([visibleRow(access), where])
  return tx.all<Match>(
    `SELECT ${COLUMNS_READ}, ${SCORE} AS score FROM search_words
     CROSS JOIN search_documents d INDEXED BY search_documents_brief ON d.id = search_words.rowid
     WHERE search_words MATCH ? AND ${all.sql}`,
    [matchText(text), ...all.params],
  )
}

function anyOf(leaves: readonly TextLeaf[]): TextTree {
  return leaves.length === 1 ? leaves[0]! : { is: 'or', of: leaves }
}

async function withScores(tx: Tx, request: MatchRequest, rows: Match[]): Promise<Match[]> {
  const scores = new Map((await matches(tx, request)).map(({ id, score }) => [id, score]))
  return rows.map((row) => ({ ...row, score: scores.get(row.id) ?? 0 }))
}

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
  const { access, where, modelId, query, rescored } = request
  const all = allOf([amongVisible(access), where])
  const rows = await tx.all<{ content_id: number }>(
    `SELECT d.content_id FROM search_documents d INDEXED BY search_documents_brief
     WHERE d.content_id IS NOT NULL AND ${all.sql}`,
    all.params,
  )
  const table = signTable(query)
  const few = new NearestFew(rescored)
  // Copies of one content have the same codes.
  const contentIds = [...new Set(rows.map(({ content_id }) => content_id))]
  const step = codeBytes(query.length)
  for await (const { contentId, codes } of cache.of(tx, modelId, contentIds)) {
    const bytes = new Uint8Array(codes.buffer, codes.byteOffset, codes.byteLength)
    for (let at = 0, n = 0; at < bytes.length; at += step, n++) {
      few.offer(-agreement(table, bytes, at), contentId, n)
    }
  }
  return rescore(tx, request, few.all())
}

/** Of one content; more parts would be 262,144 chunks. */
const PARTS_MAX = 4_096

async function rescore(
  tx: Tx,
  { modelId, query }: NearestRequest,
  few: readonly { contentId: number; n: number }[],
): Promise<NearChunk[]> {
  const near: NearChunk[] = []
  const parts = Map.groupBy(few, ({ contentId, n }) => contentId * PARTS_MAX + Math.floor(n / PART_CHUNKS))
  for (const [key, chunks] of parts) {
    const row = await tx.get<{ exact: Uint8Array }>(
      `SELECT exact FROM search_vectors WHERE model_id = ? AND content_id = ? AND part = ?`,
      [modelId, Math.floor(key / PARTS_MAX), key % PARTS_MAX],
    )
    if (!row) continue
    for (const { contentId, n } of chunks) {
      const from = (n % PART_CHUNKS) * exactBytes(query.length)
      near.push({ contentId, n, similarity: similarity(query, row.exact, from) })
    }
  }
  return near.sort((a, b) => b.similarity - a.similarity || a.contentId - b.contentId || a.n - b.n)
}
