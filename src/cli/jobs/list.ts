/** `tidemark jobs list`: newest first, a page at a time. */

import type { CliContext } from '../../app/command.ts'
import { lookAtLedger, type OpenedLedger } from '../../app/with-ledger.ts'
import { formatDuration } from '../../base/format.ts'
import { shellWord } from '../../base/wording.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { JobFilter } from '../../ledger/queries.ts'
import type { JobState } from '../../ledger/states.ts'
import { didYouMean, LIMIT_DEFAULT } from '../output/input.ts'
import { aboutText, jobJson, stateText, takenText } from './row.ts'

export type ListOptions = {
  state?: JobState
  kind?: string
  stream?: string
  parent?: number
  segment?: number
  /** Milliseconds. */
  olderThan?: number
  limit: number
  before?: number
}

export async function listJobs(context: CliContext, options: ListOptions): Promise<void> {
  await lookAtLedger(context, {
    look: (opened) => printPage(context, options, opened),
    missing: () => context.output.json && context.output.value([]),
  })
}

async function printPage(context: CliContext, options: ListOptions, { ledger }: OpenedLedger): Promise<void> {
  const now = ledger.now()
  const filter: JobFilter = {
    state: options.state,
    kind: options.kind,
    stream: options.stream,
    parentId: options.parent,
    segmentId: options.segment,
    createdBefore: options.olderThan === undefined ? undefined : now - options.olderThan,
  }
  const rows = await ledger.jobs({ ...filter, before: options.before, limit: options.limit })
  const pauses = await ledger.pauses()
  context.output.listing<JobRow>({
    columns: [
      { title: 'id', value: ({ id }) => id, align: 'right' },
      { title: 'kind', value: ({ kind }) => kind },
      { title: 'state', value: (job) => stateText(job, { now, pauses }) },
      { title: 'stream', value: ({ stream }) => stream ?? '-' },
      { title: 'age', value: (job) => formatDuration(Math.max(0, now - job.created_at)), align: 'right' },
      { title: 'taken', value: takenText },
      { title: 'about', value: aboutText },
    ],
    rows,
    json: rows.map(jobJson),
    empty: rows.length === 0 ? await whyNone({ ledger }, options) : undefined,
  })
  const last = rows.at(-1)
  if (!last || rows.length < options.limit || context.output.json) return
  const [next] = await ledger.jobs({ ...filter, before: last.id, limit: 1 })
  if (next) context.output.note(`More: ${nextCommand(options, last.id)}`)
}

async function whyNone({ ledger }: Pick<OpenedLedger, 'ledger'>, options: ListOptions): Promise<string> {
  if (options.kind !== undefined) {
    const kinds = new Set((await ledger.tallies()).map(({ kind }) => kind))
    if (!kinds.has(options.kind))
      return `No job is of the kind ${options.kind}${didYouMean(options.kind, kinds)}`
  }
  if (options.stream !== undefined) {
    const names = (await ledger.streamNames()).map(({ name }) => name)
    if (!names.includes(options.stream)) {
      return `There is no stream called ${options.stream}${didYouMean(options.stream, names)}`
    }
  }
  const { limit: _, ...narrowing } = options
  return Object.values(narrowing).some((value) => value !== undefined)
    ? 'No job is like that.'
    : 'There are no jobs.'
}

/** The same command, one page further. */
function nextCommand(options: ListOptions, before: number): string {
  const words = ['tidemark jobs list']
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) words.push(`--${flag} ${shellWord(String(value))}`)
  }
  add('state', options.state)
  add('kind', options.kind)
  add('stream', options.stream)
  add('parent', options.parent)
  add('segment', options.segment)
  add('older-than', options.olderThan === undefined ? undefined : `${options.olderThan}ms`)
  add('limit', options.limit === LIMIT_DEFAULT ? undefined : options.limit)
  add('before', before)
  return words.join(' ')
}
