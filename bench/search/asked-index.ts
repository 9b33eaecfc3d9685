/** Searches on a filled index, one after another, each as a person would get it: embedded, found, with facets. */
import { readFileSync } from 'node:fs'
import { systemClock } from '../../src/base/clock.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { openEmbedder } from '../../src/search/embed/open.ts'
import { openSearch } from '../../src/search/search.ts'
import { readerOf, word } from './filled-index.ts'

export type AskOrder = { do: 'ask'; url: string; visible: readonly number[]; rounds: number }
export type Asked = {
  /**
   * `ms` is without embedding the query, `wholeMs` with it. The processor's time is of this process: those of PostgreSQL
   * and of the model are not in it.
   */
  visible: { visible: number; ms: number[]; wholeMs: number[]; processorMs: number[]; hits: number }[]
  /** Of embedding a query, in the process of the model. */
  embedMs: number[]
  /** The highest resident size of this process; the model has another. */
  peakMb: number
  /** At the end, without pages of files: those of a database are given back when others need the memory. */
  ownMb: number
}

/** Rare words, words that most documents have, several, phrases, filters, and a whole question. */
export const QUERIES: readonly string[] = [
  word(40_000),
  word(9_000),
  word(700),
  word(60),
  `${word(300)} ${word(12_000)}`,
  `${word(40)} ${word(2_500)} ${word(31_000)}`,
  `${word(3)} ${word(17)} ${word(90)}`,
  `"${word(2)} ${word(5)}"`,
  `${word(150)} type:pdf`,
  `${word(150)} -${word(20)} after:2024-06-01`,
  `${word(800)} owner:person17`,
  `what was decided about ${word(500)} and ${word(6_000)} at the meeting in spring`,
  `${word(1)} ${word(2)} ${word(3)} ${word(4)} ${word(20_000)}`,
  `in:"folder 31" ${word(25)}`,
]

export async function ask({ url, visible, rounds }: AskOrder): Promise<Asked> {
  const ledger = await openLedger(url)
  const builtin = openEmbedder({ kind: 'builtin', threads: 1 }, { fetch, clock: systemClock })!
  const embedMs: number[] = []
  let embeddedMs = 0
  const embedder = {
    ...builtin,
    // Vectors at random are near nothing: all of them count, so that the search has its whole work to do.
    chance: -1,
    async embed(...args: Parameters<typeof builtin.embed>) {
      const fromMs = systemClock.monotonicMs()
      const vectors = await builtin.embed(...args)
      embeddedMs = systemClock.monotonicMs() - fromMs
      embedMs.push(embeddedMs)
      return vectors
    },
  }
  const search = openSearch({ ledger, embedder })
  try {
    const asked: Asked['visible'] = []
    for (const one of visible) {
      const ms: number[] = []
      const wholeMs: number[] = []
      const processorMs: number[] = []
      let hits = 0
      // The first round warms up and does not count.
      for (let round = 0; round <= rounds; round++) {
        for (const text of QUERIES) {
          const fromMs = systemClock.monotonicMs()
          const from = process.cpuUsage()
          embeddedMs = 0
          const answer = await search.search({
            text,
            reader: { principals: [readerOf(one)] },
            limit: 20,
            facets: true,
            nowMs: systemClock.now(),
            signal: new AbortController().signal,
          })
          if (answer.fellBack) throw new Error(answer.fellBack.text)
          if (round > 0) {
            const tookMs = systemClock.monotonicMs() - fromMs
            wholeMs.push(tookMs)
            ms.push(tookMs - embeddedMs)
            const used = process.cpuUsage(from)
            processorMs.push((used.user + used.system) / 1_000)
          }
          hits += answer.hits.length
        }
      }
      asked.push({ visible: one, ms, wholeMs, processorMs, hits })
    }
    return {
      visible: asked,
      embedMs: embedMs.slice(QUERIES.length),
      peakMb: statusMb('VmHWM'),
      ownMb: statusMb('RssAnon'),
    }
  } finally {
    await search.close()
    await builtin.close()
    await ledger.close()
  }
}

function statusMb(field: 'VmHWM' | 'RssAnon'): number {
  const kb = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Number(kb) / 1024
}
