import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { DocumentType, SearchRequest } from './contract.ts'
import { plainTitle } from './index/content-key.ts'
import { ANN, BOB, DAY_MS, type IndexFixture, onEachDatabase } from './index.suite.ts'
import { formatSearch } from './query/format.ts'
import { NEAREST_MIN } from './query/fuse.ts'
import { parseSearch } from './query/parse.ts'
import { planOf } from './query/plan.ts'
import { type ModelDocument, type ModelFilters, SearchModel } from './search-model.suite.ts'

const NOW = Date.UTC(2026, 0, 1)
const GROUP = 'drive:team@example.com'
const WORDS = ['alpha', 'beta', 'gamma', 'delta', 'Größe', 'été', '東京', 'alphabet']

const word = fc.constantFrom(...WORDS)
const text = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join(' '))

const documentArb = fc.record({
  source: fc.constantFrom('drive', 'mail'),
  type: fc.constantFrom('pdf', 'text'),
  title: text,
  owner: fc.constantFrom('ann@example.com', 'bob@example.com', ''),
  from: fc.array(fc.constantFrom('Beta Corp', 'ann@example.com'), { maxLength: 2 }),
  to: fc.array(fc.constantFrom('Gamma', 'bob@example.com'), { maxLength: 1 }),
  folders: fc.uniqueArray(fc.constantFrom('Alpha team', 'Delta', 'Größe'), { maxLength: 2 }),
  texts: fc.array(text, { maxLength: 3 }),
  atMs: fc.integer({ min: 0, max: 800 }).map((days) => NOW - days * DAY_MS),
  access: fc
    .array(fc.tuple(fc.constantFrom(ANN, BOB, GROUP), fc.constantFrom(null, NOW - 1, NOW + 1)), {
      minLength: 1,
      maxLength: 3,
    })
    .map((grants) => new Map(grants)),
})

const documentsArb = fc.array(documentArb, { minLength: 1, maxLength: 14 }).map((sketches) =>
  sketches.map(
    (sketch, i): ModelDocument => ({
      ...sketch,
      ref: `d${i}`,
      // Only what has text has a content to share.
      contentKey:
        sketch.texts.length === 0 ? `#${i}` : JSON.stringify([sketch.texts, plainTitle(sketch.title)]),
    }),
  ),
)

const leafArb = fc.oneof(
  { weight: 5, arbitrary: word },
  fc.array(word, { minLength: 2, maxLength: 3 }).map((words) => `"${words.join(' ')}"`),
  fc.constantFrom(
    'alph*',
    'title:alpha',
    'title:"beta gamma"',
    'in:delta',
    'in:"alpha team"',
    'from:beta',
    'to:bob',
  ),
  fc.constantFrom(
    'owner:me',
    'source:mail',
    'type:pdf',
    'before:2025/06/01',
    'after:2025/03/01',
    'newer_than:1y',
  ),
)

const queryArb = fc.letrec<{ query: string }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    leafArb,
    fc.array(tie('query'), { minLength: 2, maxLength: 3 }).map((parts) => `(${parts.join(' ')})`),
    fc.array(tie('query'), { minLength: 2, maxLength: 3 }).map((parts) => `(${parts.join(' OR ')})`),
    tie('query').map((part) => `-${part}`),
  ),
})).query

const filtersArb: fc.Arbitrary<ModelFilters> = fc.constantFrom(
  ...[{}, {}, { type: 'pdf' }, { folder: 'Delta' }, { owner: 'bob@example.com' }, { year: '2025' }],
)

const askedArb = fc.record({
  query: queryArb,
  principals: fc.constantFrom(
    [ANN],
    [BOB],
    [ANN, GROUP],
    [BOB, ANN, GROUP],
    ['drive:nobody@example.com'],
    [],
  ),
  filters: filtersArb,
})

async function fill(index: IndexFixture, documents: readonly ModelDocument[]): Promise<void> {
  await index.search.prepare()
  await index.site.ledger.transaction(async (tx) => {
    for (const document of documents) {
      const { ref, source, title, owner, folders, texts, atMs, access } = document
      const type = document.type as DocumentType
      const people = [
        ...document.from.map((name) => ({ role: 'from' as const, name })),
        ...document.to.map((name) => ({ role: 'to' as const, name })),
      ]
      const sketch = { ref, source, type, title, owner, people, folders, modifiedAtMs: atMs, to_: [] }
      const made = index.document(texts.length === 0 ? sketch : { ...sketch, text: texts })
      await index.search.publish(tx, made)
      for (const [principal, expiresAtMs] of access)
        await index.search.grant(tx, made, principal, index.grant({ expiresAtMs }))
    }
  })
}

async function empty(index: IndexFixture, documents: readonly ModelDocument[]): Promise<void> {
  await index.site.ledger.transaction(async (tx) => {
    for (const { source, ref } of documents) await index.search.remove(tx, { source, ref })
  })
}

function requestOf({ filters, principals }: { filters: ModelFilters; principals: readonly string[] }) {
  const asLists = Object.fromEntries(Object.entries(filters).map(([facet, value]) => [facet, [value]]))
  return { reader: { principals }, filters: asLists } satisfies Partial<SearchRequest>
}

async function allPages(
  index: IndexFixture,
  text: string,
  request: Partial<SearchRequest>,
): Promise<{ refs: string[]; totals: number[] }> {
  const refs: string[] = []
  const totals: number[] = []
  let cursor: string | undefined
  do {
    const answer = await index.ask(text, { ...request, limit: 3, cursor })
    refs.push(...answer.hits.map(({ ref }) => ref))
    totals.push(answer.total)
    cursor = answer.nextCursor ?? undefined
  } while (cursor !== undefined)
  return { refs, totals }
}

onEachDatabase('any search', (withIndex, home) => {
  const numRuns = home.name.startsWith('PostgreSQL') ? 6 : 25
  const worldArb = fc.tuple(documentsArb, fc.array(askedArb, { minLength: 6, maxLength: 6 }))

  withIndex(
    'by words finds what a look at every document finds, with its counts and pages',
    async (index) => {
      const property = fc.asyncProperty(worldArb, async ([documents, asks]) => {
        const model = new SearchModel(documents)
        await fill(index, documents)
        for (const { query, principals, filters } of asks) {
          const parsed = parseSearch(query, { now: NOW, me: principals.map((one) => one.slice(6)) })
          const expected = model.byWords(parsed, { principals, nowMs: NOW, filters })
          const about = `${formatSearch(parsed)} as ${principals} with ${JSON.stringify(filters)}`
          const request = requestOf({ filters, principals })
          const { refs, totals } = await allPages(index, query, { ...request, copies: 'apart' })
          assert.deepEqual([...refs].sort(), expected.map(({ ref }) => ref).sort(), about)
          assert.ok(
            totals.every((total) => total === expected.length),
            about,
          )
          const together = await index.ask(query, { ...request, facets: true })
          const keys = (some: readonly ModelDocument[]): number =>
            new Set(some.map(({ contentKey: key }) => key)).size
          assert.equal(together.total, keys(expected), about)
          for (const { value, count } of together.facets.folder ?? [])
            assert.equal(count, keys(expected.filter(({ folders }) => folders.includes(value))), about)
          for (const { value, count } of together.facets.type ?? [])
            assert.equal(count, keys(expected.filter(({ type }) => type === value)), about)
          const types = new Set(expected.map(({ type }) => type))
          assert.deepEqual(new Set(together.facets.type!.map(({ value }) => value)), types, about)
        }
        await empty(index, documents)
      })
      await fc.assert(property, { numRuns })
    },
  )

  withIndex('by meaning and words finds both, and nothing that is left out or not visible', async (index) => {
    const property = fc.asyncProperty(worldArb, async ([documents, asks]) => {
      const model = new SearchModel(documents)
      await fill(index, documents)
      try {
        for (const { query, principals, filters } of asks) {
          const parsed = parseSearch(query, { now: NOW, me: principals.map((one) => one.slice(6)) })
          const asked = { principals, nowMs: NOW, filters }
          const { meaning } = planOf(parsed)
          const vector = index.embedder.vector(meaning)
          const similarities = new Map(
            documents.map(({ ref, texts }) => [
              ref,
              Math.max(-1, ...texts.map((one) => cosine(vector, index.embedder.vector(one)))),
            ]),
          )
          const { chance } = index.embedder
          const nearestMin = chance + NEAREST_MIN * (1 - chance)
          const isClose = [...similarities.values()].some(
            (value) => Math.abs(value - chance) < 0.01 || Math.abs(value - nearestMin) < 0.01,
          )
          if (isClose) continue
          const all =
            meaning === '' || principals.length === 0
              ? []
              : model.near(parsed, asked).filter(({ ref }) => similarities.get(ref)! > chance)
          // Where even the nearest is far, nothing counts that is near.
          const near = all.some(({ ref }) => similarities.get(ref)! > nearestMin) ? all : []
          const expected = new Set([...model.byWords(parsed, asked), ...near].map(({ ref }) => ref))
          const request = requestOf({ filters, principals })
          const { refs } = await allPages(index, query, { ...request, copies: 'apart', mode: 'auto' })
          assert.deepEqual([...refs].sort(), [...expected].sort(), formatSearch(parsed))
        }
      } finally {
        await empty(index, documents)
      }
    })
    await fc.assert(property, { numRuns })
  })
})

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0)
}
