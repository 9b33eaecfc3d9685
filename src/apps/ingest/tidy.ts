/**
 * What is done on a schedule, by one process: shards that nobody needs any more go, and those of which nothing was heard
 * for long get their job again, should it have been lost (a job that is there is left alone by its key).
 */
import type { Outcome, RunContext } from '../../engine/index.ts'
import { request } from '../../engine/index.ts'
import type { IngestKinds, PipelinePayload } from './kinds.ts'
import { objectJob } from './placing.ts'
import { pruneShards } from './store/shards.ts'

const PRUNED_PER_COMMIT = 500
const COMMITS_MAX = 1_000
const STALE_MAX = 1_000

export async function runTidy(kinds: IngestKinds, job: RunContext<PipelinePayload>): Promise<Outcome> {
  const { pipeline } = job.payload
  const { tables, clock, settings } = kinds
  const { overwrites } = (await kinds.pipelines.get(pipeline)).config
  const beforeMs = clock.now() - settings.windowMs
  let pruned = 0
  for (let n = 0; n < COMMITS_MAX; n++) {
    let gone = 0
    await job.commit({
      effects: async (tx) => {
        gone = await pruneShards(tx, { pipeline, overwrites, beforeMs, limit: PRUNED_PER_COMMIT })
      },
    })
    pruned += gone
    if (gone < PRUNED_PER_COMMIT) break
  }
  const stale = await tables.stale(pipeline, clock.now() - 2 * settings.commitMs, STALE_MAX)
  const jobs = stale.map((row) => objectJob(kinds, pipeline, { ...row, sizeBytes: row.size }))
  if (overwrites === 'replace' && (await tables.replaced(pipeline, 1)).length > 0)
    jobs.push(request(kinds.sweep, { pipeline }))
  return { jobs, note: `${pruned} shards pruned, ${stale.length} looked after` }
}
