/**
 * Words that begin alike, of what a reader may see. Who sees little has the words of that. For others the index's list of
 * words is asked, which is of everybody's documents, and those of others may fill any number of its first places: where
 * they do, the newest of the reader's own documents are asked for the rest.
 */
import type { Tx } from '../../ledger/contract.ts'
import { type Access, allOf, type IndexDialect, places, visible } from '../index/dialect.ts'
import { wordsOf } from '../index/words.ts'
import { wordLeaf } from './query.ts'

/**
 * Up to so many documents and chunks, all words are read: some 10 ms, once for a search. To go through the index's list
 * for each word that may be misspelt took 30 to 60 ms of a search in which the reader sees 100 of 100,000 documents.
 */
const ALL_DOCUMENTS_MAX = 100
const ALL_CHUNKS_MAX = 1_000
/** Of others, the newest that have such a word, and of those so many chunks. */
const DOCUMENTS_MAX = 40
const CHUNKS_MAX = 400
/** Words of the list that are asked for, so many at once, and the letters from which on documents are asked. */
const CHECKED_MAX = 60
const CHECKED_AT_ONCE = 20
const START_CHARS_MIN = 3

export type WordsWanted = {
  start: string
  /** Words of the index that are looked at before documents are. */
  tried: number
  /** Those that are wanted, in the order of the alphabet; `enough` of them end the search. */
  isWanted: (word: string) => boolean
  enough: number
}

type At = { tx: Tx; dialect: IndexDialect; access: Access }

/** Of one reader, in one snapshot. */
export class VisibleWords {
  readonly #at: At
  #all: Promise<readonly string[] | undefined> | undefined

  constructor({ tx, dialect, access }: At) {
    this.#at = { tx, dialect, access }
  }

  async beginning({ start, tried, isWanted, enough }: WordsWanted): Promise<string[]> {
    const { tx, dialect, access } = this.#at
    this.#all ??= allWords(this.#at)
    const all = await this.#all
    if (all) return all.filter((word) => word.startsWith(start) && isWanted(word)).slice(0, enough)
    const listed = await dialect.vocabulary(tx, { from: start, to: `${start}\u{10ffff}`, limit: tried })
    const found: string[] = []
    const wanted = listed.filter(isWanted).slice(0, CHECKED_MAX)
    for (let from = 0; from < wanted.length && found.length < enough; from += CHECKED_AT_ONCE) {
      found.push(...(await dialect.visibleOf(tx, wanted.slice(from, from + CHECKED_AT_ONCE), access)))
    }
    if (found.length >= enough) return found.slice(0, enough)
    if (listed.length < tried || start.length < START_CHARS_MIN) return found
    const newest = await newestWith(this.#at, start)
    const own = await wordsOfDocuments(this.#at, newest, CHUNKS_MAX)
    const more = own.filter((word) => word.startsWith(start) && isWanted(word))
    return [...new Set([...found, ...more])].slice(0, enough)
  }
}

/** Undefined where there is too much of it. */
async function allWords(at: At): Promise<readonly string[] | undefined> {
  const { tx, dialect, access } = at
  const { principalIds, nowMs } = access
  const rows = await tx.all<{ doc_id: number }>(
    `SELECT DISTINCT a.doc_id FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
     AND (a.expires_at IS NULL OR a.expires_at > ?) LIMIT ${ALL_DOCUMENTS_MAX + 1}`,
    [...principalIds, nowMs],
  )
  if (rows.length > ALL_DOCUMENTS_MAX) return undefined
  const ids = rows.map(({ doc_id }) => doc_id)
  const list = dialect.oneOf('d.id', ids)
  const held = await tx.get<{ chunks: number | null }>(
    `SELECT sum(c.chunk_count) AS chunks FROM search_documents d JOIN search_contents c ON c.id = d.content_id
     WHERE ${list.sql}`,
    list.params,
  )
  if (Number(held?.chunks ?? 0) > ALL_CHUNKS_MAX) return undefined
  return wordsOfDocuments(at, ids, ALL_CHUNKS_MAX)
}

async function newestWith({ tx, dialect, access }: At, start: string): Promise<number[]> {
  const having = await dialect.visibleWith(tx, wordLeaf(start, { prefix: true }), access)
  return having.sort((a, b) => b - a).slice(0, DOCUMENTS_MAX)
}

async function wordsOfDocuments(
  { tx, dialect, access }: At,
  ids: readonly number[],
  chunksMax: number,
): Promise<string[]> {
  const where = allOf([dialect.oneOf('d.id', ids), visible(access)])
  const rows = await tx.all<{ title: string; owner: string; folders: string; people: string }>(
    `SELECT d.title, d.owner, d.folders, d.people FROM search_documents d WHERE ${where.sql}`,
    where.params,
  )
  const chunks = await tx.all<{ text: string }>(
    `SELECT c.text FROM search_documents d JOIN search_chunks c ON c.content_id = d.content_id
     WHERE ${where.sql} ORDER BY c.n, d.id LIMIT ${chunksMax}`,
    where.params,
  )
  const texts = rows.flatMap(({ title, owner, folders, people }) => [
    title,
    owner,
    ...(JSON.parse(folders) as string[]),
    ...(JSON.parse(people) as { name: string }[]).map(({ name }) => name),
  ])
  const words = [...texts, ...chunks.map(({ text }) => text)].flatMap(wordsOf)
  return [...new Set(words)].sort()
}
