/** Finding mail in all archives, or in that of one account. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import type { RequestUser } from '../../../app/user.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { QUERY_CHARS_MAX } from '../../../search/query/syntax.ts'
import { type AccountQuery, mergePages, type Unsearched } from '../merged-search.ts'
import { parseQuery } from '../query/parse.ts'
import { noteMailLook, openArchive } from './inputs.ts'
import { summaryView } from './message-view.ts'
import type { MailServices } from './route.ts'
import { route } from './route.ts'
import { type SearchAnswer, searchAnswerSchema, suggestionSchema } from './schemas.ts'
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

export const searchRoutes = [search, suggestions]
