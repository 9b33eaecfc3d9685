/**
 * An index of any size, filled by the index's own writer: documents of words with the frequencies of a language, and
 * vectors at random instead of embedded ones. What is visible to a reader is spread over all of it.
 */
import { seededRandom } from '../../src/base/random.ts'
import type { Tx } from '../../src/ledger/contract.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { Content, NewDocument } from '../../src/search/contract.ts'
import { BUILTIN_MODEL } from '../../src/search/embed/builtin-model.ts'
import { openSearch } from '../../src/search/search.ts'

export const CHUNKS_OF_DOCUMENT = 10
const CHUNK_WORDS = 40
const VOCABULARY = 50_000
const DOCUMENTS_OF_TRANSACTION = 200
const TYPES = ['document', 'pdf', 'mail', 'sheet'] as const
const DAY_MS = 86_400_000
const FIRST_MS = Date.UTC(2022, 0, 1)

/** Raised when what is filled changes. */
export const FILLED_VERSION = 2

export type FillOrder = {
  do: 'fill'
  url: string
  chunks: number
  visible: readonly number[]
  /** After so long it is left as it is; the next order goes on there. */
  msMax: number
}
export type Filled = { seconds: number; chunks: number; isWhole: boolean }

export function readerOf(visible: number): string {
  return `bench:sees-${visible}`
}

/** Words are known by their rank: w1 is in nearly every document, w50000 in hardly any. */
export function word(rank: number): string {
  return `w${rank}`
}

/** Each document is drawn from its own number, so that a fill that was left goes on as if it had not been. */
export async function fill({ url, chunks, visible, msMax }: FillOrder): Promise<Filled> {
  const from = performance.now()
  const ledger = await openLedger(url, { synchronous: 'NORMAL' })
  const search = openSearch({ ledger })
  await search.prepare()
  const documents = chunks / CHUNKS_OF_DOCUMENT
  let filled = await search.countRange({ source: SOURCE, prefix: REF_PREFIX })
  const written = ledger.dialect === 'postgres' ? Math.min(documents, WRITTEN_BEFORE_COPYING) : documents
  while (filled < written && performance.now() - from < msMax) {
    const batch = Array.from({ length: Math.min(DOCUMENTS_OF_TRANSACTION, written - filled) }, (_, at) =>
      documentOf(filled + at),
    )
    await ledger.transaction(async (tx) => {
      const options = { principal: EVERYTHING, grant: GRANT, isEmbedded: true }
      await search.append(
        tx,
        batch.map(({ document }) => document),
        options,
      )
      for (const { document, vectors } of batch) {
        const row = await tx.get<{ content_id: number }>(
          `SELECT content_id FROM search_documents WHERE source = ? AND ref = ?`,
          [SOURCE, document.ref],
        )
        await search.addVectors(tx, row!.content_id, vectors)
      }
    })
    filled += batch.length
  }
  for (; filled >= written && filled < documents && performance.now() - from < msMax; filled += written) {
    await ledger.transaction((tx) => copyRows(tx, { written, offset: filled }))
  }
  const isWhole = filled >= documents
  if (isWhole) {
    await ledger.transaction(async (tx) => {
      for (const one of visible) await grantSome(tx, readerOf(one), documents / (one / CHUNKS_OF_DOCUMENT))
    })
  }
  await ledger.close()
  return { seconds: (performance.now() - from) / 1000, chunks: filled * CHUNKS_OF_DOCUMENT, isWhole }
}

const SOURCE = 'bench'
const REF_PREFIX = 'd'
const EVERYTHING = 'bench:sees-everything'
/** On PostgreSQL a document takes some statements, each a way to the server and back. */
const WRITTEN_BEFORE_COPYING = 1_000

/** All rows of the first documents once more, with other numbers. */
async function copyRows(tx: Tx, { written, offset }: { written: number; offset: number }): Promise<void> {
  const document = `content_id + ${offset}, type, at, title, owner, folders, people, mime_type, url, created_at, modified_at,
    size, version`
  const copied: Record<string, { key: string; columns: string; moved?: string }> = {
    search_documents: {
      key: 'id',
      columns: `source, ref, ${document.replace(` + ${offset}`, '')}`,
      moved: `source, '${REF_PREFIX}' || substr(ref, 2)::bigint + ${offset}, ${document}`,
    },
    search_contents: {
      key: 'id',
      columns: 'key, title, chunk_count, is_truncated',
      moved: `key || '-' || ${offset}, title, chunk_count, is_truncated`,
    },
    search_chunks: { key: 'content_id', columns: 'n, text, headings, place' },
    search_vectors: { key: 'content_id', columns: 'model_id, n, exact' },
    search_codes: { key: 'content_id', columns: 'model_id, n, code' },
    search_embedded: { key: 'content_id', columns: 'model_id' },
    search_words: { key: 'doc_id', columns: 'part, words' },
    search_folders: { key: 'doc_id', columns: 'name' },
    search_access: { key: 'doc_id', columns: 'principal_id, expires_at, generation, kind, via' },
  }
  for (const [table, { key, columns, moved = columns }] of Object.entries(copied)) {
    await tx.run(
      `INSERT INTO ${table}(${key}, ${columns})
       SELECT ${key} + ${offset}, ${moved} FROM ${table} WHERE ${key} <= ${written}`,
    )
  }
}

/** Every so many documents, where that is not so already. */
async function grantSome(tx: Tx, principal: string, step: number): Promise<void> {
  if (await tx.get(`SELECT 1 AS known FROM search_principals WHERE name = ?`, [principal])) return
  const row = await tx.get<{ id: number }>(`INSERT INTO search_principals(name) VALUES (?) RETURNING id`, [
    principal,
  ])
  await tx.run(
    `INSERT INTO search_access(principal_id, doc_id, expires_at, generation, kind, via)
     SELECT ?, id, NULL, 1, 'reader', 'a member of the bench' FROM search_documents WHERE id % ? = 0`,
    [row!.id, step],
  )
}

const GRANT = { kind: 'reader', via: 'a member of the bench', generation: 1, expiresAtMs: null } as const

function documentOf(number: number): {
  document: NewDocument
  vectors: NonNullable<Content['vectors']>
} {
  const random = seededRandom(number)
  const chunks = Array.from({ length: CHUNKS_OF_DOCUMENT }, (_, n) => ({
    n,
    text: wordsOf(CHUNK_WORDS, random),
    headings: [],
    place: { kind: 'none' as const },
  }))
  const document: NewDocument = {
    source: SOURCE,
    ref: `${REF_PREFIX}${number}`,
    title: wordsOf(5, random),
    type: TYPES[number % TYPES.length]!,
    mimeType: 'text/plain',
    owner: `person${number % 200}@example.com`,
    people: [],
    folders: [`folder ${number % 500}`],
    url: '',
    createdAtMs: null,
    modifiedAtMs: FIRST_MS + (number % 1_400) * DAY_MS,
    sizeBytes: 4_000,
    version: '1',
    content: { key: `bench-${number}`, chunks, isTruncated: false },
  }
  return { document, vectors: { model: BUILTIN_MODEL.id, of: chunks.map(() => randomVector(random)) } }
}

/** By Zipf's law: the n-th word comes about 1/n as often as the first. */
function wordsOf(count: number, random: () => number): string {
  return Array.from({ length: count }, () => word(Math.floor(VOCABULARY ** random()))).join(' ')
}

/** Four numbers of each draw: a fill would draw a billion times otherwise. Flat instead of bell-shaped is near enough. */
function randomVector(random: () => number): Float32Array {
  const vector = new Float32Array(BUILTIN_MODEL.dims)
  let sum = 0
  for (let at = 0; at < vector.length; at += 4) {
    const draw = Math.floor(random() * 2 ** 32)
    for (let byte = 0; byte < 4; byte++) {
      const value = ((draw >>> (8 * byte)) & 0xff) - 127.5
      vector[at + byte] = value
      sum += value * value
    }
  }
  const factor = 1 / Math.sqrt(sum)
  for (let at = 0; at < vector.length; at++) vector[at]! *= factor
  return vector
}
