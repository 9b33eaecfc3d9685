/**
 * The clean-up, as jobs of their own beside the sync. It takes out of Gmail only what is proven to be stored, and
 * writes down what it is about to do before it does it.
 *
 *   mail.archive-plan   pages through the archive: what the query finds, older than the limit, below the watermark,
 *                       neither bad nor imported nor marked as deleted
 *                       → commit per page: candidates into the journal, and where to go on
 *                       → at the end: the run is planned; if it needs no further word, its batches become jobs
 *   mail.archive-batch  a batch of the run, in this order:
 *     1. what an earlier attempt intended is looked up in Gmail: what happened is finished, the rest starts over
 *     2. the watermark and the registry of bad messages are read again
 *     3. the bytes of each message are read back from the committed file and compared with their hash
 *     4. Gmail is asked what happened since the archive's cursor (followed-state.ts), and before a deletion for good
 *        for the state of each: no longer there, or changed in a way that matters, is refused
 *     5. → commit: refusals with their class, and intents with the labels of before
 *     6. one call: labels off (unlabel), TRASH on (trash), or deletion; halved where Gmail refuses it; after TRASH the
 *        history tells what others deleted before it came there
 *     7. the archive is told (labels, deletion marks; repeatable)
 *     8. → commit: done; with the last batch, the run is done
 *   mail.archive-proof  what a run would do, with the proof of 3 and 4 for every message; changes nothing
 *                       → commit per page: what was found so far, and where to go on
 *   The same job undoes a batch, under the same key: a batch is never acted on and undone at the same time.
 *
 * A crash before 5 leaves nothing behind. Between 5 and 8 it leaves intents, which step 1 resolves by what Gmail
 * shows: labels tell whether the call happened, and after a deletion, 404. An undo covers intents for the same reason.
 */
import type { Outcome, RunContext } from '../../../engine/index.ts'
import type { AnyJobKind } from '../../../engine/job-kind.ts'
import { defineJob } from '../../../engine/kinds.ts'
import { accountOf } from '../account.ts'
import { pastObstacles } from '../obstacles.ts'
import { ArchiveJournal } from '../store/journal.ts'
import { MailTables } from '../store/tables.ts'
import { actOnBatch } from './act.ts'
import { Batch, type CleanUpDeps, type CleanUpKinds, Plan, ProofPayload } from './kinds.ts'
import { planRun } from './planning.ts'
import { prove } from './proof.ts'
import { undoBatch } from './undo.ts'

const BATCHES_AT_ONCE = 4
/** Takes turns with the fetches of a sync, which goes on for hours, instead of waiting for the last of them. */
const BATCH_PRIORITY = 1
export const PLAN_KIND = 'mail.archive-plan'
export const BATCH_KIND = 'mail.archive-batch'
export const PROOF_KIND = 'mail.archive-proof'

export function cleanUpKinds({ accounts, ledger, clock, obstacles, point }: CleanUpDeps): CleanUpKinds {
  const budget = (stream: string | null): string => accounts.budget(accountOf(stream ?? ''))
  const batch = defineJob({
    kind: BATCH_KIND,
    payload: Batch,
    key: ({ run, batch: number }) => `${run}.${number}`,
    lane: 'bulk',
    priority: BATCH_PRIORITY,
    concurrency: BATCHES_AT_ONCE,
    budget,
    describe: { verb: 'archiving', noun: 'batch' },
    run: (job) =>
      past(job, () => (job.payload.do === 'act' ? actOnBatch(kinds, job) : undoBatch(kinds, job))),
  })
  const past = <P>(job: RunContext<P>, run: () => Promise<Outcome>): Promise<Outcome> => {
    if (!obstacles || job.stream === null) return run()
    return pastObstacles({ obstacles, accounts }, job, accountOf(job.stream), run)
  }
  const kinds: CleanUpKinds = {
    accounts,
    ledger,
    clock,
    batch,
    journal: once(() => ArchiveJournal.open(ledger)),
    tables: once(() => MailTables.open(ledger)),
    point: point ?? (() => {}),
    instead: { ...batch, onKeyTaken: 'replace' },
    plan: defineJob({
      kind: PLAN_KIND,
      payload: Plan,
      key: ({ run }) => String(run),
      describe: { verb: 'planning', noun: 'clean-up' },
      run: (job) => planRun(kinds, job),
    }),
    // Looking at everything costs calls: one look at a time for an account, and the last one asked for counts.
    proof: defineJob({
      kind: PROOF_KIND,
      payload: ProofPayload,
      key: ({ run }) => run.account,
      onKeyTaken: 'replace',
      // Somebody looks at the page.
      lane: 'interactive',
      budget,
      describe: { verb: 'proving', noun: 'clean-up' },
      run: (job) => past(job, () => prove(kinds, job)),
    }),
  }
  return kinds
}

export function cleanUpJobs(deps: CleanUpDeps): AnyJobKind[] {
  const { plan, batch, proof } = cleanUpKinds(deps)
  return [plan, batch, proof]
}

/** A failure is not kept: the next one to ask may be luckier. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((thrown: unknown) => {
      made = undefined
      throw thrown
    })
    return made
  }
}
