/**
 * What is found of the evaluation set: by words alone, by meaning alone, and by both. Through the index itself, with the
 * embedder that comes with the package, in a database of its own.
 */
import { createHash } from 'node:crypto'
import { systemClock } from '../../src/base/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { Chunk } from '../../src/search/chunk.ts'
import { chunkContext, type NewDocument } from '../../src/search/contract.ts'
import type { Embedder } from '../../src/search/embed/embedder.ts'
import { openEmbedder } from '../../src/search/embed/open.ts'
import { contentKey } from '../../src/search/index/content-key.ts'
import { openSearch, type Search } from '../../src/search/search.ts'
import type { Row } from '../bench.ts'
import { row } from '../session.ts'
import {
  type EvaluationDocument,
  type EvaluationSet,
  GROUPS,
  type Group,
  readEvaluation,
} from './evaluation.ts'
import type { Session } from './session.ts'

export const QUALITY = 'quality'
const HELD_OUT = `${QUALITY}, held out`
export const MODES = ['words', 'meaning', 'hybrid'] as const
export type Mode = (typeof MODES)[number]

const READER = 'bench:reader'
const HITS = 20
/** Dates of the set are before it, so that recency is what it would be. */
const NOW_MS = Date.UTC(2025, 10, 1)

/** `rank`: of the first relevant hit, from 1; null where it is not among the first. */
export type Outcome = {
  group: Group
  text: string
  rank: number | null
  hits: number
  /** Whether the search calls any of its hits an answer. */
  answered: boolean
  first: string | null
}

export async function runQuality(session: Session): Promise<Row[]> {
  const set = readEvaluation()
  const embedder = openEmbedder({ kind: 'builtin', threads: 1 }, { fetch, clock: systemClock })!
  const ledger = await openLedger('sqlite::memory:')
  try {
    session.say(`${QUALITY}: ${set.documents.length} documents are embedded`)
    const search = await fillIndex(ledger, embedder, set)
    const rows: Row[] = []
    const halves: [Row[], Row[]] = [[], []]
    for (const mode of MODES) {
      const outcomes = await askAll(search, set, mode)
      rows.push(...qualityRows(mode, outcomes))
      for (const half of [0, 1] as const) {
        halves[half].push(
          ...qualityRows(
            mode,
            outcomes.filter(({ text }) => halfOf(text) === half),
          ),
        )
      }
      if (mode === 'hybrid') session.notes.push(...missed(outcomes))
      rows.push(...qualityRows(mode, await askAll(search, { queries: set.heldOut }, mode), HELD_OUT))
    }
    await search.close()
    session.notes.push(...halves.flatMap((of, half) => halfLines(of, half)))
    return rows
  } finally {
    await ledger.close()
    await embedder.close()
  }
}

export async function fillIndex(ledger: Ledger, embedder: Embedder, set: EvaluationSet): Promise<Search> {
  const search = openSearch({ ledger, embedder })
  await search.prepare()
  const documents = set.documents.map(newDocument)
  const texts = documents.map(({ title, chunk }) => chunkContext(title, chunk))
  const signal = new AbortController().signal
  const vectors = await embedder.embed(texts, { purpose: 'document', signal })
  for (const [at, { chunk, ...document }] of documents.entries()) {
    const key = contentKey(document.ref, document.title)
    const of = { model: embedder.model, of: [vectors[at]!] }
    const content = { key, chunks: [chunk], vectors: of, isTruncated: false }
    await ledger.transaction(async (tx) => {
      await search.publish(tx, { ...document, content })
      const grant = { kind: 'owner', via: '', generation: 1, expiresAtMs: null } as const
      await search.grant(tx, document, READER, grant)
    })
  }
  return search
}

function newDocument(document: EvaluationDocument): Omit<NewDocument, 'content'> & { chunk: Chunk } {
  const { id, type, day, owner, folders, title, text } = document
  return {
    source: 'bench',
    ref: id,
    title,
    type,
    mimeType: 'text/plain',
    owner,
    people: [],
    folders,
    url: '',
    createdAtMs: null,
    modifiedAtMs: Date.parse(day),
    sizeBytes: text.length,
    version: '1',
    chunk: { n: 0, text, headings: [], place: { kind: 'none' } },
  }
}

export async function askAll(
  search: Search,
  set: Pick<EvaluationSet, 'queries'>,
  mode: Mode,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const { group, text, relevant } of set.queries) {
    const { hits, answered } = await search.search({
      text,
      reader: { principals: [READER] },
      mode: mode === 'hybrid' ? 'auto' : mode,
      limit: HITS,
      nowMs: NOW_MS,
      signal: new AbortController().signal,
    })
    const at = hits.findIndex(({ ref }) => relevant.includes(ref))
    outcomes.push({
      group,
      text,
      rank: at === -1 ? null : at + 1,
      hits: hits.length,
      answered,
      first: hits[0]?.ref ?? null,
    })
  }
  return outcomes
}

export function qualityRows(mode: Mode, outcomes: readonly Outcome[], of = QUALITY): Row[] {
  const subject = mode === 'hybrid' ? 'tidemark' : `${mode} alone`
  return GROUPS.flatMap((group) => {
    const asked = outcomes.filter((outcome) => outcome.group === group)
    if (asked.length === 0) return []
    const share = (is: (outcome: Outcome) => number): number =>
      asked.reduce((sum, outcome) => sum + is(outcome), 0) / asked.length
    if (group === 'unanswerable') {
      const silent = share(({ hits }) => (hits === 0 ? 1 : 0))
      const honest = share(({ answered }) => (answered ? 0 : 1))
      return [
        row(`${of}: ${group}, answered with nothing`, subject, silent, 'share'),
        row(`${of}: ${group}, nothing called an answer`, subject, honest, 'share'),
      ]
    }
    const within = (most: number) => share(({ rank }) => (rank !== null && rank <= most ? 1 : 0))
    return [
      row(`${of}: ${group}, recall@1`, subject, within(1), 'share'),
      row(`${of}: ${group}, recall@5`, subject, within(5), 'share'),
      row(
        `${of}: ${group}, MRR`,
        subject,
        share(({ rank }) => (rank === null ? 0 : 1 / rank)),
        'share',
      ),
      row(
        `${of}: ${group}, among the first 5 and called an answer`,
        subject,
        share(({ rank, answered }) => (answered && rank !== null && rank <= 5 ? 1 : 0)),
        'share',
      ),
    ]
  })
}

/** By the text of a query, so that adding others moves none: what holds in one half only was chosen by chance. */
export function halfOf(text: string): 0 | 1 {
  return (createHash('sha256').update(text).digest()[0]! & 1) as 0 | 1
}

/** Of one half of the queries, each number of both together beside those of words and of meaning alone. */
export function halfLines(rows: readonly Row[], half: number): string[] {
  return rows
    .filter(({ subject, case: name }) => subject === 'tidemark' && /recall|MRR|nothing called/.test(name))
    .map(({ case: name, value }) => {
      const of = (subject: string) => rows.find((one) => one.case === name && one.subject === subject)!.value
      const [words, meaning] = [of('words alone'), of('meaning alone')]
      const is = value >= Math.max(words, meaning) ? 'best or equal' : 'not the best'
      return `half ${half + 1}, ${name.slice(QUALITY.length + 2)}: ${value} (words ${words}, meaning ${meaning}): ${is}`
    })
}

/** For whoever wants to do better. */
function missed(outcomes: readonly Outcome[]): string[] {
  return GROUPS.flatMap((group) => {
    const of = outcomes.filter(({ group: own, rank, answered }) =>
      own !== group ? false : group === 'unanswerable' ? answered : rank === null || rank > 5,
    )
    if (of.length === 0) return []
    const what =
      group === 'unanswerable' ? 'answered, though nothing answers' : `${group}, not among the first five`
    return [`${what}: ${of.map(({ text }) => `\`${text}\``).join(', ')}`]
  })
}
