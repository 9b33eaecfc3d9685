/**
 * Lists a slice: ids page by page. A slice of several pages is listed until a whole pass finds nothing new, since a
 * message that vanishes while pages are turned may hide another one; listing costs a two-thousandth of fetching.
 * A slice deeper than 20 pages is cut in half, and the halves are listed on their own.
 */
import { z } from 'zod'
import { type Outcome, type RunContext, request, TidemarkError } from '../../engine/index.ts'
import type { MailKinds, SlicePayload } from './kinds.ts'
import { chunksOf, cutOf, listParts, markOf, sliceQuery, wantsSpamOrTrash } from './plan.ts'
import { noteFresh } from './store/tables.ts'

const PAGES_MAX = 20
const PASSES_MAX = 4
/** Beyond any mailbox: ten million ids in a slice that cannot be cut. */
const PAGES_IN_ALL_MAX = 20_000

const State = z.object({
  toS: z.number(),
  isLast: z.boolean(),
  part: z.number(),
  pass: z.number(),
  pages: z.number(),
  pageToken: z.string().nullable(),
  /** New ids in this pass. */
  found: z.number(),
  /** Listed and counted, and not yet in a batch. */
  rest: z.array(z.string()),
})
type State = z.output<typeof State>

export async function runListing(kinds: MailKinds, job: RunContext<SlicePayload>): Promise<Outcome> {
  const { payload, signal } = job
  const account = await kinds.accounts.get(payload.account)
  const parts = listParts(kinds.settings.sliceByLabel)
  const state = State.nullable().parse(job.checkpoint) ?? startState(payload)
  const list = async (): Promise<{ ids: string[]; nextPageToken: string | null }> => {
    const bounds = {
      fromS: payload.isFirst ? null : payload.fromS,
      toS: state.isLast ? null : state.toS,
    }
    const page = await account.client.listIds({
      query: sliceQuery(bounds, account.choices, parts[state.part]),
      includeSpamTrash: wantsSpamOrTrash(account.choices),
      pageToken: state.pageToken ?? undefined,
      signal,
    })
    return { ids: page.ids.map(({ id }) => id), nextPageToken: page.nextPageToken ?? null }
  }

  for (let turned = 0; turned < PAGES_IN_ALL_MAX; turned++) {
    const page = await list().catch((error: unknown) => {
      // A page token that the service no longer takes: from the first page again, known ids are passed over.
      if (state.pageToken && error instanceof TidemarkError && error.kind === 'permanent') return null
      throw error
    })
    if (!page) {
      Object.assign(state, { pageToken: null, pages: 0 })
      continue
    }
    state.pages += 1
    const isEnd = await kinds.listingLock.run(payload.account, () =>
      turnPage(kinds, job, state, page, parts.length),
    )
    job.progress({ done: state.pages, unit: 'items', label: `page ${state.pages}` })
    if (isEnd) return { seal: true }
  }
  throw new TidemarkError(`the slice has more than ${PAGES_IN_ALL_MAX} pages`, { kind: 'permanent' })
}

function startState({ toS, isLast }: SlicePayload): State {
  return { toS, isLast, part: 0, pass: 1, pages: 0, pageToken: null, found: 0, rest: [] }
}

/** Commits what the page brought and where to go on; true when the slice is listed to its end. */
async function turnPage(
  kinds: MailKinds,
  job: RunContext<SlicePayload>,
  state: State,
  page: { ids: string[]; nextPageToken: string | null },
  parts: number,
): Promise<boolean> {
  const { account } = job.payload
  const fresh = await kinds.tables.unlisted(account, [...new Set(page.ids)])
  state.rest.push(...fresh)
  state.found += fresh.length
  state.pageToken = page.nextPageToken
  const cut =
    state.pageToken && state.pages >= PAGES_MAX ? cutOf({ fromS: job.payload.fromS, toS: state.toS }) : null
  const newer =
    cut === null ? null : { ...job.payload, fromS: cut, toS: state.toS, isFirst: false, isLast: state.isLast }
  if (cut !== null) {
    Object.assign(state, { toS: cut, isLast: false, pageToken: null, pages: 0, pass: 1, found: 0, part: 0 })
  }
  const isEnd = cut === null && !state.pageToken && !nextPass(state, parts)
  const size = kinds.batchSize(account).size
  const full = isEnd ? state.rest.length : Math.floor(state.rest.length / size) * size
  const batches = chunksOf(state.rest.splice(0, full), size)
  await job.commit({
    listed: fresh.length,
    jobs: [
      ...batches.map((ids) => request(kinds.fetch, { account, ids }, { segment: job.segment! })),
      ...(newer ? [request(kinds.list, newer, { segment: 'newer', items: 0 })] : []),
    ],
    ...(cut === null ? {} : { split: { at: cut, ref: 'newer', mark: markOf(cut) } }),
    effects: (tx) => noteFresh(tx, account, fresh),
    checkpoint: state,
  })
  return isEnd
}

/** After the last page: another pass if several pages brought news, then the next part of the slice. */
function nextPass(state: State, parts: number): boolean {
  if (state.pages > 1 && state.found > 0 && state.pass < PASSES_MAX) {
    Object.assign(state, { pass: state.pass + 1, pages: 0, found: 0 })
    return true
  }
  if (state.part + 1 >= parts) return false
  Object.assign(state, { part: state.part + 1, pass: 1, pages: 0, found: 0 })
  return true
}
