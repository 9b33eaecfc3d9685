/**
 * What keeps all work of an account from going on and is the fault of no message: Gmail cannot be reached, the disk is
 * full, a file of the archive is missing. Jobs then wait without costing a try, so that an outage, however long, never
 * makes good messages bad; one of them at a time finds out whether it is over.
 *
 *   free ──a job meets it──▶ waiting ──its time has come──▶ trying (one job; the others go on waiting)
 *     ▲                         ▲                               │
 *     └────── it went well ─────┼───────────────────────────────┤
 *                               └──────── it is still there ────┘
 */
import type { Clock } from '../../clock.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { asTidemarkError, type TidemarkError } from '../../errors.ts'
import type { MailAccount } from './account.ts'

export type Obstacle = {
  /** `cloud`: Gmail cannot be reached. `archive`: the archive's files or the disk they are on. */
  where: 'cloud' | 'archive'
  error: TidemarkError
  sinceMs: number
  /** When it is looked at again. */
  nextMs: number
}

const WAIT_MS_MIN = 1_000
const WAIT_MS_MAX = 30_000
/** While one job tries, the others leave it alone for this long. */
const TRYING_MS = 2_000
const ARCHIVE_CODES = /^(?:disk-full|shard-|archive-)/

export class Obstacles {
  readonly #clock: Clock
  readonly #found = new Map<string, Obstacle>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(account: string): Obstacle | undefined {
    return this.#found.get(account)
  }

  /** How long to wait before trying; 0 where nothing is known to be in the way. */
  waitMs(account: string): number {
    const found = this.#found.get(account)
    if (!found) return 0
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < found.nextMs) return found.nextMs - nowMs
    found.nextMs = nowMs + TRYING_MS
    return 0
  }

  /** Somebody met it; returns how long to wait. */
  met(account: string, where: Obstacle['where'], error: TidemarkError): number {
    const nowMs = this.#clock.monotonicMs()
    const sinceMs = this.#found.get(account)?.sinceMs ?? nowMs
    const waitMs = Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, (nowMs - sinceMs) / 2))
    this.#found.set(account, { where, error, sinceMs, nextMs: nowMs + waitMs })
    return waitMs
  }

  over(account: string): void {
    this.#found.delete(account)
  }
}

/** Runs a job of an account, unless something is in the way; then it waits, and costs nothing. */
export async function pastObstacles<P extends { account: string }>(
  { obstacles, accounts }: { obstacles: Obstacles; accounts: { get(name: string): Promise<MailAccount> } },
  job: RunContext<P>,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const { account } = job.payload
  const waitMs = obstacles.waitMs(account)
  if (waitMs > 0) return waiting(waitMs, obstacles.of(account)!.error)
  try {
    const outcome = await run()
    obstacles.over(account)
    return outcome
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted) throw thrown
    const where = ARCHIVE_CODES.test(error.code ?? '')
      ? 'archive'
      : (await isOutage(() => accounts.get(account), error, job.signal))
        ? 'cloud'
        : undefined
    if (!where) throw thrown
    return waiting(obstacles.met(account, where, error), error)
  }
}

function waiting(afterMs: number, error: TidemarkError): Outcome {
  return { again: { afterMs }, note: `waits: ${error.message}` }
}

/** Is it the service, or only what was asked of it? The smallest of all calls tells. */
async function isOutage(
  open: () => Promise<MailAccount>,
  error: TidemarkError,
  signal: AbortSignal,
): Promise<boolean> {
  if (error.kind !== 'transient') return false
  try {
    await (await open()).client.profile({ signal })
    return false
  } catch (thrown) {
    return asTidemarkError(thrown).kind === 'transient'
  }
}
