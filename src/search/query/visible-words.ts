/**
 * Words that begin alike, of what a reader may see. The index's list of words is of everybody's documents, and those of
 * others may fill any number of its first places: where they do, the reader's own documents are asked for the rest.
 */
import type { Tx } from '../../ledger/contract.ts'
import { type Access, allOf, type IndexDialect, places, visible } from '../index/dialect.ts'
import { wordsOf } from '../index/words.ts'
import { wordLeaf } from './query.ts'

/** Of the reader's documents, the newest that have such a word, and of those so many chunks. */
const DOCUMENTS_MAX = 40
/**
 * Of who sees no more, all are read, whatever they have: what begins with three letters is in most documents of an
 * index, and to find those of 100,000 took 180 ms of a search in which the reader sees 100.
 */
const ALL_DOCUMENTS_MAX = 100
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

export async function visibleWords(
  at: At,
  { start, tried, isWanted, enough }: WordsWanted,
): Promise<string[]> {
  const { tx, dialect, access } = at
  const listed = await dialect.vocabulary(tx, { from: start, to: `${start}\u{10ffff}`, limit: tried })
  const found: string[] = []
  const wanted = listed.filter(isWanted).slice(0, CHECKED_MAX)
  for (let from = 0; from < wanted.length && found.length < enough; from += CHECKED_AT_ONCE) {
    found.push(...(await dialect.visibleOf(tx, wanted.slice(from, from + CHECKED_AT_ONCE), access)))
  }
  if (found.length >= enough) return found.slice(0, enough)
  if (listed.length < tried || start.length < START_CHARS_MIN) return found
  const own = (await wordsOfDocuments(at, start)).filter(isWanted)
  return [...new Set([...found, ...own])].slice(0, enough)
}

/** Undefined where there are more. */
async function fewVisible(tx: Tx, { principalIds, nowMs }: Access): Promise<number[] | undefined> {
  const rows = await tx.all<{ doc_id: number }>(
    `SELECT DISTINCT a.doc_id FROM search_access a WHERE a.principal_id IN (${places(principalIds.length)})
     AND (a.expires_at IS NULL OR a.expires_at > ?) LIMIT ${ALL_DOCUMENTS_MAX + 1}`,
    [...principalIds, nowMs],
  )
  return rows.length > ALL_DOCUMENTS_MAX ? undefined : rows.map(({ doc_id }) => doc_id)
}

async function newestWith({ tx, dialect, access }: At, start: string): Promise<number[]> {
  const having = await dialect.visibleWith(tx, wordLeaf(start, { prefix: true }), access)
  return having.sort((a, b) => b - a).slice(0, DOCUMENTS_MAX)
}

async function wordsOfDocuments({ tx, dialect, access }: At, start: string): Promise<string[]> {
  const newest = (await fewVisible(tx, access)) ?? (await newestWith({ tx, dialect, access }, start))
  const where = allOf([dialect.oneOf('d.id', newest), visible(access)])
  const rows = await tx.all<{ title: string; owner: string; folders: string; people: string }>(
    `SELECT d.title, d.owner, d.folders, d.people FROM search_documents d WHERE ${where.sql}`,
    where.params,
  )
  const chunks = await tx.all<{ text: string }>(
    `SELECT c.text FROM search_documents d JOIN search_chunks c ON c.content_id = d.content_id
     WHERE ${where.sql} ORDER BY c.n, d.id LIMIT ${CHUNKS_MAX}`,
    where.params,
  )
  const texts = rows.flatMap(({ title, owner, folders, people }) => [
    title,
    owner,
    ...(JSON.parse(folders) as string[]),
    ...(JSON.parse(people) as { name: string }[]).map(({ name }) => name),
  ])
  const words = [...texts, ...chunks.map(({ text }) => text)].flatMap(wordsOf)
  return [...new Set(words.filter((word) => word.startsWith(start)))].sort()
}
