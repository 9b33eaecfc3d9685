/** What handlers of the workload share: a little time that passes, and a failure that passes too. */
import { sleep } from '../../src/base/clock.ts'
import { TidemarkError } from '../../src/base/errors.ts'
import type { RunContext } from '../../src/engine/job-kind.ts'
import { hash, type SourceSize } from './source.ts'

/** A pause of 0 to twice the pace, the same for the same name; ends at once when the job must stop. */
export async function pause(
  job: RunContext<unknown>,
  { paceMs, deaf }: SourceSize,
  name: string,
  longer = 1,
): Promise<void> {
  await sleep(job.clock, ((hash(name) % 100) / 50) * paceMs * longer, deaf ? undefined : job.signal)
}

export function transient(message: string): TidemarkError {
  return new TidemarkError(message, { kind: 'transient' })
}
