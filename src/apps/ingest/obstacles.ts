/**
 * What keeps all objects of a pipeline from being read and is the fault of none of them: their store cannot be reached.
 * Jobs then wait without costing a try (engine/obstacles.ts), so that an outage, however long, makes no object bad.
 */
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { IngestKinds } from './kinds.ts'

export async function pastObstacles<P>(
  kinds: IngestKinds,
  job: RunContext<P>,
  { pipeline, uri }: { pipeline: string; uri: string },
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const { obstacles } = kinds
  const waitMs = obstacles.waitMs(pipeline)
  if (waitMs > 0) return waiting(waitMs, obstacles.of(pipeline)!.error)
  try {
    const outcome = await run()
    obstacles.over(pipeline)
    return outcome
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || error.kind !== 'transient') throw thrown
    const isLastTry = job.job.failures + 1 >= kinds.object.attempts
    const isAsked = job.job.failures === 0 || isLastTry
    if (!isAsked || (await answers(kinds, pipeline, uri, job.signal))) throw thrown
    return waiting(obstacles.met(pipeline, 'cloud', error), error)
  }
}

/** Whatever it says, somebody is there. */
async function answers(
  { pipelines }: IngestKinds,
  pipeline: string,
  uri: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const store = await pipelines.store(pipeline, uri)
    await store.head(uri, signal)
    return true
  } catch (thrown) {
    return asTidemarkError(thrown).kind !== 'transient'
  }
}

function waiting(afterMs: number, error: TidemarkError): Outcome {
  return { again: { afterMs }, note: `waits: ${error.message}`, code: 'waits' }
}
