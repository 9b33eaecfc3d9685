/**
 * One listing: all that an account owns or that is shared with it, or all that it sees of one shared drive. The token from
 * which changes are followed was taken before, so nothing that happens meanwhile is missed.
 *
 * What the listing does not show is taken away only if it was complete: every page came, and Google looked everywhere.
 */
import { z } from 'zod'
import { asTidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { type Outcome, type RunContext, request, TidemarkError } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { DriveKinds, ListingPayload } from './kinds.ts'
import { looksBy } from './looks.ts'
import { isLastTry } from './obstacles.ts'
import { corpusOf, readPage } from './pages.ts'
import { type Listed, PART_FILES_MAX, partsOf } from './plan.ts'
import { staleAccess, takeAway, takeIn } from './store/access.ts'
import { endListing, giveUpListing, isListing, noteRevoked } from './store/feeds.ts'

const State = z.object({
  pageToken: z.string().nullable(),
  pages: z.number(),
  listed: z.number(),
  isIncomplete: z.boolean(),
  /** A page that the service forgot: from the first again. */
  restarts: z.number(),
  isListed: z.boolean(),
})
type State = z.output<typeof State>

/** Beyond any Drive: a service that answers with next pages for ever must end. */
const PAGES_MAX = 20_000
const RESTARTS_MAX = 3
/** Taken away together. */
const SWEEP_PART = PART_FILES_MAX
const SWEEP_PARTS_MAX = 100_000

export async function runListing(kinds: DriveKinds, job: RunContext<ListingPayload>): Promise<Outcome> {
  const { account, drive, generation } = job.payload
  const feed = await kinds.tables.feed(account, drive)
  if (feed?.state !== 'listing' || Number(feed.listing) !== generation) {
    return { skip: 'another listing has taken its place', code: 'replaced', seal: true }
  }
  const state = State.nullable().parse(job.checkpoint) ?? firstState()
  let others: ReadonlySet<string> = new Set()
  try {
    if (!state.isListed) others = await listPages(kinds, job, state, feed)
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    const isRefused = error.kind === 'gone' || error.kind === 'permanent'
    const isHopeless = error.kind === 'transient' && drive !== '' && isLastTry(job)
    if (job.signal.aborted || !(isRefused || isHopeless)) throw thrown
    return {
      seal: true,
      effects: (tx) =>
        giveUpListing(tx, { account, drive }, { problem: error.message, nowMs: kinds.clock.now() }),
      note: `not listed, and nothing pruned: ${error.message}`,
      code: 'unreachable',
    }
  }
  if (!state.isIncomplete) await sweep(kinds, job)
  const isComplete = !state.isIncomplete
  return {
    seal: true,
    effects: async (tx) => {
      if (await isListing(tx, { account, drive }, generation))
        await endListing(tx, { account, drive }, { isComplete, nowMs: kinds.clock.now() })
    },
    jobs: [
      // What happened since the token was taken.
      request(kinds.sync, { account }),
      request(kinds.settle, { account }),
      ...(await looksBy(kinds, others.difference(new Set([account])))),
    ],
    note: `${formatCount(state.listed)} files${isComplete ? '' : ', not all: Google did not look everywhere'}`,
  }
}

function firstState(): State {
  return { pageToken: null, pages: 0, listed: 0, isIncomplete: false, restarts: 0, isListed: false }
}

/** Answers which accounts are to look because of what was listed. */
async function listPages(
  kinds: DriveKinds,
  job: RunContext<ListingPayload>,
  state: State,
  feed: { account: string; drive: string; name: string },
): Promise<ReadonlySet<string>> {
  const others = new Set<string>()
  const { client } = await kinds.accounts.get(feed.account)
  const index = await kinds.index()
  const { generation } = job.payload
  while (!state.isListed) {
    if (state.pages >= PAGES_MAX) {
      throw new TidemarkError(`the listing has more than ${PAGES_MAX} pages`, { kind: 'permanent' })
    }
    const askedAtMs = kinds.clock.now()
    const page = await client
      .list({
        ...corpusOf(feed),
        pageToken: state.pageToken ?? undefined,
        signal: job.signal,
      })
      .catch((error: unknown) => {
        if (!isPageForgotten(error) || state.pageToken === null || state.restarts >= RESTARTS_MAX) throw error
        return undefined
      })
    if (!page) {
      Object.assign(state, { pageToken: null, pages: 0, restarts: state.restarts + 1 })
      continue
    }
    const nowMs = kinds.clock.now()
    const found = await readPage(kinds, feed, page.files, { segment: job.segment!, askedAtMs, nowMs })
    state.pages += 1
    state.listed += found.count
    state.pageToken = page.nextPageToken ?? null
    state.isIncomplete ||= page.isIncomplete
    state.isListed = state.pageToken === null
    const parts = partsOf(found.listed)
    const last = parts.pop() ?? []
    const takeInPart = async (tx: Tx, listed: readonly Listed[]): Promise<void> => {
      if (await isListing(tx, feed, generation)) await takeIn(tx, index, { ...feed, generation }, listed)
    }
    // The page is counted, and left behind, with its last part: what is written twice changes nothing.
    for (const part of parts) await job.commit({ effects: (tx) => takeInPart(tx, part) })
    await job.commit({
      listed: found.count,
      stored: found.count - found.jobs.length,
      jobs: found.jobs,
      checkpoint: state,
      effects: (tx) => takeInPart(tx, last),
    })
    for (const other of await kinds.tables.unconfirmed(found.listed.map(({ id }) => id))) others.add(other)
    job.progress({ done: state.listed, unit: 'items', label: `${formatCount(state.listed)} files` })
  }
  return others
}

function isPageForgotten(error: unknown): boolean {
  return error instanceof TidemarkError && error.code === 'page-token-invalid'
}

/** What older listings had and this one has not. */
async function sweep(kinds: DriveKinds, job: RunContext<ListingPayload>): Promise<void> {
  const { account, drive, generation } = job.payload
  const index = await kinds.index()
  const of = { account, drive, before: generation, limit: SWEEP_PART }
  for (let part = 0; part < SWEEP_PARTS_MAX; part++) {
    const stale = await kinds.tables.ledger.driver.read((tx) => staleAccess(tx, of))
    if (stale.length === 0) return
    await job.commit({
      effects: async (tx) => {
        if (!(await isListing(tx, { account, drive }, generation))) return
        const revoked = await takeAway(tx, index, { account, drive }, await staleAccess(tx, of))
        await noteRevoked(
          tx,
          account,
          Array.from({ length: revoked }, () => ({ tookMs: null })),
        )
      },
    })
    if (!(await isStillListing(kinds, job.payload))) return
  }
}

async function isStillListing(
  kinds: DriveKinds,
  { account, drive, generation }: ListingPayload,
): Promise<boolean> {
  const feed = await kinds.tables.feed(account, drive)
  return feed?.state === 'listing' && Number(feed.listing) === generation
}
