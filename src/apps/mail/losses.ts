/**
 * Notices that the archive is older than what the ledger has counted into it: a shard, or all of it, was put back from
 * an older backup, or a file was set aside. What is missing is taken down in the ledger, so that status does not claim
 * it, and fetched again; labels and marks of that time are compared with the mailbox.
 *
 * A shard tells by its generation, and names the ids that it lost (store/catalogue.ts); they stay named until they are
 * in the ledger. A whole archive that is older does not have the tip that the ledger noted: then all that was ever listed is
 * looked for. All of it can be repeated.
 */
import { badItemsOf } from '../../app/sources.ts'
import type { Clock } from '../../base/clock.ts'
import { type JobRequest, type RunContext, request } from '../../engine/index.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { MailAccount } from './account.ts'
import type { MailKinds } from './kinds.ts'
import { chunksOf } from './plan.ts'
import type { DroppedId } from './store/contract.ts'
import {
  isInPast,
  listedIds,
  type MissingMessage,
  missingIds,
  noteAsked,
  noteFetched,
  noteMark,
  noteMissing,
  noteOlderArchive,
} from './store/missing-messages.ts'
import type { MailTables } from './store/tables.ts'

export type LossesDeps = { ledger: Ledger; tables: MailTables; clock: Clock }

const PAGE = 5_000
/** Pages of one look: more than any archive has. */
const PAGES_MAX = 100_000

/**
 * How often a file was found to be older than what was stored in it: by now, and when the mailbox was last compared.
 * Where they differ, the labels in the archive may be of any time.
 */
export type Noticed = { older: number; compared: number }

export async function noticeLosses(deps: LossesDeps, account: MailAccount): Promise<Noticed> {
  const { ledger, tables } = deps
  const { name, archive } = account
  // Before the archive is asked: what is stored meanwhile makes it newer, never older.
  const mailbox = await tables.findMailbox(name)
  const before = { stores: mailbox?.stores ?? 0, tip: mailbox?.tip ?? '' }
  let check = await archive.check()
  for (let page = 0; check.dropped.length > 0 && page < PAGES_MAX; page++) {
    await takeDown(deps, account, check.dropped)
    check = await archive.check()
  }
  const { mark, older } = check
  const isOlder = !isInPast(before, mark)
  if (isOlder) {
    await compareAll(deps, account)
    await ledger.transaction((tx) => noteOlderArchive(tx, name, { mark, before }))
  } else if (mark.tips[0] !== before.tip) await ledger.transaction((tx) => noteMark(tx, name, mark))
  await forgetFound(deps, account)
  return { older, compared: Number((await tables.findMailbox(name))?.older ?? 0) }
}

/** Notices what is missing, and has it fetched again; asked for until a comparison has ended (reconcile.ts). */
export async function mendLosses(
  kinds: MailKinds,
  job: RunContext<{ account: string }>,
  account: MailAccount,
): Promise<void> {
  const { older, compared } = await noticeLosses(kinds, account)
  const { name } = account
  const compare = older === compared ? [] : [request(kinds.reconcile, { account: name })]
  for (let page = 0; page < PAGES_MAX; page++) {
    const ids = await missingIds(kinds.ledger, name, { states: ['noted'], limit: PAGE })
    if (ids.length === 0 && (page > 0 || compare.length === 0)) return
    const jobs: JobRequest[] = chunksOf(ids, kinds.batchSize(name).size).map((batch) =>
      request(kinds.fetch, { account: name, ids: batch }),
    )
    await job.commit({
      jobs: page === 0 ? [...jobs, ...compare] : jobs,
      effects: (tx) => noteAsked(tx, name, ids),
    })
  }
}

async function takeDown(
  { ledger, tables, clock }: LossesDeps,
  { name, archive }: MailAccount,
  dropped: readonly DroppedId[],
): Promise<void> {
  const ids = dropped.map(({ id }) => id)
  // It may be in another shard, or have come back since.
  const stored = await archive.stored(ids)
  const listed = await tables.listed(name, ids)
  const gone = await tables.gone(name, ids)
  const missing = dropped
    .filter(({ id }) => !stored.has(id))
    .map(({ id, shard, fromMs }): MissingMessage => {
      const state = !listed.has(id) ? 'import' : gone.has(id) ? 'lost' : 'noted'
      return { id, shard, fromMs, wasStored: true, state }
    })
  await ledger.transaction((tx) => noteMissing(tx, name, missing, clock.now()))
  await archive.takenDown(ids)
}

/** All that was listed and is neither bad nor gone: what is on its way is asked for twice, and stored once. */
async function compareAll(
  { ledger, clock }: LossesDeps,
  { name, stream, archive }: MailAccount,
): Promise<void> {
  const bad = new Set((await badItemsOf(ledger, stream)).map(({ item }) => item))
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const ids = await listedIds(ledger, name, { after, limit: PAGE })
    const last = ids.at(-1)
    if (last === undefined) return
    const stored = await archive.stored(ids)
    const missing = ids
      .filter((id) => !stored.has(id) && !bad.has(id))
      .map((id): MissingMessage => ({ id, shard: '', fromMs: 0, wasStored: false, state: 'noted' }))
    if (missing.length > 0) await ledger.transaction((tx) => noteMissing(tx, name, missing, clock.now()))
    after = last
  }
}

/** What came back, by whatever way. */
async function forgetFound({ ledger }: LossesDeps, { name, archive }: MailAccount): Promise<void> {
  const states = ['noted', 'asked', 'lost', 'import'] as const
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const ids = await missingIds(ledger, name, { states, after, limit: PAGE })
    const last = ids.at(-1)
    if (last === undefined) return
    const stored = [...(await archive.stored(ids))]
    if (stored.length > 0) {
      await ledger.transaction((tx) => noteFetched(tx, name, { stored, gone: [], skipped: [] }))
    }
    after = last
  }
}
