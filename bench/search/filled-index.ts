/**
 * An index of any size, filled by the index's own writer: documents of words with the frequencies of a language, and
 * vectors at random instead of embedded ones. What is visible to a reader is spread over all of it.
 */
import { copyFileSync, existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../src/base/random.ts'
import type { Tx } from '../../src/ledger/contract.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { NewDocument } from '../../src/search/contract.ts'
import { BUILTIN_MODEL } from '../../src/search/embed/builtin-model.ts'
import { openSearch } from '../../src/search/search.ts'
import { benchFolder } from '../machine.ts'

export const CHUNKS_OF_DOCUMENT = 10
const CHUNK_WORDS = 40
const VOCABULARY = 50_000
const DOCUMENTS_OF_TRANSACTION = 200
const TYPES = ['document', 'pdf', 'mail', 'sheet'] as const
const DAY_MS = 86_400_000
const FIRST_MS = Date.UTC(2022, 0, 1)

export type FillOrder = { do: 'fill'; url: string; chunks: number; visible: readonly number[] }
export type Filled = { seconds: number }

export function readerOf(visible: number): string {
  return `bench:sees-${visible}`
}

/** Words are known by their rank: w1 is in nearly every document, w50000 in hardly any. */
export function word(rank: number): string {
  return `w${rank}`
}

/** Raised when what is filled changes. */
const FILLED_VERSION = 1
/** Filling a million chunks takes minutes, and gives the same each time: large indexes are kept for the next run. */
const KEPT_CHUNKS_MIN = 100_000

export async function fill(order: FillOrder): Promise<Filled> {
  const from = performance.now()
  const { url, chunks, visible } = order
  if (!url.startsWith('sqlite:') || chunks < KEPT_CHUNKS_MIN) await fillAnew(order)
  else {
    const file = url.slice('sqlite:'.length)
    const name = `tidemark-bench-kept-search-${FILLED_VERSION}-${chunks}-${visible.join('-')}.db`
    const kept = join(benchFolder(), name)
    if (existsSync(kept)) copyFileSync(kept, file)
    else {
      await fillAnew(order)
      copyFileSync(file, `${kept}.part`)
      renameSync(`${kept}.part`, kept)
    }
  }
  return { seconds: (performance.now() - from) / 1000 }
}

async function fillAnew({ url, chunks, visible }: FillOrder): Promise<void> {
  const random = seededRandom(7)
  const ledger = await openLedger(url, { synchronous: 'NORMAL' })
  const search = openSearch({ ledger })
  await search.prepare()
  const documents = chunks / CHUNKS_OF_DOCUMENT
  const written = ledger.dialect === 'postgres' ? Math.min(documents, WRITTEN_BEFORE_COPYING) : documents
  for (let first = 0; first < written; first += DOCUMENTS_OF_TRANSACTION) {
    const last = Math.min(written, first + DOCUMENTS_OF_TRANSACTION)
    const batch = Array.from({ length: last - first }, (_, at) => documentOf(first + at, random))
    await ledger.transaction(async (tx) => {
      for (const document of batch) {
        await search.publish(tx, document)
        await search.grant(tx, document, EVERYTHING, GRANT)
      }
    })
  }
  await ledger.transaction(async (tx) => {
    for (let copies = 1; copies * written < documents; copies++) await copyRows(tx, copies * written)
    for (const one of visible) await grantSome(tx, readerOf(one), documents / (one / CHUNKS_OF_DOCUMENT))
  })
  await ledger.close()
}

const EVERYTHING = 'bench:sees-everything'
/** On PostgreSQL a document takes some forty statements, each a way to the server and back. */
const WRITTEN_BEFORE_COPYING = 500

/** All rows of the first documents once more, with other numbers. */
async function copyRows(tx: Tx, offset: number): Promise<void> {
  const first = `<= ${WRITTEN_BEFORE_COPYING}`
  const copied: Record<string, { key: string; columns: string; moved: string }> = {
    search_documents: {
      key: 'id',
      columns: `source, ref, content_id, type, at, title, owner, folders, people, mime_type, url, created_at,
        modified_at, size, version`,
      moved: `source, (ref::bigint + ${offset})::text, content_id + ${offset}, type, at, title, owner, folders,
        people, mime_type, url, created_at, modified_at, size, version`,
    },
    search_contents: {
      key: 'id',
      columns: 'key, title, chunk_count, is_truncated',
      moved: `key || '-' || ${offset}, title, chunk_count, is_truncated`,
    },
    search_chunks: ofContent('n, text, headings, place'),
    search_vectors: ofContent('model_id, n, exact'),
    search_codes: ofContent('model_id, n, code'),
    search_embedded: ofContent('model_id'),
    search_words: ofDocument('part, words'),
    search_folders: ofDocument('name'),
    search_access: ofDocument('principal_id, expires_at, generation, kind, via'),
  }
  for (const [table, { key, columns, moved }] of Object.entries(copied)) {
    await tx.run(
      `INSERT INTO ${table}(${key}, ${columns}) SELECT ${key} + ${offset}, ${moved} FROM ${table} WHERE ${key} ${first}`,
    )
  }
}

function ofContent(columns: string) {
  return { key: 'content_id', columns, moved: columns }
}

function ofDocument(columns: string) {
  return { key: 'doc_id', columns, moved: columns }
}

/** Every so many documents. */
async function grantSome(tx: Tx, principal: string, step: number): Promise<void> {
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

function documentOf(number: number, random: () => number): NewDocument {
  const chunks = Array.from({ length: CHUNKS_OF_DOCUMENT }, (_, n) => ({
    n,
    text: wordsOf(CHUNK_WORDS, random),
    headings: [],
    place: { kind: 'none' as const },
  }))
  return {
    source: 'bench',
    ref: String(number),
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
    content: {
      key: `bench-${number}`,
      chunks,
      isTruncated: false,
      vectors: { model: BUILTIN_MODEL.id, of: chunks.map(() => randomVector(random)) },
    },
  }
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
