/**
 * A COMMIT whose answer was lost: the server is asked until it answers. Each writer of a ledger on a server has a row in
 * `commits`, to which its transactions put their number; the question fences that row, so that after `false` the
 * transaction can never commit any more (postgres/commit.ts, libsql/commit.ts).
 */
import { sleep, systemClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'

/** While the database is away nothing else could be done either; asking ends when the ledger is closed. */
const ASK_MS_MAX = 24 * 3_600_000
const ASK_PAUSE_MS = [50, 100, 250, 500, 1_000, 2_000, 5_000]

/** Rows that stay behind are swept by the next engine that starts. */
const FORGET_MS_MAX = 1_000

/** Takes the rows of a ledger that is closed out of `commits`, unless that takes long or the database is away. */
export async function forgetWriters(forget: () => Promise<void>): Promise<void> {
  const patience = new AbortController()
  const givenUp = sleep(systemClock, FORGET_MS_MAX, patience.signal).catch(() => {})
  await Promise.race([forget().catch(() => {}), givenUp])
  patience.abort()
}

/** `n`: the number of the writer's last transaction. */
export type Session = { writer: string; n: number }

/** `ask` fences the writer, and tells the number of its last transaction that was committed. */
export async function hasCommitted(
  { n }: Session,
  { where, ask, signal }: { where: string; ask: () => Promise<number>; signal: AbortSignal },
): Promise<boolean> {
  const sinceMs = systemClock.monotonicMs()
  let lastError: unknown
  for (let tries = 0; systemClock.monotonicMs() - sinceMs < ASK_MS_MAX; tries++) {
    try {
      return (await ask()) >= n
    } catch (thrown) {
      lastError = thrown
    }
    try {
      await sleep(systemClock, ASK_PAUSE_MS[Math.min(tries, ASK_PAUSE_MS.length - 1)]!, signal)
    } catch {
      break // the ledger was closed
    }
  }
  // Not transient: whoever tried again without knowing might do everything twice.
  throw new TidemarkError(
    `The connection to ${where} broke during a commit, and whether it happened is not known.`,
    {
      kind: 'bug',
      code: 'ledger-in-doubt',
      hint: 'Start again when the database is back: the ledger itself is consistent either way.',
      cause: lastError,
    },
  )
}
