/** `tidemark bad`: items that were isolated because they would not work, and trying them again. */

import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../app/command.ts'
import { UsageError } from '../../base/errors.ts'
import { plural, shellWord } from '../../base/wording.ts'
import type { BadRow } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { didYouMean, idOption, LIMIT_DEFAULT, limitOption, parseIds } from '../output/input.ts'

type ListOptions = { stream?: string; limit: number; after?: number }
type RetryOptions = { all?: boolean; stream?: string }

/** Items per transaction. */
const RETRY_BATCH = 500

const JSON_HELP = `
With --json, an item has: id, stream, segment, kind, item, reason, errorKind, firstSeen, lastTried,
tries, payload. Times are UTC.`

export function registerBad(program: Command, context: CliContext): void {
  const bad = program.command('bad').description('items that would not work: look at them, try them again')
  bad
    .command('list')
    .description('list bad items, each with its reason')
    .option('--stream <name>', 'only of this stream')
    .addOption(limitOption())
    .addOption(idOption('--after <id>', 'only items with a larger number: the next page'))
    .addHelpText('after', JSON_HELP)
    .action((options: ListOptions) => listBad(context, options))
  bad
    .command('retry')
    .description('enqueue a job for each of these items')
    .argument('[ids...]', 'numbers of bad items', parseIds('bad item'))
    .option('--all', 'all bad items')
    .option('--stream <name>', 'all bad items of this stream')
    .action((ids: number[] | undefined, options: RetryOptions) => retryBad(context, ids ?? [], options))
}

async function listBad(context: CliContext, options: ListOptions): Promise<void> {
  const { lookAtLedger } = await import('../../app/with-ledger.ts')
  await lookAtLedger(context, {
    look: ({ ledger }) => printPage(context, options, ledger),
    missing: () => context.output.json && context.output.value([]),
  })
}

async function printPage({ output }: CliContext, options: ListOptions, ledger: Ledger): Promise<void> {
  const { distance } = await import('../../base/moment.ts')
  if (options.stream !== undefined) await checkStream(ledger, options.stream)
  const rows = await ledger.badItems(options)
  const now = ledger.now()
  output.listing<BadRow>({
    columns: [
      { title: 'id', value: ({ id }) => id, align: 'right' },
      { title: 'stream', value: ({ stream }) => stream ?? '-' },
      { title: 'kind', value: ({ kind }) => kind },
      { title: 'item', value: ({ item }) => item },
      { title: 'tries', value: ({ tries }) => tries, align: 'right' },
      { title: 'last tried', value: ({ last_tried }) => distance(last_tried, now) },
      { title: 'reason', value: ({ error_kind, reason }) => `${error_kind}: ${reason}` },
    ],
    rows,
    json: await toJson(rows),
    empty: 'There are no bad items.',
  })
  const last = rows.at(-1)
  if (!last || rows.length < options.limit || output.json) return
  const [next] = await ledger.badItems({ ...options, after: last.id, limit: 1 })
  if (!next) return
  const stream = options.stream === undefined ? '' : ` --stream ${shellWord(options.stream)}`
  const limit = options.limit === LIMIT_DEFAULT ? '' : ` --limit ${options.limit}`
  output.note(`More: tidemark bad list${stream}${limit} --after ${last.id}`)
}

async function toJson(rows: readonly BadRow[]) {
  const { isoTime } = await import('../../base/moment.ts')
  const { parsedJson } = await import('../../engine/observe/job-texts.ts')
  return rows.map((row) => ({
    id: row.id,
    stream: row.stream,
    segment: row.segment_id,
    kind: row.kind,
    item: row.item,
    reason: row.reason,
    errorKind: row.error_kind,
    firstSeen: isoTime(row.first_seen),
    lastTried: isoTime(row.last_tried),
    tries: row.tries,
    payload: parsedJson(row.payload),
  }))
}

async function checkStream(ledger: Ledger, stream: string): Promise<void> {
  const names = (await ledger.streamNames()).map(({ name }) => name)
  if (!names.includes(stream))
    throw new UsageError(`There is no stream called ${stream}${didYouMean(stream, names)}`)
}

async function retryBad(context: CliContext, ids: readonly number[], options: RetryOptions): Promise<void> {
  const byFilter = options.all || options.stream !== undefined
  if (ids.length > 0 && byFilter) throw new UsageError('Name items, or say --all or --stream, but not both.')
  if (ids.length === 0 && !byFilter) {
    throw new UsageError('Which bad items are to be tried again?', {
      hint: 'Name them: tidemark bad retry 3 4. Or all: tidemark bad retry --all',
    })
  }
  const { withLedger } = await import('../../app/with-ledger.ts')
  await withLedger(context, async ({ ledger }) => {
    if (options.stream !== undefined) await checkStream(ledger, options.stream)
    const { found, missing } =
      ids.length > 0 ? await findItems(ledger, ids) : await allItems(ledger, options.stream)
    let enqueued = 0
    for (let at = 0; at < found.length; at += RETRY_BATCH) {
      enqueued += await ledger.retryBad({ ids: found.slice(at, at + RETRY_BATCH) })
    }
    await report(context, { ledger, enqueued, already: found.length - enqueued, missing })
  })
}

type Found = { found: number[]; missing: number[] }

async function findItems(ledger: Ledger, ids: readonly number[]): Promise<Found> {
  const result: Found = { found: [], missing: [] }
  for (const id of ids) {
    const [row] = await ledger.badItems({ after: id - 1, limit: 1 })
    result[row?.id === id ? 'found' : 'missing'].push(id)
  }
  return result
}

async function allItems(ledger: Ledger, stream: string | undefined): Promise<Found> {
  const { PAGE_MAX } = await import('../../ledger/queries.ts')
  const found: number[] = []
  for (;;) {
    const page = await ledger.badItems({ stream, after: found.at(-1), limit: PAGE_MAX })
    for (const { id } of page) found.push(id)
    if (page.length < PAGE_MAX) return { found, missing: [] }
  }
}

async function report(
  context: CliContext,
  {
    ledger,
    enqueued,
    already,
    missing,
  }: { ledger: Ledger; enqueued: number; already: number; missing: number[] },
): Promise<void> {
  const { output } = context
  const { formatCount } = await import('../../base/format.ts')
  const { liveCount, listEngines } = await import('../../engine/observe/engines.ts')
  if (missing.length > 0) context.exitCode = exitCodes.usage
  if (output.json) return output.value({ retried: enqueued, alreadyTrying: already, missing })
  if (enqueued > 0)
    output.line(`${formatCount(enqueued)} ${plural(enqueued, 'item is', 'items are')} tried again.`)
  if (already > 0) {
    output.line(
      `${formatCount(already)} ${plural(already, 'item has', 'items have')} a job already that tries again.`,
    )
  }
  if (enqueued + already + missing.length === 0) output.line('There are no bad items.')
  for (const id of missing) {
    output.error(
      new UsageError(`There is no bad item #${id}.`, { hint: '`tidemark bad list` shows what there is.' }),
    )
  }
  if (enqueued > 0 && liveCount(await listEngines(ledger)) === 0) output.note('No engine is running.')
}
