/** `tidemark jobs`: look at the work in the ledger and steer it, whether an engine is running or not. */
import type { Command } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { durationOption, idOption, limitOption, parseId, parseIds, stateOption } from '../output/input.ts'
import type { CancelOptions } from './cancel.ts'
import type { ListOptions } from './list.ts'
import type { PruneOptions } from './prune.ts'
import type { RetryOptions } from './retry.ts'

const WATCH_EVERY_MS = 1_000
const WATCH_EVERY_MS_MIN = 100

const JOB_JSON = `
With --json, a job has: id, kind, state, waitsFor ("deps", "time" or null), runAt, depsLeft, key,
stream, segment, parent, lane, priority, size, items, attempts, failures, owner, stopping,
progress {done, total, unit, label}, error {kind, code, message}, note, noteCode, createdAt, claimedAt, settledAt.
Times are UTC.`

const SHOW_JSON = `${JOB_JSON}
Also: explanation [text], payload, checkpoint, dependencies and dependents [{id, kind, state, onFailure,
met}], children {state: count}, errors [{attempt, at, kind, message}], heldBy {id, name, host, pid, state,
leaseUntil} or null, pausedBy [{scope, target, reason}], segmentCounts, engines.`

export function registerJobs(program: Command, context: CliContext): void {
  const jobs = program.command('jobs').description('look at the work in the ledger and steer it')
  registerLooking(jobs, context)
  registerSteering(jobs, context)
}

function registerLooking(jobs: Command, context: CliContext): void {
  jobs
    .command('list')
    .description('list jobs, newest first')
    .addOption(stateOption('only jobs in this state'))
    .option('--kind <kind>', 'only jobs of this kind')
    .option('--stream <name>', 'only jobs of this stream')
    .addOption(idOption('--parent <id>', 'only children of this job'))
    .addOption(idOption('--segment <id>', 'only jobs of this segment'))
    .addOption(durationOption('--older-than <time>', 'only jobs enqueued longer ago, such as 2h or 7d'))
    .addOption(limitOption())
    .addOption(idOption('--before <id>', 'only jobs with a smaller number: the next page'))
    .addHelpText('after', JOB_JSON)
    .action(async (options: ListOptions) => (await import('./list.ts')).listJobs(context, options))
  jobs
    .command('show')
    .description('say what a job is waiting for, who holds it and what failed before')
    .argument('<id>', 'number of the job', (text: string) => parseId(text))
    .addHelpText('after', SHOW_JSON)
    .action(async (id: number) => (await import('./show.ts')).showJob(context, id))
  jobs
    .command('stats')
    .description('count jobs by kind and stage, and what happened in the last hour')
    .action(async () => (await import('./stats.ts')).showStats(context))
  jobs
    .command('watch')
    .description('watch the work go on, until Ctrl-C')
    .addOption(durationOption('--every <time>', 'how often to look').default(WATCH_EVERY_MS, '1s'))
    .action(async ({ every }: { every: number }) => {
      const { watchJobs } = await import('./watch.ts')
      await watchJobs(context, { every: Math.max(WATCH_EVERY_MS_MIN, every) })
    })
}

function registerSteering(jobs: Command, context: CliContext): void {
  jobs
    .command('retry')
    .description('try failed or canceled jobs again, with a full budget')
    .argument('[ids...]', 'numbers of jobs', parseIds('job'))
    .option('--all-failed', 'all jobs that failed')
    .option('--kind <kind>', 'with --all-failed: only of this kind')
    .action(async (ids: number[] | undefined, options: RetryOptions) =>
      (await import('./retry.ts')).retryJobs(context, ids ?? [], options),
    )
  jobs
    .command('cancel')
    .description('cancel jobs and their children; running ones are told to stop')
    .argument('[ids...]', 'numbers of jobs', parseIds('job'))
    .option('--kind <kind>', 'all jobs of this kind')
    .option('--stream <name>', 'all jobs of this stream')
    .addOption(
      stateOption('with --kind or --stream: only in this state (pending unless given)', [
        'pending',
        'claimed',
        'failed',
      ]),
    )
    .option('--yes', 'with --kind or --stream: do it')
    .option('--reason <text>', 'why, for whoever looks later')
    .action(async (ids: number[] | undefined, options: CancelOptions) =>
      (await import('./cancel.ts')).cancelJobs(context, ids ?? [], options),
    )
  jobs
    .command('prune')
    .description('delete jobs that settled long ago, as an engine does every hour')
    .addOption(
      durationOption(
        '--older-than <time>',
        'those that settled longer ago (ledger.prune_after_days unless given)',
      ),
    )
    .option('--dry-run', 'only say how many')
    .action(async (options: PruneOptions) => (await import('./prune.ts')).pruneJobs(context, options))
}
