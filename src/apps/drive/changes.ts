/**
 * Follows the changes of one feed. What a page of changes tells, and the token behind it, are one transaction.
 *
 * Entries tell the present: a file with its present state, or that it is gone for this account. A folder that is gone,
 * moved or shared otherwise changes what is below it without a word: then the feed is listed anew. A folder that is new is
 * looked into.
 */
import type { Change, DriveFile } from '../../cloud/drive/client.ts'
import { FOLDER } from '../../cloud/drive/client.ts'
import { type RunContext, TidemarkError } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { IndexWriter } from '../../search/contract.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { DOMAIN_CORPUS, listedByName } from './named.ts'
import { corpusOf, type FoundPage, readPage } from './pages.ts'
import { type Listed, listedOf, partsOf } from './plan.ts'
import { type AccessOf, hideUnlisted, takeAway, takeFromAll, takeIn } from './store/access.ts'
import { moveToken, noteRevoked, wantBelow, wantListing } from './store/feeds.ts'
import { DOMAIN } from './store/schema.ts'
import type { FeedRow } from './store/tables.ts'

/** Pages of one run; a longer history goes on with the next. */
const PAGES_MAX = 1_000

/** `unconfirmed`: accounts that are to look because of what the changes told. */
export type Followed = { changes: number; isAboutDrives: boolean; unconfirmed: Set<string> }

export async function followChanges(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
): Promise<Followed> {
  const { client } = await kinds.accounts.get(feed.account)
  const followed: Followed = { changes: 0, isAboutDrives: false, unconfirmed: new Set() }
  let token = feed.token!
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const askedAtMs = kinds.clock.now()
    const page = await client
      .changes({ driveId: feed.drive || undefined, token, signal: job.signal })
      .catch((error: unknown) => {
        if (!(error instanceof TidemarkError)) throw error
        const isForgotten = error.code === 'page-token-invalid'
        const isGone = feed.drive !== '' && (error.kind === 'gone' || error.kind === 'permanent')
        if (!isForgotten && !isGone) throw error
        return { isForgotten, isGone }
      })
    if ('isForgotten' in page) {
      // Whether the drive is left is found by asking for the drives; a token that is not known begins anew.
      if (page.isForgotten) await job.commit({ effects: (tx) => wantListing(tx, feed.account, feed.drive) })
      followed.isAboutDrives ||= page.isGone
      return followed
    }
    const { changes, nextToken, isLast } = page
    const times = { askedAtMs, nowMs: kinds.clock.now() }
    if (changes.length > 0 || nextToken !== token) {
      const told = await takeInChanges(kinds, job, feed, { changes, nextToken, times })
      for (const account of await kinds.tables.unconfirmed(told)) followed.unconfirmed.add(account)
    }
    followed.changes += changes.length
    followed.isAboutDrives ||= changes.some(({ changeType }) => changeType === 'drive')
    job.progress({ done: followed.changes, unit: 'items', label: `${followed.changes} changes` })
    token = nextToken
    if (isLast) return followed
  }
  return followed
}

type Times = { askedAtMs: number; nowMs: number }

/** Answers of which files it told. */
async function takeInChanges(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  { changes, nextToken, times }: { changes: readonly Change[]; nextToken: string; times: Times },
): Promise<string[]> {
  const { account, drive } = feed
  const { gone, files, inDomain, unlisted } = await sorted(kinds, job, feed, changes)
  const all = [...gone.keys(), ...[...files, ...inDomain].map(({ id }) => id)]
  const known = await kinds.tables.access(account, drive, all)
  const knownInDomain =
    drive === '' ? await kinds.tables.access(account, DOMAIN, all) : new Map<string, Known>()
  const news = await childrenOf(
    kinds,
    job,
    feed,
    files.filter((file) => !known.has(file.id)),
  )
  const others = [
    ...[...gone.keys()].filter((id) => known.get(id)?.isFolder || knownInDomain.get(id)?.isFolder),
    ...files.filter((file) => isFolderOther(feed, file, known.get(file.id))).map(({ id }) => id),
  ]
  const isBelowOther =
    news.isTooDeep || others.length > 0 || inDomain.some(({ mimeType }) => mimeType === FOLDER)
  const found = await readAll(kinds, feed, { files, below: news.files, times })
  const domainFeed = { account, drive: DOMAIN, name: '' }
  const foundInDomain = await readPage(kinds, domainFeed, inDomain, { segment: 'news', ...times })
  const domain = drive === '' ? await kinds.tables.feed(account, DOMAIN) : undefined
  const stream = await kinds.tables.ledger.stream(job.stream!)
  const from = Number(stream.tail_at)
  const nowMs = kinds.clock.now()
  const index = await kinds.index()
  const count = found.count + foundInDomain.count
  const owners = new Set(
    news.files.flatMap((file) => file.owners.map((one) => one.emailAddress.toLowerCase())),
  )
  owners.delete(account)
  const trashed = changes.flatMap(({ file }) => (file?.trashed ? [file.id] : []))
  const jobs = [...found.jobs, ...foundInDomain.jobs]
  const lookedAt = { known, knownInDomain }
  const { left, ...rest } = await takeInDocuments(kinds, job, feed, {
    domain,
    listed: found.listed,
    inDomain: foundInDomain.listed,
    gone,
    trashed,
    lookedAt,
  })
  await job.commit({
    ...(count > 0
      ? {
          segments: [
            { streamId: stream.id, from, to: from + 1, label: `changes of ${feed.name}`, ref: 'news' },
          ],
          counts: [{ segment: 'news', listed: count, stored: count - jobs.length, seal: true }],
        }
      : {}),
    jobs,
    ...(drive === '' ? { cursor: nextToken } : {}),
    effects: async (tx) => {
      await wantBelow(tx, feed, others)
      await takeInFound(tx, index, feed, { ...rest, domain, lookedAt })
      if (domain) await takeAway(tx, index, { account, drive: DOMAIN }, [...left.keys()])
      await hideUnlisted(tx, index, { account, drive }, unlisted)
      if (domain) await hideUnlisted(tx, index, { account, drive: DOMAIN }, unlisted)
      const taken = await takeAwayTimed(tx, index, { account, drive }, { gone: left, nowMs })
      await takeFromAll(
        tx,
        index,
        trashed.filter((id) => left.has(id)),
      )
      await noteRevoked(tx, account, taken)
      if (isBelowOther) {
        await wantListing(tx, account, drive)
        if (drive === '') await wantListing(tx, account, DOMAIN)
      }
      // What lies in a folder may be somebody's who does not see the folder, and is told nothing of it.
      for (const owner of owners) await wantListing(tx, owner, '')
      await moveToken(tx, { account, drive }, nextToken)
    },
  })
  return [...found.listed, ...foundInDomain.listed].map(({ id }) => id)
}

/** What changes told, and what was found below new folders: Google was asked for that later. */
async function readAll(
  kinds: DriveKinds,
  feed: FeedRow,
  { files, below, times }: { files: readonly DriveFile[]; below: readonly DriveFile[]; times: Times },
): Promise<FoundPage> {
  const later = new Set(below.map(({ id }) => id))
  const told = files.filter(({ id }) => !later.has(id))
  const nowMs = kinds.clock.now()
  const pages = [
    await readPage(kinds, feed, told, { segment: 'news', ...times }),
    await readPage(kinds, feed, below, { segment: 'news', askedAtMs: times.askedAtMs, nowMs }),
  ]
  return {
    listed: pages.flatMap(({ listed }) => listed),
    count: pages.reduce((sum, { count }) => sum + count, 0),
    jobs: pages.flatMap(({ jobs }) => jobs),
  }
}

type Found = {
  listed: Listed[]
  /** What is found only because everybody of the domain may find it. */
  inDomain: Listed[]
}

/** What is in one of the two is not in the other any more. */
async function takeInFound(
  tx: Tx,
  index: IndexWriter,
  { account, drive, generation }: FeedRow,
  { listed, inDomain, domain, lookedAt }: Found & { domain: FeedRow | undefined; lookedAt: LookedAt },
): Promise<void> {
  await takeIn(tx, index, { account, drive, generation: Number(generation) }, listed)
  if (!domain) return
  const { known, knownInDomain } = lookedAt
  const knownOf = (some: Listed[], before: ReadonlyMap<string, Known>): string[] =>
    some.filter(({ id }) => before.has(id)).map(({ id }) => id)
  const into = { account, drive: DOMAIN, generation: Number(domain.generation) }
  await takeIn(tx, index, into, inDomain)
  await takeAway(tx, index, { account, drive: DOMAIN }, knownOf(listed, knownInDomain))
  await takeAway(tx, index, { account, drive }, knownOf(inDomain, known))
}

type LookedAt = { known: ReadonlyMap<string, Known>; knownInDomain: ReadonlyMap<string, Known> }

/**
 * Of a long page, most of what concerns documents is written before, in parts, so that no transaction is long; answers
 * what is left for the one that moves the token. What is repeated after a crash changes nothing. Folders are left: by
 * what is known of them it is seen what has to be looked into, until the token has moved.
 */
async function takeInDocuments(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  page: Found & {
    domain: FeedRow | undefined
    gone: Sorted['gone']
    trashed: readonly string[]
    lookedAt: LookedAt
  },
): Promise<Found & { left: Sorted['gone'] }> {
  const { account, drive } = feed
  const { listed, inDomain, gone, trashed, domain, lookedAt } = page
  const { known, knownInDomain } = lookedAt
  const index = await kinds.index()
  const documents = partsOf(listed.filter(({ isFolder }) => !isFolder))
  const inDomainParts = partsOf(inDomain.filter(({ isFolder }) => !isFolder))
  const isDocument = (id: string): boolean =>
    known.get(id)?.isFolder !== true && knownInDomain.get(id)?.isFolder !== true
  const lost = partsOf([...gone].filter(([id]) => isDocument(id)).map((one) => ({ one, sizeBytes: null })))
  if (Math.max(documents.length, inDomainParts.length, lost.length) <= 1)
    return { listed, inDomain, left: gone }
  for (const part of lost) {
    const some = new Map(part.map(({ one }) => one))
    await job.commit({
      effects: async (tx) => {
        if (drive === '') await takeAway(tx, index, { account, drive: DOMAIN }, [...some.keys()])
        const nowMs = kinds.clock.now()
        await noteRevoked(
          tx,
          account,
          await takeAwayTimed(tx, index, { account, drive }, { gone: some, nowMs }),
        )
        await takeFromAll(
          tx,
          index,
          trashed.filter((id) => some.has(id)),
        )
      },
    })
  }
  const parts: Found[] = [
    ...documents.map((part) => ({ listed: part, inDomain: [] })),
    ...inDomainParts.map((part) => ({ listed: [], inDomain: part })),
  ]
  for (const part of parts) {
    await job.commit({ effects: (tx) => takeInFound(tx, index, feed, { ...part, domain, lookedAt }) })
  }
  return {
    listed: listed.filter(({ isFolder }) => isFolder),
    inDomain: inDomain.filter(({ isFolder }) => isFolder),
    left: new Map([...gone].filter(([id]) => !isDocument(id))),
  }
}

/** One by one: each with how long it took. */
async function takeAwayTimed(
  tx: Tx,
  index: IndexWriter,
  of: AccessOf,
  { gone, nowMs }: { gone: Sorted['gone']; nowMs: number },
): Promise<{ tookMs: number | null }[]> {
  const taken: { tookMs: number | null }[] = []
  for (const [id, atMs] of gone) {
    const revoked = await takeAway(tx, index, of, [id])
    if (revoked > 0) taken.push({ tookMs: atMs === undefined ? null : nowMs - atMs })
  }
  return taken
}

type Sorted = {
  /** With when that was, where Google says so. */
  gone: Map<string, number | undefined>
  files: DriveFile[]
  /** Found only because everybody of the domain may find them. */
  inDomain: DriveFile[]
  /** Ids of documents that can be read and are not listed: known by their links only, or by names that are too new. */
  unlisted: string[]
}

/** Of each file the last entry. */
async function sorted(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  changes: readonly Change[],
): Promise<Sorted> {
  const last = new Map(
    changes.flatMap((one) => (one.fileId === undefined ? [] : [[one.fileId, one] as const])),
  )
  const sure: Sorted = { gone: new Map(), files: [], inDomain: [], unlisted: [] }
  const unsure: Change[] = []
  for (const [id, change] of last) {
    const { removed, file, time } = change
    if (removed || !file || file.trashed) sure.gone.set(id, time)
    else if (file.ownedByMe) sure.files.push(file)
    else unsure.push(change)
  }
  await ask(kinds, job, feed, unsure, sure)
  return sure
}

/** Names in one query. */
const NAMES_MAX = 20

/**
 * What others own may be known by its link only (named.ts), and is not found then. But the search does not know a new name
 * at once, and no other change tells of it: what is known of a document is hidden until it is asked about again (expiry.ts).
 */
async function ask(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  unsure: readonly Change[],
  sure: Sorted,
): Promise<void> {
  const { client } = await kinds.accounts.get(feed.account)
  const domain = feed.drive === '' ? await kinds.tables.feed(feed.account, DOMAIN) : undefined
  const own = corpusOf(feed)
  for (let from = 0; from < unsure.length; from += NAMES_MAX) {
    const some = unsure.slice(from, from + NAMES_MAX)
    const names = [...new Set(some.map(({ file }) => file!.name))]
    const there = await listedByName(client, names, own, job.signal)
    const isMore = domain?.state === 'following' && some.some(({ file }) => !there.has(file!.id))
    const domainOnly = isMore
      ? await listedByName(client, names, DOMAIN_CORPUS, job.signal)
      : new Set<string>()
    for (const { file, time } of some) {
      if (there.has(file!.id)) sure.files.push(file!)
      else if (domainOnly.has(file!.id)) sure.inDomain.push(file!)
      else if (file!.mimeType === FOLDER) sure.gone.set(file!.id, time)
      else sure.unlisted.push(file!.id)
    }
  }
}

type Known = { isFolder: boolean; parent: string | null; fingerprint: string | null }

function isFolderOther(feed: FeedRow, file: DriveFile, known: Known | undefined): boolean {
  if (file.mimeType !== FOLDER || !known) return false
  const { parent, fingerprint } = listedOf(file, {
    account: feed.account,
    askedAtMs: 0,
    nowMs: 0,
    drive: undefined,
  })
  return known.parent !== parent || known.fingerprint !== fingerprint
}

/** Folders that are looked into for what came with them; beyond that a listing is cheaper. */
const FOLDERS_MAX = 50
const PAGES_OF_FOLDER_MAX = 20

/** What lies in folders that were not there before: it came with them, and changes do not tell of it. */
async function childrenOf(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  { account, drive }: FeedRow,
  files: readonly DriveFile[],
): Promise<{ files: DriveFile[]; isTooDeep: boolean }> {
  const { client } = await kinds.accounts.get(account)
  const folders = files.filter(({ mimeType }) => mimeType === FOLDER).map(({ id }) => id)
  const seen = new Set(folders)
  const found: DriveFile[] = []
  for (const folder of folders) {
    if (seen.size > FOLDERS_MAX) return { files: found, isTooDeep: true }
    let pageToken: string | undefined
    for (let pages = 0; pages < PAGES_OF_FOLDER_MAX; pages++) {
      const page = await client.list({
        ...corpusOf({ drive }),
        within: folder,
        pageToken,
        signal: job.signal,
      })
      found.push(...page.files)
      for (const { id, mimeType } of page.files) {
        if (mimeType !== FOLDER || seen.has(id)) continue
        seen.add(id)
        folders.push(id)
      }
      pageToken = page.nextPageToken
      if (!pageToken) break
    }
    if (pageToken) return { files: found, isTooDeep: true }
  }
  return { files: found, isTooDeep: false }
}
