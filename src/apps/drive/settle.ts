/**
 * The end of a sync: documents are told where they lie by now, and all files of the account are read. Until then it looks
 * again and again, and asks once more for what nobody works on: a file whose job was lost between two accounts.
 */
import type { Outcome, RunContext } from '../../engine/index.ts'
import { request } from '../../engine/index.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { PART_FILES_MAX } from './plan.ts'
import { noteTime } from './store/feeds.ts'
import { describeMoved, spreadMoves, stalePlaces } from './store/places.ts'
import { DOMAIN } from './store/schema.ts'

const PLACES_PART = PART_FILES_MAX
const PLACES_PARTS_MAX = 100_000
const LOOK_MS_MIN = 100
const LOOK_MS_MAX = 5_000
/** A document takes about this long; looking more often finds nothing new. */
const LOOK_MS_PER_FILE = 5

export async function runSettle(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account } = job.payload
  await tellPlaces(kinds, job)
  const waiting = await kinds.tables.waitingCount(account)
  if (waiting > 0) {
    job.progress({ label: `${waiting} documents to read` })
    const some = await kinds.tables.waiting(account)
    return {
      again: { afterMs: Math.min(LOOK_MS_MAX, Math.max(LOOK_MS_MIN, waiting * LOOK_MS_PER_FILE)) },
      jobs: some.map(({ id, version, size_bytes }) =>
        request(kinds.file, { file: id, version }, size_bytes === null ? {} : { size: Number(size_bytes) }),
      ),
    }
  }
  const feeds = await kinds.tables.feeds(account)
  const isListed =
    feeds.length > 0 &&
    feeds.every(({ state, drive }) => state === 'following' || (drive === DOMAIN && state === 'unreachable'))
  if (!isListed) return { note: 'not all is listed yet' }
  return { effects: (tx) => noteTime(tx, account, 'completed_at', kinds.clock.now()) }
}

async function tellPlaces(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<void> {
  const { driver } = kinds.tables.ledger
  await job.commit({ effects: (tx) => spreadMoves(tx, job.payload.account) })
  const index = await kinds.index()
  for (let part = 0; part < PLACES_PARTS_MAX; part++) {
    const stale = await driver.read((tx) => stalePlaces(tx, PLACES_PART))
    if (stale.length === 0) return
    await job.commit({
      effects: async (tx) => {
        await describeMoved(tx, index, await stalePlaces(tx, PLACES_PART))
      },
    })
  }
}
