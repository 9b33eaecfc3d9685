/** `tidemark jobs cancel`: at once where nobody holds the job, by asking its worker where somebody does. */

import { type CliContext, exitCodes } from '../../app/command.ts'
import { withLedger } from '../../app/with-ledger.ts'
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import { reclaimFromDead } from '../../engine/observe/engines.ts'
import { eachJob } from '../../ledger/each-job.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { JobFilter } from '../../ledger/queries.ts'
import type { JobState } from '../../ledger/states.ts'
import { didYouMean } from '../output/input.ts'
import type { Output } from '../output/output.ts'
import { Pace, Refusals } from './batch.ts'

const CANCELABLE = ['pending', 'claimed', 'failed'] as const satisfies readonly JobState[]

export type CancelOptions = {
  kind?: string
  stream?: string
  state?: JobState
  yes?: boolean
  reason?: string
}

type Canceled = { canceled: number; stopping: number[]; already: number; refusals: Refusals }

export async function cancelJobs(
  context: CliContext,
  ids: readonly number[],
  options: CancelOptions,
): Promise<void> {
  checkUsage(ids, options)
  await withLedger(context, async ({ ledger }) => {
    const { output } = context
    const result: Canceled = { canceled: 0, stopping: [], already: 0, refusals: new Refusals() }
    const cancel = (id: number): Promise<void> => cancelOne(ledger, id, { result, reason: options.reason })
    if (ids.length > 0) for (const id of ids) await result.refusals.attempt(id, () => cancel(id))
    else await cancelMany(ledger, { options, result, output, cancel })
    await endStopping(ledger, result)
    const { canceled, stopping, already, refusals } = result
    if (output.json) {
      output.value({
        canceled,
        stopping: stopping.length,
        already,
        refused: refusals.kept,
        refusedCount: refusals.count,
      })
    } else report(output, result, ids)
    refusals.print(output)
    if (refusals.count > 0) context.exitCode = exitCodes.usage
  })
}

function checkUsage(ids: readonly number[], { kind, stream, state }: CancelOptions): void {
  const byFilter = kind !== undefined || stream !== undefined || state !== undefined
  if (ids.length > 0 && byFilter)
    throw new UsageError('Name jobs, or say which by --kind or --stream, but not both.')
  if (ids.length === 0 && kind === undefined && stream === undefined) {
    throw new UsageError('Which jobs are to be canceled?', {
      hint: 'Name them: tidemark jobs cancel 12 13. Or say which: tidemark jobs cancel --kind KIND --state pending --yes',
    })
  }
}

async function cancelOne(
  ledger: Ledger,
  id: number,
  { result, reason }: { result: Canceled; reason: string | undefined },
): Promise<void> {
  const { outcome } = await ledger.cancel(
    id,
    reason === undefined ? undefined : `canceled by hand: ${reason}`,
  )
  if (outcome === 'stopping') result.stopping.push(id)
  else result[outcome] += 1
}

async function cancelMany(
  ledger: Ledger,
  input: {
    options: CancelOptions
    result: Canceled
    output: Output
    cancel: (id: number) => Promise<void>
  },
): Promise<void> {
  const { options, result, output, cancel } = input
  const { kind, stream, state = 'pending' } = options
  await checkKnown(ledger, options)
  const filter: JobFilter = { kind, stream, state }
  if (!options.yes) {
    let count = 0
    for await (const _ of eachJob(ledger, filter)) count += 1
    if (count === 0) return
    const whose = [kind && `of ${kind}`, stream && `in ${stream}`].filter(Boolean).join(' ')
    throw new UsageError(
      `This would cancel ${formatCount(count)} ${state} ${plural(count, 'job')} ${whose}.`,
      {
        hint: 'Add --yes to do it.',
        code: 'confirmation-needed',
      },
    )
  }
  const pace = new Pace(output, { what: 'jobs canceled' })
  for await (const { id } of eachJob(ledger, filter)) {
    // It came to its end by itself meanwhile.
    const isMoot = async (): Promise<boolean> => !isCancelable((await ledger.job(id))?.job.state)
    await result.refusals.attempt(id, () => cancel(id), isMoot)
    pace.add()
  }
}

function isCancelable(state: JobState | undefined): boolean {
  return CANCELABLE.some((one) => one === state)
}

async function checkKnown(ledger: Ledger, { kind, stream }: CancelOptions): Promise<void> {
  if (kind !== undefined) {
    const kinds = new Set((await ledger.tallies()).map((tally) => tally.kind))
    if (!kinds.has(kind)) throw new UsageError(`No job is of the kind ${kind}${didYouMean(kind, kinds)}`)
  }
  if (stream !== undefined) {
    const names = (await ledger.streamNames()).map(({ name }) => name)
    if (!names.includes(stream))
      throw new UsageError(`There is no stream called ${stream}${didYouMean(stream, names)}`)
  }
}

/** A worker whose process has ended cannot be asked: what it held is taken back, and so canceled, now. */
async function endStopping(ledger: Ledger, result: Canceled): Promise<void> {
  if (result.stopping.length === 0 || (await reclaimFromDead(ledger)).jobs === 0) return
  const stillHeld: number[] = []
  for (const id of result.stopping) {
    if ((await ledger.job(id))?.job.state === 'claimed') stillHeld.push(id)
    else result.canceled += 1
  }
  result.stopping = stillHeld
}

function report(output: Output, { canceled, stopping, already }: Canceled, ids: readonly number[]): void {
  const name = (n: number): string =>
    ids.length === 1 ? `Job #${ids[0]} is` : `${formatCount(n)} ${plural(n, 'job is', 'jobs are')}`
  if (canceled > 0) output.line(`${name(canceled)} canceled.`)
  if (stopping.length > 0)
    output.line(`${name(stopping.length)} being stopped: the worker was asked, and nothing of it is kept.`)
  if (already > 0) output.line(`${name(already)} canceled already.`)
  if (canceled + stopping.length + already === 0 && ids.length === 0)
    output.line('No job is like that: nothing was canceled.')
}
