/** Everything for models: finding it, reading it, and who can see it. Text of others is quoted. */
import { z } from 'zod'
import { type AnswerPart, defineTool } from '../../../app/module.ts'
import { oneLine } from '../../../app/plain-text.ts'
import { formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { DOCUMENT_TYPES } from '../../../search/contract.ts'
import { NOT_ANSWERED } from '../words.ts'
import { QUERY_CHARS_MAX, readAs, searchAs, whoSees } from './answers.ts'
import type { HitView } from './schemas.ts'

const HITS_MAX = 20
const HITS_DEFAULT = 10
const CHUNKS_MAX = 40
const CHUNKS_DEFAULT = 15
const TITLE_CHARS_MAX = 200
const SNIPPET_CHARS_MAX = 600

const search = defineTool({
  name: 'search',
  title: 'Search everything',
  access: 'read',
  audience: 'member',
  description:
    'Finds documents, mail and files in everything that is kept for the user, by words and by meaning, and answers a few ' +
    'lines for each: its id, name, place, the passage that fits, and why it was found. Takes words, "phrases", -not, and ' +
    'operators: source: type: owner: from: to: in: before: after:.',
  narrower: 'Ask for fewer with limit, or go on with the cursor.',
  input: z.strictObject({
    query: z.string().min(1).max(QUERY_CHARS_MAX),
    source: z.string().max(100).optional().describe('Only of this one: drive, mail, files'),
    type: z.enum(DOCUMENT_TYPES).optional(),
    limit: z.int().min(1).max(HITS_MAX).default(HITS_DEFAULT),
    cursor: z.string().max(2_000).optional().describe('From the answer before, with the same query'),
  }),
  run: async ({ query, source, type, limit, cursor }, services, { user }) => {
    const filters = { ...(source && { source: [source] }), ...(type && { type: [type] }) }
    const signal = new AbortController().signal
    const answer = await searchAs(services, user, { text: query, filters, limit, cursor, signal })
    const parts: AnswerPart[] = [
      `${formatCount(answer.total)} found, by ${answer.by.join(' and ') || 'nothing'}.`,
    ]
    if (answer.total > 0 && !answer.answered) parts.push(` ${NOT_ANSWERED}`)
    // It may say what the embedding service answered.
    if (answer.fellBack) parts.push(' ', { quote: oneLine(answer.fellBack.text, SNIPPET_CHARS_MAX) })
    if (answer.didYouMean !== null) parts.push(' Did you mean ', { quote: answer.didYouMean }, '?')
    parts.push('\n')
    for (const hit of answer.hits) parts.push(...hitParts(hit))
    if (answer.next !== null) parts.push(`\nMore: cursor ${answer.next}`)
    return parts
  },
})

function hitParts(hit: HitView): AnswerPart[] {
  const text = (marked: HitView['title']): string => marked.map((part) => part.text).join('')
  const when = hit.modifiedAtMs === null ? '' : `, changed ${isoTime(hit.modifiedAtMs).slice(0, 10)}`
  const where = hit.citation?.text ? [', at ', { quote: oneLine(hit.citation.text, TITLE_CHARS_MAX) }] : []
  return [
    `\n#${hit.id} ${hit.type} of ${hit.source}${when}: `,
    { quote: oneLine(text(hit.title), TITLE_CHARS_MAX) },
    ...where,
    '\n',
    { quote: oneLine(text(hit.snippet), SNIPPET_CHARS_MAX) },
    '\nWhy: ',
    { quote: hit.why.texts.join(' ') },
    '\n',
  ]
}

const read = defineTool({
  name: 'read',
  title: 'Read a document',
  access: 'read',
  audience: 'member',
  description: 'Reads the text of a document that search has found, from any of its passages on.',
  narrower: 'Go on with from, or ask for fewer with limit.',
  input: z.strictObject({
    id: z.int().min(1).describe('The number of the document, as search gives it'),
    from: z.int().min(0).default(0).describe('Which passage to begin with'),
    limit: z.int().min(1).max(CHUNKS_MAX).default(CHUNKS_DEFAULT),
  }),
  run: async ({ id, from, limit }, services, { user }) => {
    const found = await readAs(services, user, { id, from, limit })
    const parts: AnswerPart[] = [
      `#${found.id} ${found.type} of ${found.source}: `,
      { quote: oneLine(found.title, TITLE_CHARS_MAX) },
      '\n',
    ]
    if (found.unread) parts.push('It could not be read: ', { quote: found.unread.reason }, '\n')
    for (const chunk of found.chunks) {
      parts.push(`\n[${chunk.n}`)
      // Sheets are named by whoever wrote the document.
      if (chunk.where !== '') parts.push(', ', { quote: oneLine(chunk.where, TITLE_CHARS_MAX) })
      parts.push(']\n', { quote: chunk.text }, '\n')
    }
    const next = from + found.chunks.length
    if (next < found.chunkCount)
      parts.push(`\n${formatCount(found.chunkCount - next)} passages more: from ${next}`)
    return parts
  },
})

const who = defineTool({
  name: 'who',
  title: 'Who can see a document',
  access: 'read',
  description: 'Says who can see a document, and through what. That it was asked is written down.',
  narrower: 'There is no less.',
  input: z.strictObject({ id: z.int().min(1).describe('The number of the document, as search gives it') }),
  run: async ({ id }, services, { user }) => {
    const { items } = await whoSees(services, user, id)
    return items.flatMap(({ principal, user: name, kind, via }): AnswerPart[] => [
      `${kind}: `,
      { quote: `${name ?? 'nobody here'} (${principal}) ${via}` },
      '\n',
    ])
  },
})

export const searchTools = [search, read, who]
