/** An account that is connected no more: what was found through it goes, and what only it could see goes with it. */
import type { Outcome, RunContext } from '../../engine/index.ts'
import { accountOf } from './account.ts'
import type { AccountPayload, DriveKinds } from './kinds.ts'
import { PART_FILES_MAX } from './plan.ts'
import { takeAway } from './store/access.ts'
import { accessOfFeed, dropAccount } from './store/feeds.ts'

const PART = PART_FILES_MAX
const PARTS_MAX = 100_000

export async function runForget(kinds: DriveKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account } = job.payload
  await kinds.accounts.reload()
  if (kinds.accounts.names().includes(account)) return { skip: 'it is connected again', code: 'connected' }
  const index = await kinds.index()
  for (const { drive } of await kinds.tables.feeds(account)) {
    await forgetFeed(kinds, job, { index, drive })
  }
  return { effects: (tx) => dropAccount(tx, accountOf(job.stream ?? `drive:${account}`)) }
}

export async function forgetFeed(
  kinds: DriveKinds,
  job: RunContext<AccountPayload>,
  { index, drive }: { index: Awaited<ReturnType<DriveKinds['index']>>; drive: string },
): Promise<number> {
  const { account } = job.payload
  let revoked = 0
  for (let part = 0; part < PARTS_MAX; part++) {
    const of = { account, drive }
    const left = await kinds.tables.ledger.driver.read((tx) => accessOfFeed(tx, of, PART))
    if (left.length === 0) break
    let taken = 0
    await job.commit({
      effects: async (tx) => {
        taken = await takeAway(tx, index, of, left)
      },
    })
    revoked += taken
  }
  return revoked
}
