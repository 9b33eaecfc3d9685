/** What the API says about searches. Pages import the types. */
import { z } from 'zod'

const marked = z
  .array(z.object({ text: z.string(), found: z.boolean() }))
  .describe('Text; what was found in it is marked')

const place = z.union([
  z.object({ kind: z.literal('page'), page: z.number() }),
  z.object({ kind: z.literal('slide'), slide: z.number() }),
  z.object({ kind: z.literal('rows'), first: z.number(), last: z.number(), sheet: z.string().optional() }),
  z.object({ kind: z.literal('lines'), first: z.number(), last: z.number() }),
  z.object({ kind: z.literal('none') }),
])

const access = z.array(
  z.object({
    principal: z.string(),
    kind: z.enum(['owner', 'writer', 'commenter', 'reader']),
    via: z.string(),
  }),
)

const copy = z.object({ id: z.number(), title: z.string(), folders: z.array(z.string()), url: z.string() })

const document = {
  id: z.number(),
  source: z.string().describe('The app that offers it: drive, mail, files'),
  ref: z.string(),
  type: z.string(),
  owner: z.string(),
  folders: z.array(z.string()),
  url: z.string(),
  modifiedAtMs: z.number().nullable(),
  alsoIn: z.array(copy).describe('Others with the same content that the reader may see'),
}

export const hitSchema = z.object({
  ...document,
  title: marked,
  snippet: marked,
  citation: z
    .object({
      chunk: z.number(),
      place,
      headings: z.array(z.string()),
      text: z.string().describe('The place for people: page 3 › Travel'),
    })
    .nullable()
    .describe('Where the snippet stands; null where only the name was found'),
  why: z.object({
    score: z.number(),
    words: z
      .object({ score: z.number(), found: z.array(z.string()), missing: z.array(z.string()) })
      .nullable(),
    meaning: z
      .object({
        score: z.number(),
        similarity: z.number(),
        isWeak: z.boolean().describe('Near, but not nearer than what answers other questions'),
      })
      .nullable(),
    recency: z.number(),
    access,
    texts: z.array(z.string()).describe('The same in plain words'),
  }),
})

const counted = z.array(z.object({ value: z.string(), count: z.number() })).optional()

export const searchAnswerSchema = z.object({
  hits: z.array(hitSchema),
  total: z.number(),
  facets: z.object({ source: counted, type: counted, owner: counted, folder: counted, year: counted }),
  next: z.string().nullable().describe('Send it as `cursor`, with the same other parameters'),
  understood: z.string(),
  by: z.array(z.enum(['words', 'meaning'])),
  fellBack: z.object({ code: z.string(), text: z.string() }).nullable(),
  didYouMean: z.string().nullable(),
  answered: z
    .boolean()
    .describe(
      'Whether a hit has the words or is clearly about it; if not, hits are only the nearest there are',
    ),
  seenAs: z.string().nullable().describe('With whose eyes, where they are not those of who asks'),
})

export const documentSchema = z.object({
  ...document,
  title: z.string(),
  mimeType: z.string(),
  createdAtMs: z.number().nullable(),
  sizeBytes: z.number().nullable(),
  unread: z.object({ code: z.string(), reason: z.string() }).nullable(),
  isTruncated: z.boolean(),
  chunks: z.array(
    z.object({
      n: z.number(),
      text: z.string(),
      headings: z.array(z.string()),
      place,
      where: z.string().describe('The place for people'),
    }),
  ),
  chunkCount: z.number(),
  access,
  seenAs: z.string().nullable(),
})

export const coverageSchema = z.object({
  sources: z.array(
    z.object({
      source: z.string(),
      documents: z.number(),
      byWords: z.number(),
      byMeaning: z.number(),
      unread: z.array(z.object({ code: z.string(), count: z.number() })),
    }),
  ),
  model: z.string().nullable().describe('What finds by meaning; null where nothing does'),
})

export const whoSchema = z.object({
  items: z.array(
    z.object({
      principal: z.string(),
      user: z.string().nullable().describe('Whose account that is; null where nobody has connected it'),
      kind: z.string(),
      via: z.string(),
      expiresAtMs: z.number().nullable(),
    }),
  ),
})

export const embeddingSchema = z.object({
  model: z.string().nullable(),
  contents: z.number().describe('Different texts in the index'),
  embedded: z.number().describe('Those of them that are found by meaning'),
  others: z.number().describe('Those that still have vectors of another model'),
})

export const savedSchema = z.object({
  id: z.number(),
  name: z.string(),
  query: z.string(),
  createdAtMs: z.number(),
})

export type HitView = z.output<typeof hitSchema>
export type SearchAnswerView = z.output<typeof searchAnswerSchema>
export type DocumentView = z.output<typeof documentSchema>
export type CoverageView = z.output<typeof coverageSchema>
export type WhoView = z.output<typeof whoSchema>
export type SavedView = z.output<typeof savedSchema>
export type EmbeddingView = z.output<typeof embeddingSchema>
