/**
 * Brings an account up to date. Only this job begins listings and follows changes of an account, and there is one of it
 * at a time: a feed is either listed or followed, so that a page that was read before a revocation cannot be written
 * after it.
 */
import { asTidemarkError } from '../../base/errors.ts'
import { type Outcome, type RunContext, request } from '../../engine/index.ts'
import { followChanges } from './changes.ts'
import { checkExpired } from './expiry.ts'
import { checkFolders } from './folders.ts'
import { forgetFeed } from './forget.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { looksBy } from './looks.ts'
import { refuseUnconfirmed } from './store/access.ts'
import {
  beginListing,
  dropFeed,
  noteProblem,
  noteRevoked,
  noteTime,
  putFeed,
  wantListing,
} from './store/feeds.ts'
import { DOMAIN } from './store/schema.ts'
import type { FeedRow } from './store/tables.ts'

/** Of a feed that has no changes of its own. */
const NO_TOKEN = 'none'
/** What the domain may find is told to nobody: it is listed as often as folders are compared, and not more often than this. */
const DOMAIN_LIST_MS_MIN = 60_000
/** Joined and left drives, folders and changes may each ask for one more look. */
const ROUNDS_MAX = 3

export async function runSync(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account } = job.payload
  const { tables, clock, settings } = kinds
  let isDrivesAgain = true
  let changes = 0
  const others = new Set<string>()
  for (let round = 0; round < ROUNDS_MAX && isDrivesAgain; round++) {
    await followDrives(kinds, job)
    await beginListings(kinds, job)
    isDrivesAgain = false
    const feeds = await tables.feeds(account)
    // What the domain may find is told with the account's own changes: a page of it that is under way is older.
    const isDomainListed = feeds.some(({ drive, state }) => drive === DOMAIN && state === 'listing')
    for (const feed of feeds) {
      if (feed.state !== 'following' || feed.token === null || feed.drive === DOMAIN) continue
      if (feed.drive === '' && isDomainListed) continue
      const followed = await followChanges(kinds, job, feed)
      changes += followed.changes
      for (const other of followed.unconfirmed) others.add(other)
      isDrivesAgain ||= followed.isAboutDrives
    }
  }
  const row = await tables.account(account)
  if (clock.now() - Number(row?.folders_at ?? 0) >= settings.folderCheckMs) await checkFolders(kinds, job)
  const asked = await checkExpired(kinds, job)
  await beginListings(kinds, job)
  others.delete(account)
  return {
    jobs: [request(kinds.settle, { account }), ...(await looksBy(kinds, others))],
    effects: async (tx) => {
      await refuseUnconfirmed(tx, account, asked)
      await noteTime(tx, account, 'checked_at', clock.now())
      await noteTime(tx, account, 'processing_at', clock.now())
    },
    note: changes === 0 ? 'no changes' : `${changes} changes`,
  }
}

/** Which shared drives the account is in: those that are new are listed, those that it left are forgotten. */
async function followDrives(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<void> {
  const { account } = job.payload
  const { client } = await kinds.accounts.get(account)
  const drives = await client.drives({ signal: job.signal })
  const feeds = await kinds.tables.feeds(account)
  const known = new Map(feeds.map((feed) => [feed.drive, feed]))
  const wanted = [{ id: '', name: 'My Drive' }, { id: DOMAIN, name: 'Shared with everybody' }, ...drives]
  const news = wanted.filter(({ id, name }) => known.get(id)?.name !== name)
  if (news.length > 0) {
    await job.commit({
      effects: async (tx) => {
        for (const { id, name } of news) await putFeed(tx, { account, drive: id, name })
      },
    })
  }
  const there = new Set(wanted.map(({ id }) => id))
  for (const feed of feeds) if (!there.has(feed.drive)) await leaveDrive(kinds, job, feed)
}

/** Only where the drive itself says that it is none of the account's: one that cannot be reached prunes nothing. */
async function leaveDrive(kinds: DriveKinds, job: RunContext<AccountPayload>, feed: FeedRow): Promise<void> {
  const { account, drive } = feed
  const { client } = await kinds.accounts.get(account)
  const problem = await client.drive(drive, { signal: job.signal }).then(
    () => undefined,
    (thrown: unknown) => asTidemarkError(thrown),
  )
  job.signal.throwIfAborted()
  if (problem?.kind !== 'gone') {
    const text = problem?.message ?? 'it is not among the drives of the account, and yet there'
    await job.commit({ effects: (tx) => noteProblem(tx, { account, drive }, text) })
    return
  }
  const index = await kinds.index()
  const revoked = await forgetFeed(kinds, job, { index, drive })
  await job.commit({
    effects: async (tx) => {
      await dropFeed(tx, { account, drive })
      await noteRevoked(
        tx,
        account,
        Array.from({ length: revoked }, () => ({ tookMs: null })),
      )
      // What is shared with the account itself stays to be seen, and is listed with its own.
      await wantListing(tx, account, '')
      await wantListing(tx, account, DOMAIN)
    },
  })
}

/** Feeds that were never listed, those of which somebody knows that changes did not tell all, and those that are due. */
async function beginListings(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<void> {
  const { account } = job.payload
  const { clock, settings, tables } = kinds
  for (const feed of await tables.feeds(account)) {
    const { drive, state } = feed
    if (state === 'listing') {
      // Its job may have failed for good, and starts over; one that is under way is left alone.
      const payload = { account, drive, generation: Number(feed.listing) }
      await job.commit({ jobs: [request(kinds.list, payload)] })
      continue
    }
    const everyMs =
      drive === DOMAIN ? Math.max(settings.folderCheckMs, DOMAIN_LIST_MS_MIN) : settings.relistMs
    const isDue = clock.now() - Number(feed.listed_at ?? 0) >= everyMs
    // Accounts without a domain are refused its listing: that is no reason to ask more often.
    const isKept = state === 'following' ? feed.token !== null : state === 'unreachable' && drive === DOMAIN
    if (isKept && !feed.wanted && !isDue) continue
    await beginOne(kinds, job, feed)
  }
}

async function beginOne(kinds: DriveKinds, job: RunContext<AccountPayload>, feed: FeedRow): Promise<void> {
  const { account, drive } = feed
  const { client } = await kinds.accounts.get(account)
  const token = await (drive === DOMAIN
    ? Promise.resolve(NO_TOKEN)
    : client.startPageToken({ driveId: drive || undefined, signal: job.signal })
  ).catch((thrown: unknown) => {
    const error = asTidemarkError(thrown)
    // One drive's trouble is its own; that of the account, or of the service, is everybody's.
    if (drive === '' || job.signal.aborted || (error.kind !== 'gone' && error.kind !== 'permanent'))
      throw thrown
    return error
  })
  if (typeof token !== 'string') {
    await job.commit({ effects: (tx) => noteProblem(tx, { account, drive }, token.message) })
    return
  }
  const { ledger } = kinds.tables
  const stream = await ledger.stream(job.stream!)
  const generation = Number((await kinds.tables.account(account))?.generation ?? 0) + 1
  const from = Number(stream.tail_at)
  await job.commit({
    segments: [{ streamId: stream.id, from, to: from + 1, label: `listing of ${feed.name}`, ref: 'listing' }],
    jobs: [request(kinds.list, { account, drive, generation }, { segment: 'listing', items: 0 })],
    effects: (tx) => beginListing(tx, feed, { token, generation, nowMs: kinds.clock.now() }),
  })
}
