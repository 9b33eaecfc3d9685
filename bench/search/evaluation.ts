/**
 * The evaluation set: documents and queries that were written for it, and which documents answer which query. It is
 * data in `eval/`; see `eval/README.md`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { DOCUMENT_TYPES } from '../../src/search/contract.ts'

export const GROUPS = [
  'lexical',
  'paraphrase',
  'operators',
  'language',
  'cross-language',
  'unanswerable',
] as const
export type Group = (typeof GROUPS)[number]

const document = z.strictObject({
  id: z.string().regex(/^[a-z]{1,2}\d\d$/),
  type: z.enum(DOCUMENT_TYPES),
  day: z.iso.date(),
  owner: z.email(),
  folders: z.array(z.string().min(1)).min(1),
  title: z.string().min(3),
  text: z.string().min(100),
})
export type EvaluationDocument = z.output<typeof document>

const query = z.strictObject({
  group: z.enum(GROUPS),
  text: z.string().min(3),
  /** Ids of the documents that answer it; none where nothing does. */
  relevant: z.array(z.string()),
})
export type EvaluationQuery = z.output<typeof query>

export type EvaluationSet = {
  documents: readonly EvaluationDocument[]
  queries: readonly EvaluationQuery[]
  /** On which limits are chosen; what is reported is of the others. */
  tuning: readonly EvaluationQuery[]
  /** Written after everything was chosen, and asked once before they were reported. */
  heldOut: readonly EvaluationQuery[]
}

const FOLDER = new URL('./eval/', import.meta.url)

export function readEvaluation(): EvaluationSet {
  const files = readdirSync(new URL('documents/', FOLDER)).sort()
  const documents = files.flatMap((file) =>
    parseDocuments(readFileSync(new URL(`documents/${file}`, FOLDER), 'utf8')),
  )
  const [queries, tuning, heldOut] = ['queries', 'tuning', 'heldout'].map((name) =>
    readQueries(`${name}.jsonl`),
  )
  return { documents, queries: queries!, tuning: tuning!, heldOut: heldOut! }
}

function readQueries(file: string): EvaluationQuery[] {
  const lines = readFileSync(new URL(file, FOLDER), 'utf8').trim().split('\n')
  return lines.map((line) => query.parse(JSON.parse(line)))
}

/** `=== id type day owner folders` on a line, the title on the next, then the text up to the next such line. */
function parseDocuments(text: string): EvaluationDocument[] {
  return text
    .split(/^=== /m)
    .slice(1)
    .map((part) => {
      const [head = '', title = '', ...body] = part.split('\n')
      const [id, type, day, owner, ...folders] = head.split(' ')
      const path = folders.join(' ').split('/')
      return document.parse({ id, type, day, owner, folders: path, title, text: body.join('\n').trim() })
    })
}
