/**
 * What keeps all work of an account from going on and is the fault of no file: Google Drive cannot be reached. Jobs then
 * wait without costing a try (engine/obstacles.ts), so that an outage, however long, makes no file bad.
 *
 * A single hiccup is none: the engine tries the job again. Before a job gives up, and when a file first fails, somebody
 * asks whose Drive it is: where that is not answered either, it is the service.
 */
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import type { Obstacles } from '../../engine/obstacles.ts'
import type { DriveAccounts } from './account.ts'

type Place = { obstacles: Obstacles<'cloud'>; accounts: DriveAccounts }

export async function pastObstacles<P>(
  { obstacles, accounts }: Place,
  job: RunContext<P>,
  account: string,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const waitMs = obstacles.waitMs(account)
  if (waitMs > 0) return waiting(waitMs, obstacles.of(account)!.error)
  try {
    const outcome = await run()
    obstacles.over(account)
    return outcome
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || error.kind !== 'transient') throw thrown
    const isAsked = job.job.failures === 0 || isLastTry(job)
    if (!isAsked || (await answers(accounts, account, job.signal))) throw thrown
    return waiting(obstacles.met(account, 'cloud', error), error)
  }
}

export function isLastTry(job: RunContext<unknown>): boolean {
  return job.job.failures + 1 >= ATTEMPTS
}

async function answers(accounts: DriveAccounts, account: string, signal: AbortSignal): Promise<boolean> {
  try {
    await (await accounts.get(account)).client.about({ signal })
    return true
  } catch (thrown) {
    return asTidemarkError(thrown).kind !== 'transient'
  }
}

function waiting(afterMs: number, error: TidemarkError): Outcome {
  return { again: { afterMs }, note: `waits: ${error.message}`, code: 'waits' }
}
