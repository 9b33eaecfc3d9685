/**
 * A pipeline that is there no more: its records leave the index, and then all that is known of its objects.
 *
 * Each transaction looks whether the pipeline is there again, and then removes nothing. Its row goes with the last of its
 * records, and a name that still has a row is not given to another pipeline: the records of one user would be another's.
 */
import { UsageError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { type Accounts, hasAccount } from '../../ledger/accounts.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { IngestKinds, PipelinePayload } from './kinds.ts'
import { SERVICE } from './pipeline.ts'
import { dropPipeline } from './store/pipelines.ts'
import type { IngestTables } from './store/tables.ts'

const PAGE = 200
const PAGES_PER_RUN = 500

export async function runForget(kinds: IngestKinds, job: RunContext<PipelinePayload>): Promise<Outcome> {
  const { pipeline } = job.payload
  const index = await kinds.index()
  for (let page = 0; page < PAGES_PER_RUN; page++) {
    let gone = 0
    let isThere = false
    await job.commit({
      effects: async (tx) => {
        isThere = await isConfigured(tx, pipeline)
        gone = isThere ? 0 : await index.removeRange(tx, { source: SERVICE, prefix: `${pipeline}/` }, PAGE)
      },
    })
    if (isThere) return { skip: 'it is there again', code: 'there' }
    job.progress({})
    if (gone === 0) return { effects: (tx) => dropUnlessConfigured(tx, pipeline) }
  }
  return { again: {} }
}

/** A name whose last records are still on their way out is nobody's. */
export async function checkForgotten(
  { accounts, tables }: { accounts: Accounts; tables: IngestTables },
  name: string,
): Promise<void> {
  const isLeft = (await tables.pipeline(name)) !== undefined && !(await accounts.find(SERVICE, name))
  if (!isLeft) return
  throw new UsageError(`What an earlier pipeline ${name} has left is not removed yet.`, {
    code: 'pipeline-leaving',
    hint: 'It is removed while Tidemark runs (tidemark serve). Wait for that, or take another name.',
  })
}

function isConfigured(tx: Tx, pipeline: string): Promise<boolean> {
  return hasAccount(tx, { service: SERVICE, name: pipeline })
}

async function dropUnlessConfigured(tx: Tx, pipeline: string): Promise<void> {
  if (!(await isConfigured(tx, pipeline))) await dropPipeline(tx, pipeline)
}
