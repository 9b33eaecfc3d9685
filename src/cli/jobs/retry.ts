/** `tidemark jobs retry`: failed and canceled jobs start over with a full budget. */

import { type CliContext, exitCodes } from '../../app/command.ts'
import { withLedger } from '../../app/with-ledger.ts'
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import { listEngines, liveCount } from '../../engine/observe/engines.ts'
import { eachJob } from '../../ledger/each-job.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { didYouMean } from '../output/input.ts'
import type { Output } from '../output/output.ts'
import { Pace, Refusals } from './batch.ts'

export type RetryOptions = { allFailed?: boolean; kind?: string }

type Retried = { asked: number; dependents: number; refusals: Refusals }

export async function retryJobs(
  context: CliContext,
  ids: readonly number[],
  options: RetryOptions,
): Promise<void> {
  checkUsage(ids, options)
  await withLedger(context, async ({ ledger }) => {
    const { output } = context
    const retried = options.allFailed
      ? await retryFailed(ledger, options.kind, output)
      : await retryAll(ledger, ids, { moved: 'refused' })
    if (output.json) {
      const { asked, dependents, refusals } = retried
      output.value({ retried: asked, dependents, refused: refusals.kept, refusedCount: refusals.count })
    } else await report(ledger, retried, { output, one: ids.length === 1 ? ids[0] : undefined })
    retried.refusals.print(output)
    if (retried.refusals.count > 0) context.exitCode = options.allFailed ? exitCodes.failure : exitCodes.usage
  })
}

function checkUsage(ids: readonly number[], { allFailed, kind }: RetryOptions): void {
  if (ids.length > 0 && (allFailed || kind !== undefined)) {
    throw new UsageError('Name jobs, or say --all-failed, but not both.')
  }
  if (ids.length === 0 && !allFailed) {
    throw new UsageError('Which jobs are to be tried again?', {
      hint: 'Name them: tidemark jobs retry 12 13. Or all: tidemark jobs retry --all-failed [--kind KIND]',
    })
  }
}

/** A job that waits for another of them comes back with it, whatever the order; so refusals count only at the end. */
async function retryAll(
  ledger: Ledger,
  ids: AsyncIterable<number> | Iterable<number>,
  /** What was found failed may have come back since; what was named must not be running already. */
  { moved, onEach }: { moved: 'fine' | 'refused'; onEach?: () => void },
): Promise<Retried> {
  const retried: Retried = { asked: 0, dependents: 0, refusals: new Refusals() }
  const refused: number[] = []
  const isEnded = async (id: number): Promise<boolean> => {
    const state = (await ledger.job(id))?.job.state
    return state === 'failed' || state === 'canceled'
  }
  for await (const id of ids) {
    const isPutOff = async (): Promise<boolean> => {
      const ended = await isEnded(id)
      if (ended) refused.push(id)
      return ended || moved === 'fine'
    }
    await retried.refusals.attempt(id, () => retryOne(ledger, id, retried), isPutOff)
    onEach?.()
  }
  for (const id of refused) {
    // Brought back by one that it depends on, or by somebody else.
    const isMoot = async (): Promise<boolean> => !(await isEnded(id))
    await retried.refusals.attempt(id, () => retryOne(ledger, id, retried), isMoot)
  }
  return retried
}

async function retryOne(ledger: Ledger, id: number, retried: Retried): Promise<void> {
  const redone = await ledger.redo(id)
  retried.asked += 1
  retried.dependents += redone - 1
}

async function retryFailed(ledger: Ledger, kind: string | undefined, output: Output): Promise<Retried> {
  const tallies = await ledger.tallies()
  if (kind !== undefined && !tallies.some((tally) => tally.kind === kind)) {
    const kinds = new Set(tallies.map((tally) => tally.kind))
    throw new UsageError(`No job is of the kind ${kind}${didYouMean(kind, kinds)}`)
  }
  const failed = tallies.filter(
    (tally) => tally.stage === 'failed' && (kind === undefined || tally.kind === kind),
  )
  const total = failed.reduce((sum, { n }) => sum + n, 0)
  const pace = new Pace(output, { what: 'failed jobs tried again', total })
  return retryAll(ledger, failedIds(ledger, kind), { moved: 'fine', onEach: () => pace.add() })
}

async function* failedIds(ledger: Ledger, kind: string | undefined): AsyncGenerator<number> {
  for await (const { id } of eachJob(ledger, { state: 'failed', kind })) yield id
}

async function report(
  ledger: Ledger,
  { asked, dependents, refusals }: Retried,
  { output, one }: { output: Output; one: number | undefined },
): Promise<void> {
  if (asked === 0) {
    if (refusals.count === 0) output.line('No job has failed.')
    return
  }
  const also =
    dependents === 0
      ? ''
      : `, and ${formatCount(dependents)} that had failed because of ${asked === 1 ? 'it' : 'them'}`
  const what =
    one === undefined ? `${formatCount(asked)} ${plural(asked, 'job is', 'jobs are')}` : `Job #${one} is`
  output.line(`${what} pending again${also}.`)
  if (liveCount(await listEngines(ledger)) === 0) output.note('No engine is running.')
}
