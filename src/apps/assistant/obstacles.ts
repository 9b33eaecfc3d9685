/**
 * What every job passes. Off is off: jobs of a mailbox that was switched off ask neither Gmail nor models, however long
 * they have waited; the scan that follows when it is on again finds what they were about.
 *
 * Gmail cannot be reached: that is the fault of no conversation. Jobs then wait without costing a try
 * (engine/obstacles.ts). A single hiccup is no outage: before a job gives up, and when it first fails, somebody asks for
 * the profile; where that is not answered either, it is the service.
 */
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { AccountPayload, AssistKinds } from './kinds.ts'

export async function pastObstacles<P extends AccountPayload>(
  kinds: Pick<AssistKinds, 'obstacles' | 'accounts' | 'settings' | 'tables'>,
  job: RunContext<P>,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const { account } = job.payload
  const { obstacles, tables } = kinds
  if ((await tables.account(account))?.active === false) {
    return { skip: 'the assistant is off for this mailbox', code: 'off' }
  }
  const waitMs = obstacles.waitMs(account)
  if (waitMs > 0) return waiting(waitMs, obstacles.of(account)!.error)
  try {
    const outcome = await run()
    obstacles.over(account)
    return outcome
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || error.kind !== 'transient') throw thrown
    const isAsked = job.job.failures === 0 || job.job.failures + 1 >= kinds.settings.attempts
    if (!isAsked || (await answers(kinds, account, job.signal))) throw thrown
    return waiting(obstacles.met(account, 'cloud', error), error)
  }
}

async function answers(
  { accounts }: Pick<AssistKinds, 'accounts'>,
  account: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await (await accounts.client(account)).profile({ signal })
    return true
  } catch (thrown) {
    return asTidemarkError(thrown).kind !== 'transient'
  }
}

function waiting(afterMs: number, error: TidemarkError): Outcome {
  return { again: { afterMs }, note: `waits: ${error.message}`, code: 'waits' }
}
