/** Accounts that are asked to look because somebody else's look has left theirs unconfirmed (sharing.ts). */
import { type JobRequest, request } from '../../engine/index.ts'
import { streamOf } from './account.ts'
import type { DriveKinds } from './kinds.ts'

/** They need not wait until it is their time. Those that cannot look now are left alone. */
export async function looksBy(
  { tables, accounts, sync }: DriveKinds,
  wanted: Iterable<string>,
): Promise<JobRequest[]> {
  const unconfirmed = new Set(wanted)
  if (unconfirmed.size === 0) return []
  const paused = new Set((await tables.ledger.pauses()).map(({ target }) => target))
  return accounts
    .names()
    .filter((account) => unconfirmed.has(account) && !paused.has(streamOf(account)))
    .map((account) => request(sync, { account }, { stream: streamOf(account) }))
}
