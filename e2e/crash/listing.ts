/** Discovering segments, listing them page by page, storing their items in batches; see workload.ts. */
import { z } from 'zod'
import { TidemarkError } from '../../src/base/errors.ts'
import type { AnyJobKind, JobRequest, Outcome, RunContext } from '../../src/engine/job-kind.ts'
import { defineJob, request } from '../../src/engine/kinds.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { pause, transient } from './pace.ts'
import {
  CATEGORY_OF,
  fateOf,
  hash,
  PAGE_SPAN,
  pageItems,
  pagesIn,
  SEGMENT_SPAN,
  type SourceSize,
  SPLIT_PAGE,
  SPLIT_SEGMENT,
  streamEnd,
} from './source.ts'
import { addToList, apply, countBad, report, rowCount } from './tables.ts'

const STORE_ATTEMPTS = 3
const DIGEST_POLL_MS = 20

const batch = z.object({ items: z.array(z.string()) })
const page = z.object({ stream: z.string(), at: z.number() })
const stretch = z.object({ stream: z.string(), from: z.number(), to: z.number() })
const named = z.object({ stream: z.string() })
type Batch = z.infer<typeof batch>

export function listingJobs(
  size: SourceSize,
  ledger: () => Ledger,
): { kinds: AnyJobKind[]; first: (stream: string) => JobRequest[] } {
  const digest = digestJob(size, ledger)
  const store = storeJob(size, digest)
  const pageDone = pageJob(size)
  const list = listJob(size, { store, pageDone })
  const discover = discoverJob(size, list)
  return {
    kinds: [digest, store, pageDone, list, discover],
    first: (stream) => [request(discover, { stream }, { stream, priority: 5 })],
  }
}

/** Finds one segment after the other; each is written with the cursor at which it was found. */
function discoverJob(size: SourceSize, list: AnyJobKind) {
  return defineJob({
    kind: 'crash.discover',
    payload: named,
    run: async (job) => {
      const { stream } = job.payload
      const { found } = (job.checkpoint as { found: number } | null) ?? { found: 0 }
      for (let n = found; n < size.segments; n++) {
        await pause(job, size, `${stream} discover ${n}`)
        const [from, to] = [n * SEGMENT_SPAN, (n + 1) * SEGMENT_SPAN]
        await job.commit({
          segments: [{ streamId: job.job.streamId, from, to, mark: markAt(to), ref: 'new' }],
          jobs: [request(list, { stream, from, to }, { segment: 'new' })],
          cursor: `found ${n + 1}`,
          checkpoint: { found: n + 1 },
        })
      }
    },
  })
}

export const markAt = (position: number): string => `token-${position}`

type ListKinds = { store: AnyJobKind; pageDone: AnyJobKind }
type Listing = { at: number; to: number }

function listJob(size: SourceSize, kinds: ListKinds): AnyJobKind {
  const list: AnyJobKind = defineJob({
    kind: 'crash.list',
    payload: stretch,
    priority: 3,
    run: async (job) => {
      const { stream, from, to } = job.payload
      const saved = (job.checkpoint as Listing | null) ?? { at: from, to }
      for (const at of pagesIn(size, saved.at, saved.to)) {
        if (at >= saved.to) break
        await pause(job, size, `${stream} list ${at}`)
        const nth = (at % SEGMENT_SPAN) / PAGE_SPAN
        if (job.job.failures < Math.min(nth, 2)) throw transient('the source did not answer')
        const cut = cutBefore(at, { from, to: saved.to })
        if (cut !== undefined) saved.to = cut
        saved.at = at + PAGE_SPAN
        await job.commit(listedPage(job, at, { stream, cut, saved, to, list }))
      }
      return { seal: true }
    },
  })

  /** One commit: the page's batches, its count, what follows it, and where to go on. */
  function listedPage(
    job: RunContext<unknown>,
    at: number,
    o: { stream: string; cut: number | undefined; saved: Listing; to: number; list: AnyJobKind },
  ): Outcome {
    const { stream, cut, saved, to } = o
    const items = pageItems(size, stream, at)
    const segment = job.segment!
    const batches: JobRequest[] = []
    for (let n = 0; n < items.length; n += size.batchItems) {
      const part = { items: items.slice(n, n + size.batchItems) }
      batches.push(request(kinds.store, part, { segment, lane: 'bulk' }))
    }
    const rest = cut === undefined ? [] : [request(o.list, { stream, from: cut, to }, { segment: 'rest' })]
    return {
      effects: (tx) => apply(tx, 'pages', [{ name: `${stream}:${at}` }]),
      listed: items.length,
      split: cut === undefined ? undefined : { at: cut, ref: 'rest', mark: markAt(cut) },
      jobs: [...batches, ...rest],
      followUp: request(kinds.pageDone, { stream, at }, { segment }),
      checkpoint: saved,
    }
  }
  return list
}

/** The chosen segment is cut when its second page is listed, so that the rest starts with the third. */
function cutBefore(at: number, { from, to }: { from: number; to: number }): number | undefined {
  const start = SPLIT_SEGMENT * SEGMENT_SPAN
  const cut = start + SPLIT_PAGE * PAGE_SPAN
  return from === start && to > cut && at === cut - PAGE_SPAN ? cut : undefined
}

/** Stores a batch. One item can spoil it, and now and then its effects fail after they were half done. */
function storeJob(size: SourceSize, digest: AnyJobKind) {
  return defineJob<Batch>({
    kind: 'crash.store',
    payload: batch,
    attempts: STORE_ATTEMPTS,
    items: { of: ({ items }) => items, only: (_, items) => ({ items: [...items] }) },
    run: async (job) => {
      const { items } = job.payload
      const { failures } = job.job
      const salt = hash(`batch ${items[0]}`)
      await pause(job, size, `store ${items[0]}`)
      const flaky = salt % 3 === 0 ? 1 : 0
      if (failures < flaky) throw transient('try again')
      refuse(items)
      const of = (...fates: string[]): string[] => items.filter((item) => fates.includes(fateOf(item)))
      const stored = of('stored', 'heavy')
      const told = of('told-bad', 'told-gone', 'skipped')
      const spoilt = salt % 4 === 0 && failures === flaky
      return {
        effects: async (tx) => {
          await apply(
            tx,
            'applied',
            stored.map((name) => ({ name, value: 'stored' })),
          )
          await addToList(tx, stored)
          await apply(
            tx,
            'told',
            told.map((name) => ({ name, value: CATEGORY_OF[fateOf(name)] })),
          )
          if (spoilt) throw new Error('the effects of this batch fail once')
        },
        gone: of('told-gone').length,
        skipped: of('skipped').length,
        bad: of('told-bad').map((item) => ({ item, reason: 'unreadable, says the handler' })),
        jobs: [request(digest, { stream: items[0]!.split(':')[0]! }, { lane: 'interactive' })],
      }
    },
  })
}

function refuse(items: readonly string[]): void {
  for (const item of items) {
    const fate = fateOf(item)
    if (fate === 'poison') throw new TidemarkError(`${item} is malformed`, { kind: 'permanent' })
    if (fate === 'gone') throw new TidemarkError(`${item} is not there`, { kind: 'gone' })
    if (fate === 'heavy' && items.length > 1) throw transient(`${item} is too much for one request`)
  }
}

/** Runs when all batches of the page have settled, however they were split: then the page is complete. */
function pageJob(size: SourceSize) {
  return defineJob({
    kind: 'crash.page',
    payload: page,
    run: async (job) => {
      const { stream, at } = job.payload
      const items = pageItems(size, stream, at)
      const expected = items.filter((item) => fateOf(item) !== 'gone').length
      return {
        effects: async (tx) => {
          const bad = items.filter((item) => fateOf(item) === 'poison')
          const found = (await rowCount(tx, 'applied', items)) + (await rowCount(tx, 'told', items))
          const poison = bad.length === 0 ? 0 : await countBad(tx, bad)
          if (found + poison !== expected)
            await report(tx, `page ${stream}:${at} ended with ${found + poison} of ${expected} items`)
          await apply(tx, 'steps', [{ name: `page ${stream}:${at}` }])
        },
      }
    },
  })
}

/** One per stream: every batch asks for it, and it waits for the last of them, so there is only ever one. */
function digestJob(size: SourceSize, ledger: () => Ledger) {
  return defineJob({
    kind: 'crash.digest',
    payload: named,
    key: ({ stream }) => stream,
    run: async (job) => {
      const { stream } = job.payload
      const looks = (job.checkpoint as number | null) ?? 0
      const row = await ledger()
        .stream(stream)
        .catch((error: unknown) => {
          // The ledger is away for a while: that costs no try, or the end would tell of it.
          if (error instanceof TidemarkError && error.kind === 'transient') return null
          throw error
        })
      if (!row || row.mark_at < streamEnd(size))
        return { again: { afterMs: DIGEST_POLL_MS }, checkpoint: looks + 1 }
      return { effects: (tx) => apply(tx, 'digests', [{ name: stream, value: String(row.mark) }]) }
    },
  })
}
