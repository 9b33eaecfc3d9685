/**
 * The order in which a transaction of the ledger locks rows, the same for every process, so that of two that meet, one
 * waits: jobs by their ids, those that it settles and those that have a key it enqueues; then the rows that apps name, by
 * their keys; then whatever effects write, those of enqueues in the order of their turns.
 *
 * Without it the order would be that of outcomes that happen to be committed together. What two processes lock the other
 * way round is found by PostgreSQL after a second, costs one of them its transaction, and comes again.
 */
import type { Locks, RowLocks, Tx, Work } from './contract.ts'
import { lockHolders } from './keys.ts'
import type { Enqueue, Part } from './parts.ts'

/**
 * Before anything is settled. Where no effects come, or none that name rows, jobs are locked as they are settled and
 * enqueued: it would be a round trip more.
 */
export async function lockInOrder(tx: Tx, parts: readonly Part[], locks: Locks): Promise<void> {
  if (tx.dialect !== 'postgres' || !parts.some((part) => workOf(part)?.effects)) return
  if (!parts.some((part) => workOf(part)?.locks)) return
  // Apart from what somebody else has locked: those who hold rows for long are not waited for.
  const rows = locks === 'apart' ? [] : rowsOf(parts)
  const keyed = parts.flatMap((part) => workOf(part)?.jobs?.filter(({ key }) => key != null) ?? [])
  const ids = parts.flatMap(({ settlement }) => settlement?.job.id ?? [])
  const locking = rows.map(
    ({ lock, keys }) =>
      () =>
        lock(tx, keys),
  )
  // Jobs alone are locked by what settles them.
  if (keyed.length > 0 || (rows.length > 0 && ids.length > 0))
    locking.unshift(() => lockHolders(tx, { ids, jobs: keyed, isBrief: locks === 'apart' }))
  await Promise.all(locking.map((one) => one()))
}

/** What has no turn comes first. */
export function inTurn(enqueues: readonly Enqueue[]): Enqueue[] {
  const turnOf = ({ work }: Enqueue): string => work.turn ?? ''
  return enqueues.toSorted((a, b) => (turnOf(a) < turnOf(b) ? -1 : turnOf(a) > turnOf(b) ? 1 : 0))
}

const workOf = ({ settlement, work }: Part): Work | undefined => settlement?.work ?? work

/** One part alone locks its rows in an order of its own making. Sorted by code units, whatever a locale says. */
function rowsOf(parts: readonly Part[]): RowLocks[] {
  const all = parts.flatMap((part) => workOf(part)?.locks ?? []).filter(({ keys }) => keys.length > 0)
  if (all.length < 2) return []
  return [...Map.groupBy(all, ({ lock }) => lock)].map(([lock, some]) => ({
    lock,
    keys: [...new Set(some.flatMap(({ keys }) => keys))].sort(),
  }))
}
