/**
 * Permissions of folders and membership of drives do not reach the changes of an account. So all folders that it sees are
 * listed on a schedule, with what it can tell of who may see them: where a folder appeared, vanished or is shared
 * otherwise, its feed is listed anew.
 */
import type { RunContext } from '../../engine/index.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { corpusOf } from './pages.ts'
import { listedOf } from './plan.ts'
import { noteTime, wantListing } from './store/feeds.ts'
import type { FeedRow } from './store/tables.ts'

const PAGES_MAX = 2_000

export async function checkFolders(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<void> {
  const { account } = job.payload
  const others: string[] = []
  for (const feed of await kinds.tables.feeds(account)) {
    if (feed.state === 'following' && (await isOther(kinds, job, feed))) others.push(feed.drive)
  }
  await job.commit({
    effects: async (tx) => {
      for (const drive of others) await wantListing(tx, account, drive)
      await noteTime(tx, account, 'folders_at', kinds.clock.now())
    },
  })
}

async function isOther(kinds: DriveKinds, job: RunContext<AccountPayload>, feed: FeedRow): Promise<boolean> {
  const { account, drive } = feed
  const { client } = await kinds.accounts.get(account)
  const known = await kinds.tables.fingerprints(account, drive)
  let seen = 0
  let pageToken: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await client.list({
      ...corpusOf(feed),
      onlyFolders: true,
      pageToken,
      signal: job.signal,
    })
    // What is missing says nothing then; the next look may tell.
    if (page.isIncomplete) return false
    for (const file of page.files) {
      const { id, fingerprint } = listedOf(file, { account, askedAtMs: 0, nowMs: 0, drive: undefined })
      if (known.get(id) !== fingerprint) return true
      seen += 1
    }
    job.progress({ done: seen, unit: 'items', label: `${seen} folders` })
    pageToken = page.nextPageToken
    if (!pageToken) return seen !== known.size
  }
  return false
}
