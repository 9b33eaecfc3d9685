/**
 * What keeps all work of an account from going on and is the fault of no message: Gmail cannot be reached, the disk is
 * full, a file of the archive is missing. Jobs then wait without costing a try (see engine/obstacles.ts), so that an
 * outage, however long, never makes good messages bad.
 *
 * A single hiccup is none: the engine tries the job again. A job about no message in particular never gives up: where
 * its tries are used up, it waits. One that is about messages may have met a bad one: so others are asked for when it
 * first fails and before it gives up, and only where none of them comes either, it is the service.
 */

import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import type * as engine from '../../engine/obstacles.ts'
import type { MailAccount } from './account.ts'

/** `cloud`: Gmail cannot be reached. `archive`: the archive's files or the disk they are on. */
type Where = 'cloud' | 'archive'
export type Obstacle = engine.Obstacle<Where>
export type Obstacles = engine.Obstacles<Where>

/** Other messages that are asked for; where the mailbox has fewer than half of that, they say too little. */
const SAMPLE = 8
const SAMPLE_MIN = 4
const ARCHIVE_CODES = /^(?:disk-full|shard-|archive-)/

type Opening = { get(name: string): Promise<MailAccount> }

/** Runs a job of an account, unless something is in the way; then it waits, and costs nothing. */
export async function pastObstacles<P>(
  { obstacles, accounts }: { obstacles: Obstacles; accounts: Opening },
  job: RunContext<P>,
  account: string,
  run: () => Promise<Outcome>,
  /** Asked where nothing is in the way and the job failed all the same: what becomes of it, or nothing. */
  onFailure: () => Promise<Outcome | undefined> = async () => undefined,
): Promise<Outcome> {
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
      : error.kind === 'transient' && (await isOutage(() => accounts.get(account), job))
        ? 'cloud'
        : undefined
    if (!where) {
      const outcome = await onFailure()
      if (outcome) return outcome
      throw thrown
    }
    return waiting(obstacles.met(account, where, error), error)
  }
}

function waiting(afterMs: number, error: TidemarkError): Outcome {
  return { again: { afterMs }, note: `waits: ${error.message}` }
}

/** Is it the service, or only what was asked of it? */
async function isOutage(open: () => Promise<MailAccount>, job: RunContext<unknown>): Promise<boolean> {
  const { ids } = job.payload as { ids?: readonly string[] }
  const { signal } = job
  const isLastTry = job.job.failures + 1 >= ATTEMPTS
  if (!ids && isLastTry) return true
  if (ids && job.job.failures > 0 && !isLastTry) return false
  try {
    const { client } = await open()
    if (!ids) {
      await client.profile({ signal })
      return false
    }
    const page = await client.listIds({ includeSpamTrash: true, signal })
    const asked = new Set(ids)
    const others = page.ids.map(({ id }) => id).filter((id) => !asked.has(id))
    const sample = sampleOf(others, job.random)
    if (sample.length < SAMPLE_MIN) return false
    for (const id of sample) if (await comes(client, id, signal)) return false
    return true
  } catch (thrown) {
    return asTidemarkError(thrown).kind === 'transient'
  }
}

/** Each in a call of its own: a bad one among them must not spoil it for the others. */
async function comes(client: MailAccount['client'], id: string, signal: AbortSignal): Promise<boolean> {
  try {
    const [answer] = await client.getLabels([id], { signal })
    return answer !== undefined && (answer.ok || answer.error.kind !== 'transient')
  } catch (thrown) {
    if (asTidemarkError(thrown).kind !== 'transient') throw thrown
    return false
  }
}

/** Any of them: the newest could be the very ones that are bad. */
function sampleOf(ids: string[], random: () => number): string[] {
  const sample: string[] = []
  while (sample.length < SAMPLE && ids.length > 0) {
    sample.push(...ids.splice(Math.floor(random() * ids.length), 1))
  }
  return sample
}
