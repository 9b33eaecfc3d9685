/** Records of shards that were replaced: nobody sees them any more, and they leave the index some at a time. */
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { IngestKinds, PipelinePayload } from './kinds.ts'
import { shardRange } from './pipeline.ts'
import { objectLocks } from './store/locks.ts'
import { lockShard, noteRemoved, refuseReplaced } from './store/shards.ts'

const SHARDS_MAX = 100
const PAGE = 200
const PAGES_PER_RUN = 500

export async function runSweep(kinds: IngestKinds, job: RunContext<PipelinePayload>): Promise<Outcome> {
  const { config } = await kinds.pipelines.get(job.payload.pipeline)
  // What was read of a version before another took its place is as good as any other version.
  if (config.overwrites === 'append') return { skip: 'versions stand beside each other', code: 'append' }
  const index = await kinds.index()
  let pages = 0
  let removed = 0
  for (const row of await kinds.tables.replaced(job.payload.pipeline, SHARDS_MAX)) {
    let isLeft = true
    while (isLeft && pages++ < PAGES_PER_RUN) {
      let gone = 0
      await job.commit({
        locks: objectLocks(row.pipeline, [row.uri]),
        effects: async (tx) => {
          // It may have been reopened: what is published then is not for us to remove.
          const now = await lockShard(tx, row)
          gone =
            now?.state === 'skipped' ? await index.removeRange(tx, shardRange(row.pipeline, row.id), PAGE) : 0
          if (now?.state === 'skipped') await noteRemoved(tx, row, gone === 0 ? 'all' : gone)
        },
      })
      removed += gone
      isLeft = gone > 0
      job.progress({ done: removed, unit: 'items' })
    }
  }
  const isMore = (await kinds.tables.replaced(job.payload.pipeline, 1)).length > 0
  if (isMore) return { again: {} }
  const { pipeline } = job.payload
  return { effects: (tx) => refuseReplaced(tx, pipeline), note: `${removed} records removed` }
}
