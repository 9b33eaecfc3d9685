/** A page of what was found, as people see it: with snippets, copies and the why. */
import type { Tx } from '../../ledger/contract.ts'
import type { Chunk } from '../chunk.ts'
import type { DocumentType, Grant, Hit, Why } from '../contract.ts'
import type { Place } from '../extract/contract.ts'
import { type Access, allOf, type IndexDialect, visible } from '../index/dialect.ts'
import { wordsOf } from '../index/words.ts'
import type { Look, Ranked } from './look.ts'
import type { TextLeaf } from './query.ts'
import { mark, snippetOf, stretchesOf } from './snippet.ts'

const ALSO_IN_MAX = 20
/** Chunks of one hit that are gone through for the one with most words. */
const CHUNKS_MAX = 400
/** Whose chunks are read at once: of the longest documents some 10 MB. */
const HITS_OF_READ = 20

type DocumentRow = {
  id: number
  source: string
  ref: string
  content_id: number | null
  title: string
  type: DocumentType
  owner: string
  folders: string
  url: string
  modified_at: number | null
}

export async function assembleHits(look: Look, page: readonly Ranked[]): Promise<Hit[]> {
  const { tx, dialect, plan, access } = look
  const ids = page.map(({ id }) => id)
  if (ids.length === 0) return []
  const rows = await readRows(look, ids)
  const leaves = plan.leaves.filter(({ field }) => field === null || field === 'title')
  const foundBy = await leavesFound(look, page)
  const grants = await readAccess(tx, dialect, access, ids)
  const copies = await readCopies(look, page)
  let chunks: ReadonlyMap<number, readonly ChunkRow[]> = new Map()
  const hits: Hit[] = []
  for (const [at, one] of page.entries()) {
    if (at % HITS_OF_READ === 0) chunks = await readChunks(look, page.slice(at, at + HITS_OF_READ))
    const row = rows.get(one.id)
    if (!row) continue
    const best = bestChunk(one, chunks.get(one.content_id ?? 0) ?? [], leaves)
    hits.push({
      id: one.id,
      source: row.source,
      ref: row.ref,
      title: mark(row.title, stretchesOf(row.title, leaves)),
      type: row.type,
      owner: row.owner,
      folders: JSON.parse(row.folders) as string[],
      url: row.url,
      modifiedAtMs: row.modified_at,
      snippet: best
        ? snippetOf(
            best.text,
            leaves.filter(({ field }) => field === null),
          )
        : [],
      citation: best ? { chunk: best.n, place: best.place, headings: best.headings } : null,
      alsoIn: copies.get(one.id) ?? [],
      why: whyOf(one, foundBy, grants.get(one.id) ?? []),
    })
  }
  return hits
}

/** Which of the words each has. One that was found by all of them has all, unless they stood for each other. */
async function leavesFound({ tx, dialect, plan }: Look, page: readonly Ranked[]) {
  const hasAll = ({ words }: Ranked): boolean => !plan.hasChoice && words?.isWhole === true
  const known = page.filter(hasAll).map(({ id }) => id)
  const asked = page.filter((one) => !hasAll(one)).map(({ id }) => id)
  return Promise.all(
    plan.leaves.map(async (leaf) => ({
      leaf,
      ids: new Set([...known, ...(asked.length === 0 ? [] : await dialect.having(tx, leaf, asked))]),
    })),
  )
}

function whyOf(
  { words, near, parts, total, id, isWeak }: Ranked,
  foundBy: readonly { leaf: TextLeaf; ids: ReadonlySet<number> }[],
  access: Why['access'],
): Why {
  const typed = (isThere: boolean): string[] =>
    foundBy.filter(({ ids }) => ids.has(id) === isThere).map(({ leaf }) => leaf.typed)
  return {
    score: total,
    words: words && { score: parts.words, found: typed(true), missing: typed(false) },
    meaning: near && { score: parts.meaning, similarity: near.similarity, isWeak },
    recency: parts.recency,
    access,
  }
}

async function readRows(
  { tx, dialect, access }: Look,
  ids: readonly number[],
): Promise<Map<number, DocumentRow>> {
  const where = allOf([dialect.oneOf('d.id', ids), visible(access)])
  const rows = await tx.all<DocumentRow>(
    `SELECT d.id, d.source, d.ref, d.content_id, d.title, d.type, d.owner, d.folders, d.url, d.modified_at
     FROM search_documents d WHERE ${where.sql}`,
    where.params,
  )
  return new Map(rows.map((row) => [row.id, row]))
}

type AccessRow = { doc_id: number; name: string; kind: Grant['kind']; via: string }

/** Through what the reader sees each. */
export async function readAccess(
  tx: Tx,
  dialect: IndexDialect,
  { principalIds, nowMs }: Access,
  ids: readonly number[],
): Promise<Map<number, Why['access'][number][]>> {
  const list = dialect.oneOf('a.doc_id', ids)
  const rows = await tx.all<AccessRow>(
    `SELECT a.doc_id, p.name, a.kind, a.via FROM search_access a JOIN search_principals p ON p.id = a.principal_id
     WHERE a.principal_id IN (${principalIds.map(() => '?').join(', ')}) AND ${list.sql}
     AND (a.expires_at IS NULL OR a.expires_at > ?) ORDER BY a.doc_id, p.name`,
    [...principalIds, ...list.params, nowMs],
  )
  const grants = new Map<number, Why['access'][number][]>()
  for (const { doc_id, name, kind, via } of rows) {
    const of = grants.get(doc_id) ?? []
    of.push({ principal: name, kind, via })
    grants.set(doc_id, of)
  }
  return grants
}

type CopyRow = { id: number; content_id: number; title: string; folders: string; url: string }

/** Other documents with the same content that the reader may see, by the document whose copies they are. */
export async function readCopies(
  { tx, dialect, access }: Pick<Look, 'tx' | 'dialect' | 'access'>,
  documents: readonly { id: number; content_id: number | null }[],
): Promise<Map<number, Hit['alsoIn'][number][]>> {
  const contents = documents.flatMap(({ content_id }) => content_id ?? [])
  const where = allOf([dialect.oneOf('d.content_id', contents), visible(access)])
  const rows = await tx.all<CopyRow>(
    `SELECT d.id, d.content_id, d.title, d.folders, d.url FROM search_documents d WHERE ${where.sql} ORDER BY d.id`,
    where.params,
  )
  const byContent = Map.groupBy(rows, ({ content_id }) => content_id)
  return new Map(
    documents.map(({ id, content_id }) => {
      const others = (content_id === null ? [] : (byContent.get(content_id) ?? [])).filter(
        (row) => row.id !== id,
      )
      const shown = others.slice(0, ALSO_IN_MAX)
      return [
        id,
        shown.map((row) => ({
          id: row.id,
          title: row.title,
          folders: JSON.parse(row.folders),
          url: row.url,
        })),
      ]
    }),
  )
}

// --- Chunks -----------------------------------------------------------------

type ChunkRow = { n: number; text: string; headings: string; place: string }

export function toChunk({ n, text, headings, place }: ChunkRow): Chunk {
  return { n, text, headings: JSON.parse(headings) as string[], place: JSON.parse(place) as Place }
}

type PlacedChunk = ChunkRow & { content_id: number }

/** By content: its first chunks, and the nearest wherever it stands. */
async function readChunks(
  { tx, dialect }: Look,
  page: readonly Ranked[],
): Promise<ReadonlyMap<number, readonly ChunkRow[]>> {
  const of = page.filter(({ content_id }) => content_id !== null)
  const list = dialect.oneOf(
    'content_id',
    of.map(({ content_id }) => content_id!),
  )
  const far = of.filter(({ near }) => (near?.chunk ?? 0) >= CHUNKS_MAX)
  const wanted = [`n < ${CHUNKS_MAX}`, ...far.map(() => '(content_id = ? AND n = ?)')].join(' OR ')
  const rows = await tx.all<PlacedChunk>(
    `SELECT content_id, n, text, headings, place FROM search_chunks WHERE ${list.sql} AND (${wanted})
     ORDER BY content_id, n`,
    [...list.params, ...far.flatMap(({ content_id, near }) => [content_id, near!.chunk])],
  )
  return Map.groupBy(rows, ({ content_id }) => content_id)
}

/** The one with most of the words; of those, and where none has any, the nearest by meaning, and then the first. */
function bestChunk(one: Ranked, rows: readonly ChunkRow[], leaves: readonly TextLeaf[]): Chunk | null {
  const bare = leaves.filter(({ field }) => field === null)
  let best: { row: ChunkRow; found: number } | undefined
  for (const row of rows) {
    const found = one.words ? distinctIn(row.text, bare) : 0
    const isNearest = row.n === one.near?.chunk
    if (!best || found > best.found || (found === best.found && isNearest)) best = { row, found }
    if (found === bare.length && (isNearest || !one.near)) break
  }
  return best ? toChunk(best.row) : null
}

/** How many of the leaves a text has, by their first words: a phrase is looked at when it is shown. */
function distinctIn(text: string, leaves: readonly TextLeaf[]): number {
  const words = wordsOf(text)
  const isThere = ({ words: [first], prefix, words: { length } }: TextLeaf): boolean =>
    prefix && length === 1 ? words.some((word) => word.startsWith(first!)) : words.includes(first!)
  return leaves.filter(isThere).length
}
