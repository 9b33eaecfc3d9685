/**
 * The proof: a full dry run as a job, so that neither a hiccup of Gmail nor the end of a process ends it. Its survey is
 * its checkpoint, page by page, and stays with the job when it is done.
 */
import type { Outcome, RunContext } from '../../../engine/index.ts'
import type { CleanUpKinds, ProofPayload } from './kinds.ts'
import { SurveyProgress, surveyFrom } from './survey.ts'

export async function prove(kinds: CleanUpKinds, job: RunContext<ProofPayload>): Promise<Outcome> {
  const { run } = job.payload
  const progress = await surveyFrom({
    run,
    ledger: kinds.ledger,
    clock: kinds.clock,
    depth: 'full',
    signal: job.signal,
    account: await kinds.accounts.get(run.account),
    tables: await kinds.tables(),
    from: SurveyProgress.nullable().parse(job.checkpoint),
    onLook: (done) => job.progress({ done, unit: 'items' }),
    onPage: (page) => job.save(page),
  })
  return { checkpoint: progress, note: `${progress.survey.proven.messages} messages proven` }
}
