/** Finding mail in all archives, or in that of one account. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { ProblemError } from '../../../app/problem.ts'
import type { RequestUser } from '../../../app/user.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { shellWord } from '../../../base/wording.ts'
import { QUERY_CHARS_MAX } from '../../../search/query/syntax.ts'
import { type AccountQuery, mergePages, type OpenedArchive, type Unsearched } from '../merged-search.ts'
import { parseQuery } from '../query/parse.ts'
import type { FacetCount, SearchFacets } from '../store/contract.ts'
import { labelNamesOf } from '../transfer/label-names.ts'
import { formatMboxMessage } from '../transfer/mbox.ts'
import { noteMailLook, openArchive } from './inputs.ts'
import { summaryView } from './message-view.ts'
import type { MailServices } from './route.ts'
import { download, route } from './route.ts'
import {
  type SearchAnswer,
  type SearchFacetsView,
  searchAnswerSchema,
  searchFacetsSchema,
  suggestionSchema,
} from './schemas.ts'
import { suggest } from './suggestions.ts'

export const CURSOR_LENGTH_MAX = 4_000
const search = route('GET /api/mail/search', {
  summary: "Mail that a query in Gmail's language finds, newest or best first",
  description: 'Archives that could not be searched are named in `unsearched`; the rest is answered.',
  errors: [404, 409, 422],
  query: z.object({
    q: z.string().max(QUERY_CHARS_MAX).default('').describe('Such as `from:bob has:attachment report`'),
    account: accountText.optional().describe('Only in the archive of this account'),
    order: z.enum(['date', 'rank']).default('date').describe('Newest first, or best first'),
    limit: z.coerce.number().int().min(1).max(200).default(50).describe('How many at most'),
    cursor: z
      .string()
      .max(CURSOR_LENGTH_MAX)
      .optional()
      .describe('The `next` of the page before, with the same query, account and order'),
  }),
  answer: searchAnswerSchema,
  handle: async ({ query: { q, ...rest }, user }, services) =>
    searchMail(services, user, { text: q, ...rest }),
})

export type SearchInput = {
  text: string
  account?: string | undefined
  order: 'date' | 'rank'
  limit: number
  cursor?: string | undefined
}

export async function searchMail(
  services: MailServices,
  user: RequestUser,
  input: SearchInput,
): Promise<SearchAnswer> {
  const { text, account, order, limit, cursor } = input
  await noteMailLook(services, user, { account, what: `searched mail ${text}` })
  const startedMs = services.clock.monotonicMs()
  const { asked, unsearched } = await queriesOf(services, { text, account })
  const page = await mergePages(asked, { order, limit, cursor })
  return {
    items: page.hits.map(({ opened, message, excerpt }) => ({
      ...summaryView(opened, message),
      excerpt: excerpt.map(({ text: piece, match }) => ({ text: piece, match })),
    })),
    next: page.next,
    unsearched: [...unsearched, ...page.unsearched],
    tookMs: services.clock.monotonicMs() - startedMs,
  }
}

/** An archive that cannot be opened is missing from the answer, which says so; of one that was named, it is the answer. */
async function queriesOf(
  services: MailServices,
  { text, account }: { text: string; account: string | undefined },
): Promise<{ asked: AccountQuery[]; unsearched: Unsearched[] }> {
  const now = services.clock.now()
  // First of all: a slip in the query is told also where there is no account yet.
  parseQuery(text, { now })
  const asked: AccountQuery[] = []
  const unsearched: Unsearched[] = []
  for (const name of account === undefined ? services.mail.accounts.names() : [account]) {
    try {
      asked.push({ opened: await openArchive(services, name), query: parseQuery(text, { now, me: name }) })
    } catch (thrown) {
      if (account !== undefined) throw thrown
      unsearched.push({ account: name, shard: '', reason: asTidemarkError(thrown).message })
    }
  }
  return { asked, unsearched }
}

const whatIsFound = {
  q: z.string().max(QUERY_CHARS_MAX).default('').describe('Such as `from:bob has:attachment report`'),
  account: accountText.optional().describe('Only in the archive of this account'),
}

const facets = route('GET /api/mail/search/facets', {
  summary: 'How many messages a query finds, and how many of them by year, sender and label',
  errors: [404, 409, 422],
  query: z.object(whatIsFound),
  answer: searchFacetsSchema,
  handle: async ({ query: { q, account }, user }, services) => {
    await noteMailLook(services, user, { account, what: `searched mail ${q}` })
    const { asked } = await queriesOf(services, { text: q, account })
    const found = await Promise.all(
      asked.map(async ({ opened, query }) => ({
        opened,
        facets: await opened.archive.facets(query, { labels: opened.labels }),
      })),
    )
    return facetsView(found)
  },
})

/** In memory until it is sent: what is larger is for the command line, which writes to a file as it goes. */
const EXPORT_MESSAGES_MAX = 2_000
const EXPORT_BYTES_MAX = 64_000_000

const exported = download('GET /api/mail/search/export', {
  summary: 'What a query finds, as one mbox file, the newest first',
  contentType: 'application/mbox',
  errors: [404, 409, 422],
  query: z.object(whatIsFound),
  handle: async ({ query: { q, account }, user, signal }, services) => {
    await noteMailLook(services, user, { account, what: `exported mail ${q}` })
    const { asked, unsearched } = await queriesOf(services, { text: q, account })
    const parts: Uint8Array[] = []
    let bytes = 0
    let cursor: string | undefined
    do {
      const page = await mergePages(asked, { order: 'date', limit: EXPORT_PAGE, cursor })
      if (unsearched.length + page.unsearched.length > 0) throw notWhole()
      for (const { opened, message } of page.hits) {
        signal.throwIfAborted()
        const { id, threadId, labelIds, internalMs: arrivedMs } = message
        const raw = await opened.archive.raw(id)
        const labelNames = labelNamesOf(labelIds, opened.labelNames)
        parts.push(formatMboxMessage({ id, threadId, labelNames, arrivedMs, raw }))
        bytes += raw.byteLength
        if (parts.length > EXPORT_MESSAGES_MAX || bytes > EXPORT_BYTES_MAX) throw tooMuch(q)
      }
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
    return { bytes: Buffer.concat(parts), contentType: 'application/mbox', fileName: 'mail.mbox' }
  },
})

const EXPORT_PAGE = 200

function tooMuch(q: string): ProblemError {
  const limit = `${formatCount(EXPORT_MESSAGES_MAX)} messages or ${formatBytes(EXPORT_BYTES_MAX)}`
  return new ProblemError(409, `That is more than ${limit}, which is as much as a page exports.`, {
    code: 'export-too-large',
    hint: `Narrow the search down, or run: tidemark mail export --query ${shellWord(q)} --to mail.mbox`,
  })
}

function notWhole(): ProblemError {
  return new ProblemError(
    422,
    'A part of the archive cannot be read, so that the export would not be whole.',
    {
      code: 'archive-damaged',
      hint: 'The search says which part; tidemark mail verify says what can be done.',
    },
  )
}

const suggestions = route('GET /api/mail/suggest', {
  summary: 'How a query that is being typed may go on',
  query: z.object({
    q: z.string().max(QUERY_CHARS_MAX).default('').describe('As far as it is typed'),
  }),
  answer: suggestionSchema,
  handle: async ({ query: { q }, user }, services) => {
    await noteMailLook(services, user, { account: undefined, what: 'typed a search of mail' })
    return { items: await suggest(services, q) }
  },
})

type Found = { opened: OpenedArchive; facets: SearchFacets }

/** Of all archives together. Labels by their names: what is called the same is one. */
function facetsView(found: readonly Found[]): SearchFacetsView {
  const sum = (of: (facets: SearchFacets) => number): number =>
    found.reduce((all, { facets: one }) => all + of(one), 0)
  const merged = (of: (one: Found) => readonly FacetCount[]): SearchFacetsView['years'] => {
    const counts = new Map<string, number>()
    for (const one of found)
      for (const { value, messages } of of(one)) counts.set(value, (counts.get(value) ?? 0) + messages)
    return [...counts]
      .map(([value, messages]) => ({ value, messages }))
      .sort((a, b) => b.messages - a.messages || (a.value < b.value ? -1 : 1))
      .slice(0, FACET_VALUES_MAX)
  }
  const named = ({ opened, facets: { labels } }: Found): FacetCount[] =>
    labels.map(({ value, messages }) => ({ value: opened.labelNames.get(value) ?? value, messages }))
  return {
    messages: sum(({ messages }) => messages),
    bytes: sum(({ bytes }) => bytes),
    counted: sum(({ counted }) => counted),
    years: merged(({ facets: one }) => one.years).sort((a, b) => Number(b.value) - Number(a.value)),
    senders: merged(({ facets: one }) => one.senders),
    labels: merged(named),
  }
}

const FACET_VALUES_MAX = 12

export const searchRoutes = [search, facets, exported, suggestions]
