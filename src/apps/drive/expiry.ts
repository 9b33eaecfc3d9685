/**
 * Access whose time has passed, or that is unconfirmed (sharing.ts): the index hides it by itself. Whether the account sees
 * the file in another way (a group, a folder) only Google can tell: it is asked. The row goes where the file is gone for the
 * account, and holds again where it is listed. Where it can be read and is not listed, it stays and lets see nothing: the
 * search by name does not know new names at once. Then a complete listing decides.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { DriveFile } from '../../cloud/drive/client.ts'
import type { RunContext } from '../../engine/index.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { DOMAIN_CORPUS, listedByName } from './named.ts'
import { corpusOf } from './pages.ts'
import { listedOf } from './plan.ts'
import { hideUnlisted, takeAway, takeIn } from './store/access.ts'
import { noteRevoked, wantListing } from './store/feeds.ts'
import { DOMAIN } from './store/schema.ts'
import { EXPIRED_MAX, type FeedRow } from './store/tables.ts'

type Asked = { drive: string; file: string }

/** Answers what Google was asked about. Where there may be more, its feeds are listed anew instead. */
export async function checkExpired(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
): Promise<readonly Asked[]> {
  const { account } = job.payload
  const { tables, clock } = kinds
  const expired = await tables.expired(account, clock.now())
  if (expired.length === 0) return []
  const feeds = new Map((await tables.feeds(account)).map((feed) => [feed.drive, feed]))
  for (const { drive, file } of expired) {
    const feed = feeds.get(drive)
    if (feed?.state === 'following') await checkOne(kinds, job, feed, file)
  }
  if (expired.length >= EXPIRED_MAX) {
    // A listing that is not complete decides nothing, and is not made again and again.
    const drives = [...new Set(expired.map(({ drive }) => drive))].filter(
      (drive) => !feeds.get(drive)?.incomplete,
    )
    await job.commit({
      effects: async (tx) => {
        for (const drive of drives) await wantListing(tx, account, drive)
      },
    })
  }
  return expired
}

async function checkOne(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  id: string,
): Promise<void> {
  const { account, drive } = feed
  const { client } = await kinds.accounts.get(account)
  const index = await kinds.index()
  const askedAtMs = kinds.clock.now()
  const file = await client.file(id, { signal: job.signal }).catch((thrown: unknown) => {
    if (asTidemarkError(thrown).kind !== 'gone') throw thrown
    return undefined
  })
  const nowMs = kinds.clock.now()
  const place = file && !file.trashed ? await listedIn(kinds, job, feed, file) : undefined
  await job.commit({
    effects: async (tx) => {
      if (file && place) {
        const { driveId } = corpusOf(place)
        const of = driveId === undefined ? undefined : { id: driveId, name: place.name }
        const listed = listedOf(file, { account, askedAtMs, nowMs, drive: of })
        const generation = Number(place.generation)
        await takeIn(tx, index, { account, drive: place.drive, generation }, [listed])
        if (place.drive === drive) return
      } else if (file && !file.trashed) return hideUnlisted(tx, index, { account, drive }, [id])
      const revoked = await takeAway(tx, index, { account, drive }, [id])
      if (revoked > 0) await noteRevoked(tx, account, [{ tookMs: null }])
    },
  })
}

/**
 * The feed in which the account is shown the file now, if any. Reading it proves nothing: whoever holds its link can do
 * that for ever, and would get back in the index what has ended.
 */
async function listedIn(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  feed: FeedRow,
  { id, name }: DriveFile,
): Promise<FeedRow | undefined> {
  const { client } = await kinds.accounts.get(feed.account)
  if ((await listedByName(client, [name], corpusOf(feed), job.signal)).has(id)) return feed
  const domain = feed.drive === '' ? await kinds.tables.feed(feed.account, DOMAIN) : undefined
  if (domain?.state !== 'following') return undefined
  return (await listedByName(client, [name], DOMAIN_CORPUS, job.signal)).has(id) ? domain : undefined
}
