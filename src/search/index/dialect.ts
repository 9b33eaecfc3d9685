/** What the two databases do differently: how words and vectors are kept, and looked for. */
import type { Tx, Value } from '../../ledger/contract.ts'
import type { TextLeaf, TextTree } from '../query/query.ts'

/** The words of a document by where they stand; no phrase goes from one list to the next. */
export type DocumentWords = {
  title: readonly string[]
  owner: readonly string[]
  from: readonly (readonly string[])[]
  to: readonly (readonly string[])[]
  folders: readonly (readonly string[])[]
  body: readonly (readonly string[])[]
}

export type Condition = { sql: string; params: readonly Value[] }

export type StoredVectors = { modelId: number; contentId: number; of: readonly Float32Array[] }

/** Through whose eyes, and when: access that has expired is none. */
export type Access = { principalIds: readonly number[]; nowMs: number }

export type MatchRequest = {
  access: Access
  /** All of it must hold; null where nothing is said of words. */
  text: TextTree | null
  /** By what the score is made. */
  leaves: readonly TextLeaf[]
  /** Of documents as `d`. */
  where: Condition
  /** Only these documents, which are few: it begins with them. */
  among?: readonly number[]
}

export type Match = {
  id: number
  content_id: number | null
  at: number | null
  source: string
  type: string
  owner: string
  /** How well its words match: more is better, 0 where nothing is said of words. */
  score: number
}

export type NearestRequest = {
  access: Access
  where: Condition
  /** Only these documents. */
  among?: readonly number[]
  modelId: number
  query: Float32Array
  /** How many of the nearest by their signs are compared exactly. */
  rescored: number
}

/** `docIds`: the documents with this content that were asked for. */
export type NearChunk = { contentId: number; n: number; similarity: number; docIds: readonly number[] }

export interface IndexDialect {
  /** In the place of what the document had. */
  putWords(tx: Tx, docId: number, words: DocumentWords): Promise<void>
  /** Of documents that had none. */
  addWords(tx: Tx, documents: readonly { docId: number; words: DocumentWords }[]): Promise<void>
  dropWords(tx: Tx, docId: number): Promise<void>
  putVectors(tx: Tx, vectors: StoredVectors): Promise<void>
  /** Of all models. */
  dropVectors(tx: Tx, contentId: number): Promise<void>
  /** Whether the document `d` has these words. */
  hasWords(tree: TextTree): Condition
  matches(tx: Tx, request: MatchRequest): Promise<Match[]>
  /** Of all documents, how many have the words, to tell common ones; no further than COUNTED_MAX on PostgreSQL. */
  frequency(tx: Tx, leaf: TextLeaf): Promise<number>
  /** How many documents there are, about. */
  documents(tx: Tx): Promise<number>
  /** The visible documents that have the words. */
  visibleWith(tx: Tx, tree: TextTree, access: Access): Promise<number[]>
  /** Of these words, those that a document has which the reader sees. */
  visibleOf(tx: Tx, words: readonly string[], access: Access): Promise<string[]>
  /** Which of these documents have the words. They are known to be visible. */
  having(tx: Tx, leaf: TextLeaf, docIds: readonly number[]): Promise<number[]>
  /** `column IN` a list of numbers, whatever its length. */
  oneOf(column: string, ids: readonly number[]): Condition
  /** The nearest chunks, the nearest first. */
  nearest(tx: Tx, request: NearestRequest): Promise<NearChunk[]>
  /** Words of the whole index, in order, from `from` on and before `to`; who offers them asks first who may see them. */
  vocabulary(tx: Tx, range: { from: string; to: string; limit: number }): Promise<string[]>
}

/** Every statement that reads documents has this in it. */
export function visible({ principalIds, nowMs }: Access): Condition {
  const sql = `EXISTS (SELECT 1 FROM search_access a WHERE a.doc_id = d.id
    AND a.principal_id IN (${places(principalIds.length)}) AND (a.expires_at IS NULL OR a.expires_at > ?))`
  return { sql, params: [...principalIds, nowMs] }
}

/** The same for a statement that begins with what is visible. */
export function amongVisible({ principalIds, nowMs }: Access): Condition {
  const sql = `d.id IN (SELECT a.doc_id FROM search_access a
    WHERE a.principal_id IN (${places(principalIds.length)}) AND (a.expires_at IS NULL OR a.expires_at > ?))`
  return { sql, params: [...principalIds, nowMs] }
}

/** More than these weigh as much. */
const SEEN_COUNTED_MAX = 10_000

/** How many documents the reader sees, for `wordWeight`. */
export async function countSeen(tx: Tx, { principalIds, nowMs }: Access): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT DISTINCT a.doc_id FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
     AND (a.expires_at IS NULL OR a.expires_at > ?) LIMIT ${SEEN_COUNTED_MAX}) AS seen`,
    [...principalIds, nowMs],
  )
  return Number(row!.n)
}

/** `?, ?, ?`; of nothing a value that nothing equals. */
export function places(n: number): string {
  return n === 0 ? 'NULL' : Array.from({ length: n }, () => '?').join(', ')
}

export const ALWAYS: Condition = { sql: 'TRUE', params: [] }

export function allOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 0) return ALWAYS
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    params: conditions.flatMap(({ params }) => params),
  }
}
