/** What is read of the index besides searches. Each statement has the reader's access in it. */
import type { Tx } from '../../ledger/contract.ts'
import type { Coverage, DocumentRef, DocumentType, Grant, ReadDocument, Reader } from '../contract.ts'
import { amongVisible, type IndexDialect, visible } from '../index/dialect.ts'
import { wordsOf } from '../index/words.ts'
import { readAccess, readCopies, toChunk } from './hits.ts'
import { accessOf, searchIndex } from './search-index.ts'
import { VisibleWords } from './visible-words.ts'

/** Everything that is read, by name: so that a thread can be asked for it. */
export const INDEX_READS = {
  search: searchIndex,
  read: readDocument,
  find: findDocument,
  suggest: suggestFor,
  coverage: readCoverage,
  who: whoCanSee,
} as const

export type IndexReads = typeof INDEX_READS
export type ReadName = keyof IndexReads

/** By whose eyes, and the database's time. */
export type ReadBy = { reader: Reader; nowMs: number }

const CHUNKS_MAX = 200
const GRANTS_MAX = 100_000
const SUGGESTIONS_MAX = 20
/** Words of the index that are tried until enough are visible, before the reader's documents are. */
const WORDS_TRIED_MAX = 60

type FullRow = {
  id: number
  source: string
  ref: string
  content_id: number | null
  title: string
  type: DocumentType
  owner: string
  folders: string
  url: string
  mime_type: string
  created_at: number | null
  modified_at: number | null
  size: number | null
  unread_code: string | null
  unread_reason: string | null
  chunk_count: number | null
  is_truncated: number | null
}

export async function readDocument(
  tx: Tx,
  dialect: IndexDialect,
  { id, reader, nowMs, page }: ReadBy & { id: number; page: { fromChunk: number; limit: number } },
): Promise<ReadDocument | undefined> {
  const access = await accessOf(tx, reader.principals, nowMs)
  const may = visible(access)
  const row = await tx.get<FullRow>(
    `SELECT d.id, d.source, d.ref, d.content_id, d.title, d.type, d.owner, d.folders, d.url, d.mime_type, d.created_at,
       d.modified_at, d.size, d.unread_code, d.unread_reason, c.chunk_count, c.is_truncated
     FROM search_documents d LEFT JOIN search_contents c ON c.id = d.content_id WHERE d.id = ? AND ${may.sql}`,
    [id, ...may.params],
  )
  if (!row) return undefined
  const chunks = await tx.all<{ n: number; text: string; headings: string; place: string }>(
    `SELECT n, text, headings, place FROM search_chunks WHERE content_id = ? AND n >= ? ORDER BY n LIMIT ?`,
    [row.content_id ?? 0, page.fromChunk, Math.min(page.limit, CHUNKS_MAX)],
  )
  return {
    id: row.id,
    source: row.source,
    ref: row.ref,
    title: row.title,
    type: row.type,
    owner: row.owner,
    folders: JSON.parse(row.folders) as string[],
    url: row.url,
    modifiedAtMs: row.modified_at,
    alsoIn: (await readCopies({ tx, dialect, access }, [row])).get(id) ?? [],
    mimeType: row.mime_type,
    createdAtMs: row.created_at,
    sizeBytes: row.size,
    unread: row.unread_code === null ? null : { code: row.unread_code, reason: row.unread_reason ?? '' },
    isTruncated: row.is_truncated === 1,
    chunks: chunks.map(toChunk),
    chunkCount: row.chunk_count ?? 0,
    access: (await readAccess(tx, dialect, access, [id])).get(id) ?? [],
  }
}

export async function findDocument(
  tx: Tx,
  _dialect: IndexDialect,
  { document, reader, nowMs }: ReadBy & { document: DocumentRef },
): Promise<number | undefined> {
  const may = visible(await accessOf(tx, reader.principals, nowMs))
  const row = await tx.get<{ id: number }>(
    `SELECT d.id FROM search_documents d WHERE d.source = ? AND d.ref = ? AND ${may.sql}`,
    [document.source, document.ref, ...may.params],
  )
  return row?.id
}

export async function suggestFor(
  tx: Tx,
  dialect: IndexDialect,
  { text, reader, nowMs, limit }: ReadBy & { text: string; limit: number },
): Promise<{ text: string; kind: 'word' | 'title' }[]> {
  const access = await accessOf(tx, reader.principals, nowMs)
  const words = wordsOf(text)
  const last = words.at(-1)
  if (last === undefined || access.principalIds.length === 0) return []
  const max = Math.min(limit, SUGGESTIONS_MAX)
  const may = visible(access)
  const begun = dialect.hasWords({
    is: 'and',
    of: words.map((word, i) => ({
      is: 'text',
      field: 'title',
      words: [word],
      prefix: i === words.length - 1,
      exact: false,
      typed: word,
    })),
  })
  const titles = await tx.all<{ title: string }>(
    `SELECT DISTINCT d.title FROM search_documents d WHERE ${begun.sql} AND ${may.sql} ORDER BY d.title LIMIT ?`,
    [...begun.params, ...may.params, max],
  )
  const before = text.slice(0, text.length - lastTyped(text).length)
  const own = await new VisibleWords({ tx, dialect, access }).beginning({
    start: last,
    tried: WORDS_TRIED_MAX,
    isWanted: (word) => word !== last,
    enough: max,
  })
  const found = own.map((word) => ({ text: `${before}${word}`, kind: 'word' as const }))
  return [...found, ...titles.map(({ title }) => ({ text: title, kind: 'title' as const }))].slice(0, 2 * max)
}

function lastTyped(text: string): string {
  return /\S*$/.exec(text)?.[0] ?? ''
}

export async function readCoverage(
  tx: Tx,
  _dialect: IndexDialect,
  { reader, nowMs, model }: ReadBy & { model: string | null },
): Promise<Coverage[]> {
  const may = amongVisible(await accessOf(tx, reader.principals, nowMs))
  const rows = await tx.all<Omit<Coverage, 'unread'> & { by_words: number; by_meaning: number }>(
    `SELECT d.source, count(*) AS documents, count(d.content_id) AS by_words,
       sum(CASE WHEN EXISTS (SELECT 1 FROM search_embedded e JOIN search_models m ON m.id = e.model_id
         WHERE m.name = ? AND e.content_id = d.content_id) THEN 1 ELSE 0 END) AS by_meaning
     FROM search_documents d WHERE ${may.sql} GROUP BY d.source ORDER BY d.source`,
    [model ?? '', ...may.params],
  )
  const unread = await tx.all<{ source: string; code: string; count: number }>(
    `SELECT d.source, d.unread_code AS code, count(*) AS count FROM search_documents d
     WHERE d.unread_code IS NOT NULL AND ${may.sql} GROUP BY d.source, d.unread_code ORDER BY count DESC, code`,
    may.params,
  )
  return rows.map(({ source, documents, by_words, by_meaning }) => ({
    source,
    documents,
    byWords: by_words,
    byMeaning: by_meaning,
    unread: unread.filter((row) => row.source === source).map(({ code, count }) => ({ code, count })),
  }))
}

type WhoRow = { principal: string; kind: Grant['kind']; via: string; expires_at: number | null }

/** For admins: no reader is asked for. What lets see nothing for now is left out. */
export async function whoCanSee(tx: Tx, _dialect: IndexDialect, id: number) {
  const rows = await tx.all<WhoRow>(
    `SELECT p.name AS principal, a.kind, a.via, a.expires_at FROM search_access a
     JOIN search_principals p ON p.id = a.principal_id WHERE a.doc_id = ? AND (a.expires_at IS NULL OR a.expires_at <> 0)
     ORDER BY p.name LIMIT ${GRANTS_MAX}`,
    [id],
  )
  return rows.map(({ principal, kind, via, expires_at }) => ({
    principal,
    kind,
    via,
    expiresAtMs: expires_at,
  }))
}
