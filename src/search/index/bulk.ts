/**
 * Many documents at once, for sources that know that theirs are new: records of files, by the thousand. What `publish`
 * does for one in some ten statements is done here for a hundred in seven. Each has a content of its own, which nobody
 * shares, so that nothing is looked for.
 *
 * Documents whose refs begin alike are a range (`RefRange`): it is revealed, hidden and removed as a whole.
 */
import { TidemarkError } from '../../base/errors.ts'
import type { Tx, Value } from '../../ledger/contract.ts'
import type { AppendOptions, Grant, NewDocument, RefRange } from '../contract.ts'
import { type IndexDialect, places } from './dialect.ts'
import { clean, columnsOf } from './document-row.ts'
import { documentWords } from './document-words.ts'

/** Of 22 values each: SQLite takes 32,766 in one statement. */
const ROWS_MAX = 200

export type Appended = { document: NewDocument; docId: number }

export async function appendDocuments(
  tx: Tx,
  dialect: IndexDialect,
  documents: readonly NewDocument[],
  options: AppendOptions & { principalId: number | null },
): Promise<void> {
  for (let from = 0; from < documents.length; from += ROWS_MAX) {
    await appendSome(tx, dialect, documents.slice(from, from + ROWS_MAX), options)
  }
}

async function appendSome(
  tx: Tx,
  dialect: IndexDialect,
  documents: readonly NewDocument[],
  { isEmbedded, grant, principalId }: AppendOptions & { principalId: number | null },
): Promise<void> {
  const contents = await putContents(tx, documents, isEmbedded)
  const ids = await putDocuments(tx, documents, contents)
  const appended = documents.map((document) => ({ document, docId: ids.get(document.ref)! }))
  await dialect.addWords(
    tx,
    appended.map(({ document, docId }) => ({ docId, words: documentWords(document, chunksOf(document)) })),
  )
  const folders = appended.flatMap(({ document, docId }) =>
    [...new Set(document.folders.map(clean))].map((name) => [docId, name]),
  )
  await putRows(tx, 'search_folders(doc_id, name)', folders)
  if (principalId === null || grant === undefined) return
  const access = appended.map(({ docId }) => [principalId, docId, ...grantValues(grant)])
  await putRows(tx, `search_access(principal_id, doc_id, ${GRANT_COLUMNS})`, access)
}

const GRANT_COLUMNS = 'expires_at, generation, kind, via'

function grantValues({ expiresAtMs, generation, kind, via }: Grant): Value[] {
  return [expiresAtMs, generation, kind, via]
}

function chunksOf({ content }: NewDocument) {
  return content && 'chunks' in content ? content.chunks : []
}

async function putContents(
  tx: Tx,
  documents: readonly NewDocument[],
  isEmbedded: boolean,
): Promise<ReadonlyMap<string, number>> {
  const own = documents.flatMap(({ content, title }) =>
    content && 'chunks' in content ? [{ content, title }] : [],
  )
  const rows = own.map(({ content, title }) => [
    content.key,
    clean(title),
    content.chunks.length,
    content.isTruncated ? 1 : 0,
    isEmbedded ? 1 : 0,
  ])
  const ids = await putNumbered(tx, {
    into: 'search_contents(key, title, chunk_count, is_truncated, is_embedded)',
    key: 'key',
    rows,
  })
  const chunks = own.flatMap(({ content }) =>
    content.chunks.map(({ n, text, headings, place }) => [
      ids.get(content.key)!,
      n,
      clean(text),
      clean(JSON.stringify(headings)),
      clean(JSON.stringify(place)),
    ]),
  )
  await putRows(tx, 'search_chunks(content_id, n, text, headings, place)', chunks)
  return ids
}

async function putDocuments(
  tx: Tx,
  documents: readonly NewDocument[],
  contents: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  const rows = documents.map((document) => [
    document.source,
    document.ref,
    (document.content && contents.get(document.content.key)) ?? null,
    ...Object.values(columnsOf(document)),
  ])
  const names = Object.keys(columnsOf(documents[0]!))
  const into = `search_documents(source, ref, content_id, ${names.join(', ')})`
  return putNumbered(tx, { into, key: 'ref', rows })
}

type Numbered = { into: string; key: string; rows: readonly (readonly Value[])[] }

/** The numbers that the rows got, by their keys: neither database promises in which order it answers. */
async function putNumbered(tx: Tx, { into, key, rows }: Numbered): Promise<ReadonlyMap<string, number>> {
  if (rows.length === 0) return new Map()
  const got = await tx.all<{ id: number; name: string }>(
    `INSERT INTO ${into} VALUES ${tuples(rows)} RETURNING id, ${key} AS name`,
    rows.flat(),
  )
  if (got.length !== rows.length) {
    throw new TidemarkError(`Of ${rows.length} new rows in ${into}, ${got.length} were written.`, {
      kind: 'bug',
    })
  }
  return new Map(got.map(({ id, name }) => [name, Number(id)]))
}

async function putRows(tx: Tx, into: string, rows: readonly (readonly Value[])[]): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_MAX) {
    const some = rows.slice(from, from + ROWS_MAX)
    await tx.run(`INSERT INTO ${into} VALUES ${tuples(some)}`, some.flat())
  }
}

function tuples(rows: readonly (readonly Value[])[]): string {
  const one = `(${places(rows[0]!.length)})`
  return rows.map(() => one).join(', ')
}

// --- Ranges ------------------------------------------------------------------------------------------------------

/** From the prefix to the first text behind all that begin with it. */
function bounds({ source, prefix }: RefRange): [string, string, string] {
  const last = prefix.length - 1
  return [source, prefix, `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) + 1)}`]
}

const IN_RANGE = 'd.source = ? AND d.ref >= ? AND d.ref < ?'

export async function countRange(tx: Tx, range: RefRange): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM search_documents d WHERE ${IN_RANGE}`,
    bounds(range),
  )
  return Number(row?.n ?? 0)
}

/** Those of the prefixes with which a document begins. */
export async function knownPrefixes(tx: Tx, source: string, prefixes: readonly string[]): Promise<string[]> {
  if (prefixes.length === 0) return []
  const given = prefixes.map((prefix) => {
    const [, from, to] = bounds({ source, prefix })
    return { low: from, high: to }
  })
  const isSqlite = tx.dialect === 'sqlite'
  const table = isSqlite
    ? `(SELECT json_extract(value, '$.low') AS low, json_extract(value, '$.high') AS high FROM json_each(?)) p`
    : `jsonb_to_recordset(?::jsonb) AS p(low text, high text)`
  const within = `SELECT 1 FROM search_documents d WHERE d.source = ? AND d.ref >= p.low AND d.ref < p.high`
  // As a join PostgreSQL compares each prefix with every document, as long as it believes that there are few of them.
  const found = isSqlite
    ? `WHERE EXISTS (${within})`
    : `CROSS JOIN LATERAL (${within} ORDER BY d.ref LIMIT 1) AS first`
  const rows = await tx.all<{ low: string }>(`SELECT p.low FROM ${table} ${found}`, [
    JSON.stringify(given),
    source,
  ])
  return rows.map(({ low }) => low)
}

export function revealRange(tx: Tx, range: RefRange, principalId: number, grant: Grant): Promise<number> {
  return tx.run(
    `INSERT INTO search_access(principal_id, doc_id, ${GRANT_COLUMNS})
     SELECT ${numberOf(tx)}, d.id, ${tx.dialect === 'sqlite' ? '?, ?, ?, ?' : '?::bigint, ?::bigint, ?::text, ?::text'}
     FROM search_documents d WHERE ${IN_RANGE} ON CONFLICT DO NOTHING`,
    [principalId, ...grantValues(grant), ...bounds(range)],
  )
}

/** PostgreSQL wants to know what a value in a list of columns is. */
function numberOf({ dialect }: Tx): string {
  return dialect === 'sqlite' ? '?' : '?::bigint'
}

export function hideRange(tx: Tx, range: RefRange, principalId: number): Promise<number> {
  return tx.run(
    `DELETE FROM search_access WHERE principal_id = ? AND doc_id IN (
       SELECT d.id FROM search_documents d WHERE ${IN_RANGE})`,
    [principalId, ...bounds(range)],
  )
}

/** Of contents that no other document shares: see the head of this file. */
export async function removeRange(
  tx: Tx,
  dialect: IndexDialect,
  range: RefRange,
  limit: number,
): Promise<number> {
  const rows = await tx.all<{ id: number; content_id: number | null }>(
    `SELECT d.id, d.content_id FROM search_documents d WHERE ${IN_RANGE} ORDER BY d.ref LIMIT ?`,
    [...bounds(range), Math.min(limit, ROWS_MAX)],
  )
  if (rows.length === 0) return 0
  const ids = rows.map(({ id }) => Number(id))
  const of = (column: string, numbers: readonly number[]) => dialect.oneOf(column, numbers)
  const drop = async (table: string, column: string, numbers: readonly number[]): Promise<void> => {
    const list = of(column, numbers)
    await tx.run(`DELETE FROM ${table} WHERE ${list.sql}`, list.params)
  }
  await drop('search_access', 'doc_id', ids)
  await drop('search_folders', 'doc_id', ids)
  for (const id of ids) await dialect.dropWords(tx, id)
  await drop('search_documents', 'id', ids)
  const contents = rows.flatMap(({ content_id }) => (content_id === null ? [] : [Number(content_id)]))
  for (const { id } of await tx.all<{ id: number }>(`SELECT id FROM search_models`)) {
    for (const table of ['search_codes', 'search_vectors', 'search_embedded']) {
      const list = of('content_id', contents)
      await tx.run(`DELETE FROM ${table} WHERE model_id = ? AND ${list.sql}`, [id, ...list.params])
    }
  }
  await drop('search_chunks', 'content_id', contents)
  await drop('search_contents', 'id', contents)
  return rows.length
}
