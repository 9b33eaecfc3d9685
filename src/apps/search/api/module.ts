/** Search as a module of the server. Every answer is under the access of who asks, or of whom an admin names. */
import { z } from 'zod'
import { idNumber, idParamsOf, nameText } from '../../../app/inputs.ts'
import type { ServerModule } from '../../../app/module.ts'
import { notFound } from '../../../app/problem.ts'
import { route } from '../../../app/route.ts'
import { done, doneSchema } from '../../../app/schemas.ts'
import type { Services } from '../../../app/services.ts'
import type { Facet } from '../../../search/contract.ts'
import { embeddedShare } from '../../../search/index/models.ts'
import { eyesOf } from '../eyes.ts'
import { OwnSearches } from '../store.ts'
import { PAGE_MAX, QUERY_CHARS_MAX, readAs, searchAs, whoSees } from './answers.ts'
import {
  coverageSchema,
  documentSchema,
  embeddingSchema,
  savedSchema,
  searchAnswerSchema,
  whoSchema,
} from './schemas.ts'
import { searchTools } from './tools.ts'

const CURSOR_CHARS_MAX = 2_000
const CHUNKS_MAX = 200
const SUGGESTIONS_MAX = 20
const FACET_VALUES_MAX = 50

const queryText = z.string().max(QUERY_CHARS_MAX)
const chosen = z.array(nameText).max(FACET_VALUES_MAX).optional()
const as = nameText
  .optional()
  .describe('Of admins: the name of the user with whose eyes it is seen. It is written down')

const search = route('GET /api/search', {
  access: 'member',
  summary: 'Finds documents, mail and files, by words and by meaning',
  errors: [404],
  query: z.object({
    q: queryText
      .default('')
      .describe('Words, "phrases", -not, and operators such as from: type: in: before:'),
    mode: z
      .enum(['auto', 'words', 'meaning'])
      .default('auto')
      .describe('By both where that can be done, or by one of them alone'),
    sort: z.enum(['relevance', 'newest', 'oldest']).default('relevance').describe('What comes first'),
    limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(20).describe('How many on a page'),
    cursor: z.string().max(CURSOR_CHARS_MAX).optional().describe('The `next` of the page before'),
    source: chosen.describe('Only of these: drive, mail, files'),
    type: chosen.describe('Only of these types'),
    owner: chosen.describe('Only of these owners'),
    folder: chosen.describe('Only in these folders'),
    year: chosen.describe('Only of these years'),
    facets: z.enum(['true', 'false']).default('true').describe('Whether to count what there is of each'),
    as,
  }),
  answer: searchAnswerSchema,
  handle: async ({ query, user, signal }, services) => {
    const { q, source, type, owner, folder, year, facets, as: whose, ...rest } = query
    return searchAs(services, user, {
      ...rest,
      text: q,
      filters: given({ source, type, owner, folder, year }),
      facets: facets === 'true',
      as: whose,
      signal,
    })
  },
})

function given(
  filters: Partial<Record<Facet, readonly string[] | undefined>>,
): Partial<Record<Facet, string[]>> {
  const named = Object.entries(filters).flatMap(([facet, values]) =>
    values && values.length > 0 ? [[facet, [...values]] as const] : [],
  )
  return Object.fromEntries(named)
}

const suggest = route('GET /api/search/suggest', {
  access: 'member',
  summary: 'Words and titles that begin like this, of what the reader may see',
  errors: [404],
  query: z.object({
    q: queryText.describe('What was typed so far'),
    limit: z.coerce.number().int().min(1).max(SUGGESTIONS_MAX).default(8).describe('How many at most'),
    as,
  }),
  answer: z.object({ items: z.array(z.object({ text: z.string(), kind: z.enum(['word', 'title']) })) }),
  handle: async ({ query, user }, services) => {
    const { reader } = await eyesOf(services, user, { as: query.as, what: 'typed a search' })
    const index = await services.search.open()
    return { items: [...(await index.suggest(query.q, reader, query.limit))] }
  },
})

const read = route('GET /api/search/documents/{id}', {
  access: 'member',
  summary: 'A document with its text',
  params: idParamsOf('document'),
  query: z.object({
    from: z.coerce.number().int().min(0).default(0).describe('Which chunk to begin with'),
    limit: z.coerce.number().int().min(1).max(CHUNKS_MAX).default(50).describe('How many chunks'),
    as,
  }),
  answer: documentSchema,
  handle: async ({ params, query, user }, services) =>
    readAs(services, user, { id: params.id, from: query.from, limit: query.limit, as: query.as }),
})

const coverage = route('GET /api/search/coverage', {
  access: 'member',
  summary: 'How much of each source can be found by words, and how much by meaning',
  errors: [404],
  query: z.object({ as }),
  answer: coverageSchema,
  handle: async ({ query, user }, services) => {
    const { reader } = await eyesOf(services, user, { as: query.as, what: 'coverage' })
    const index = await services.search.open()
    const sources = (await index.coverage(reader)).map((one) => ({ ...one, unread: [...one.unread] }))
    return { sources, model: index.embedder?.model ?? null }
  },
})

const who = route('GET /api/search/who/{id}', {
  summary: 'Who can see a document, and through what. It is written down who asked',
  params: idParamsOf('document'),
  answer: whoSchema,
  handle: async ({ params, user }, services) => whoSees(services, user, params.id),
})

const embedding = route('GET /api/search/embedding', {
  summary: 'How much of the index is embedded by the model that is configured',
  answer: embeddingSchema,
  handle: async (_input, { search: handle, ledger }) => {
    const model = (await handle.open()).embedder?.model ?? null
    const share = model === null ? undefined : await embeddedShare(ledger, model)
    return { model, ...(share ?? { contents: 0, embedded: 0, others: 0 }) }
  },
})

async function ownSearches({
  ledger,
  search: handle,
}: Pick<Services, 'ledger' | 'search'>): Promise<OwnSearches> {
  return new OwnSearches({ ledger, search: await handle.open() })
}

const saved = route('GET /api/search/saved', {
  access: 'member',
  summary: 'The searches that who asks has kept, and those of lately',
  answer: z.object({ saved: z.array(savedSchema), recent: z.array(z.string()) }),
  handle: async ({ user }, services) => {
    const own = await ownSearches(services)
    return { saved: await own.saved(user.id), recent: await own.recent(user.id) }
  },
})

const save = route('POST /api/search/saved', {
  access: 'member',
  summary: 'Keeps a search under a name; one of that name is replaced',
  body: z.strictObject({
    name: z.string().trim().min(1).max(100).describe('How it is called'),
    query: queryText.min(1).describe('What is searched for'),
  }),
  answer: savedSchema,
  handle: async ({ body, user }, services) => (await ownSearches(services)).save(user.id, body),
})

const forget = route('DELETE /api/search/saved/{id}', {
  access: 'member',
  summary: 'Forgets a search that was kept',
  params: z.object({ id: idNumber.describe('The number of the search') }),
  answer: doneSchema,
  handle: async ({ params, user }, services) => {
    if (await (await ownSearches(services)).forget(user.id, params.id))
      return done('The search is forgotten.')
    throw notFound(`There is no search #${params.id}.`, { code: 'saved-unknown' })
  },
})

const noteRecent = route('POST /api/search/recent', {
  access: 'member',
  summary: 'Remembers what was searched for, for who asks alone',
  body: z.strictObject({ text: queryText.min(1).describe('What was searched for') }),
  answer: doneSchema,
  handle: async ({ body, user }, services) => {
    await (await ownSearches(services)).note(user.id, body.text)
    return done('Remembered.')
  },
})

const forgetRecent = route('DELETE /api/search/recent', {
  access: 'member',
  summary: 'Forgets what was searched for lately',
  answer: doneSchema,
  handle: async ({ user }, services) => {
    await (await ownSearches(services)).forgetRecent(user.id)
    return done('Forgotten.')
  },
})

export const searchModule: ServerModule<Services> = {
  name: 'search',
  routes: [search, suggest, coverage, embedding, saved, save, forget, noteRecent, forgetRecent, read, who],
  tools: searchTools,
  instructions:
    'search finds in everything that is kept (mail, files, documents) by words and by meaning; read gives the text behind ' +
    'a hit; who says who else can see it.',
}
