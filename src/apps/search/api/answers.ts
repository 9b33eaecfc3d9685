/** What is answered to who searches, reads or asks who else can: the same for pages, the command line and models. */
import { notFound } from '../../../app/problem.ts'
import type { Services } from '../../../app/services.ts'
import type { RequestUser } from '../../../app/user.ts'
import { accountKey } from '../../../ledger/accounts.ts'
import type { Facet, Hit, ReadDocument, SearchAnswer } from '../../../search/contract.ts'
import { eyesOf } from '../eyes.ts'
import { citationText, placeText, whyTexts } from '../words.ts'
import type { DocumentView, HitView, SearchAnswerView, WhoView } from './schemas.ts'

export const QUERY_CHARS_MAX = 2_000
export const PAGE_MAX = 100

export type SearchAsInput = {
  text: string
  mode?: 'auto' | 'words' | 'meaning'
  sort?: 'relevance' | 'newest' | 'oldest'
  limit: number
  cursor?: string | undefined
  filters?: Partial<Record<Facet, readonly string[]>>
  facets?: boolean
  as?: string | undefined
  signal: AbortSignal
}

export async function searchAs(
  services: Pick<Services, 'search' | 'users' | 'accounts' | 'clock'>,
  user: RequestUser,
  { as: whose, cursor, ...asked }: SearchAsInput,
): Promise<SearchAnswerView> {
  const { reader, seenAs } = await eyesOf(services, user, { as: whose, what: searchedText(asked) })
  const index = await services.search.open()
  const nowMs = services.clock.now()
  const answer = await index.search({ ...asked, reader, nowMs, ...(cursor !== undefined && { cursor }) })
  return { ...answerView(answer), seenAs }
}

/** All that decides what is found: searches that differ in it are two looks. */
function searchedText({ text, mode = 'auto', filters = {} }: Omit<SearchAsInput, 'as' | 'cursor'>): string {
  const chosen = Object.entries(filters).filter(([, values]) => values.length > 0)
  const narrowed = [
    ...(mode === 'auto' ? [] : [`by ${mode}`]),
    ...chosen.map(([facet, values]) => `${facet} ${values.map((one) => JSON.stringify(one)).join(' or ')}`),
  ]
  return `searched ${text}${narrowed.length > 0 ? ` (only ${narrowed.join(', ')})` : ''}`
}

function answerView({
  nextCursor,
  hits,
  by,
  facets,
  ...rest
}: SearchAnswer): Omit<SearchAnswerView, 'seenAs'> {
  const copied = Object.entries(facets).map(([facet, values]) => [facet, values?.map((one) => ({ ...one }))])
  return {
    ...rest,
    by: [...by],
    facets: Object.fromEntries(copied),
    hits: hits.map(hitView),
    next: nextCursor,
  }
}

function hitView(hit: Hit): HitView {
  const { citation, why } = hit
  return {
    ...plain(hit),
    title: [...hit.title],
    snippet: [...hit.snippet],
    citation: citation && { ...citation, headings: [...citation.headings], text: citationText(citation) },
    why: {
      ...why,
      words: why.words && { ...why.words, found: [...why.words.found], missing: [...why.words.missing] },
      access: [...why.access],
      texts: whyTexts(why),
    },
  }
}

function plain({
  id,
  source,
  ref,
  type,
  owner,
  folders,
  url,
  modifiedAtMs,
  alsoIn,
}: Omit<Hit, 'title'> | ReadDocument) {
  const others = alsoIn.map((one) => ({ ...one, folders: [...one.folders] }))
  return { id, source, ref, type, owner, folders: [...folders], url, modifiedAtMs, alsoIn: others }
}

export async function readAs(
  services: Pick<Services, 'search' | 'users' | 'accounts'>,
  user: RequestUser,
  { id, from, limit, as: whose }: { id: number; from: number; limit: number; as?: string | undefined },
): Promise<DocumentView> {
  const { reader, seenAs } = await eyesOf(services, user, { as: whose, what: `read document ${id}` })
  const index = await services.search.open()
  const found = await index.read(id, reader, { fromChunk: from, limit })
  if (!found) throw notFound(`There is no document #${id}.`, { code: 'document-unknown' })
  const { title, mimeType, createdAtMs, sizeBytes, unread, isTruncated, chunks, chunkCount, access } = found
  return {
    ...plain(found),
    title,
    mimeType,
    createdAtMs,
    sizeBytes,
    unread,
    isTruncated,
    chunks: chunks.map((chunk) => ({
      ...chunk,
      headings: [...chunk.headings],
      where: placeText(chunk.place),
    })),
    chunkCount,
    access: [...access],
    seenAs,
  }
}

export async function whoSees(
  { users, accounts, search: handle }: Pick<Services, 'users' | 'accounts' | 'search'>,
  user: RequestUser,
  id: number,
): Promise<WhoView> {
  await users.note(user, 'who', `document ${id}`)
  const rows = await (await handle.open()).who(id)
  if (rows.length === 0) throw notFound(`There is no document #${id}.`, { code: 'document-unknown' })
  const names = new Map((await users.list()).map((one) => [one.id, one.name]))
  const owners = new Map((await accounts.list()).map((one) => [accountKey(one), names.get(one.userId)]))
  return { items: rows.map((row) => ({ ...row, user: owners.get(row.principal) ?? null })) }
}
