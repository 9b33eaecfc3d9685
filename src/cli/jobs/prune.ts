/**
 * `tidemark jobs prune`: what an engine does by itself every hour, now. In bounded steps, so that a running
 * engine goes on. A dry run takes the same steps and rolls each of them back: it counts by the very
 * statements that would delete.
 */

import type { CliContext } from '../../app/command.ts'
import { withLedger } from '../../app/with-ledger.ts'
import { TidemarkError } from '../../base/errors.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import { Changes } from '../../ledger/changes.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type PrunePolicy, type PruneStep, pruneStep } from '../../ledger/retention.ts'
import { Pace } from './batch.ts'

const DAY_MS = 86_400_000

/** Milliseconds. */
export type PruneOptions = { olderThan?: number; dryRun?: boolean }

export async function pruneJobs(context: CliContext, options: PruneOptions): Promise<void> {
  const { output } = context
  await withLedger(context, async ({ ledger, config }) => {
    const settledMs = options.olderThan ?? config.ledger.prune_after_days * DAY_MS
    // Failed jobs wait for somebody to decide: they are never kept for less than settled ones.
    const failedMs = Math.max(settledMs, config.ledger.failed_after_days * DAY_MS)
    const now = ledger.now()
    const policy = { settledBefore: now - settledMs, failedBefore: now - failedMs }
    const pace = new Pace(output, { what: options.dryRun ? 'jobs found' : 'jobs pruned' })
    const step = options.dryRun ? tryStep : realStep
    let deleted = 0
    for (let next: number | null = 0; next !== null; ) {
      const taken: PruneStep = await step(ledger, policy, next)
      deleted += taken.deleted
      next = taken.nextId
      pace.add(taken.deleted)
    }
    if (!options.dryRun) await ledger.pruneRest()
    if (output.json) output.value({ pruned: deleted, dryRun: options.dryRun === true })
    else {
      const jobs = `${formatCount(deleted)} ${plural(deleted, 'job')}`
      output.line(options.dryRun ? `${jobs} would be pruned; nothing was changed.` : `${jobs} pruned.`)
      const kept = `settled jobs for ${formatDuration(settledMs)}, failed ones for ${formatDuration(failedMs)}`
      output.note(`Kept: ${kept}, and failed jobs of segments that are not settled.`)
    }
  })
}

function realStep(ledger: Ledger, policy: PrunePolicy, afterId: number): Promise<PruneStep> {
  return ledger.pruneStep(policy, afterId)
}

class RolledBack extends TidemarkError {
  readonly step: PruneStep

  constructor(step: PruneStep) {
    super('a dry run was rolled back', { kind: 'permanent', code: 'dry-run' })
    this.step = step
  }
}

async function tryStep(ledger: Ledger, policy: PrunePolicy, afterId: number): Promise<PruneStep> {
  try {
    return await ledger.driver.transaction(async (tx): Promise<PruneStep> => {
      throw new RolledBack(await pruneStep({ tx, changes: new Changes() }, policy, afterId))
    })
  } catch (thrown) {
    if (thrown instanceof RolledBack) return thrown.step
    throw thrown
  }
}
