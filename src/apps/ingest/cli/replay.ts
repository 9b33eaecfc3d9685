/** `tidemark ingest replay`: quarantined records are read again; says which, and what came of it. */
import { runWork } from '../../../app/cli/sync.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { counted, plural } from '../../../base/wording.ts'
import { request } from '../../../engine/index.ts'
import { ingestApp } from '../app.ts'
import type { ReplayPayload } from '../kinds.ts'
import { streamOf } from '../pipeline.ts'
import { REPLACED } from '../plan.ts'
import type { IngestRuntime } from '../runtime.ts'
import { ingestSource } from '../sources.ts'
import type { ShardRow } from '../store/rows.ts'
import type { IngestTables } from '../store/tables.ts'
import { findShard, withIngest } from './context.ts'

type Input = { name: string; object: string | undefined; records: readonly string[] }
/** Of one object: which records are read again; all of them where `at` is left out. */
type Asked = { shard: string; n: number; at?: readonly number[] }

const SHARDS_PAGE = 500
const NUMBERS_SHOWN_MAX = 10
const LEFT_SHOWN_MAX = 5

export async function replay(context: CliContext, { name, object, records }: Input): Promise<void> {
  const at = records.map(recordNumber)
  await withIngest(context, async (opened) => {
    const { output } = context
    const { engine, ingest } = opened
    const row = object === undefined ? undefined : await findShard(opened, name, object)
    const asked = row ? await askedOf(opened, row, at) : await askedOfAll(opened, name)
    const all = asked.reduce((sum, { n }) => sum + n, 0)
    if (all === 0) return nothing(context, name, row)
    const of = row ? row.uri : counted(asked.length, 'object')
    output.note(`${name}: reading ${counted(all, 'quarantined record')} of ${of} again`)
    const stream = streamOf(name)
    await engine.streams.open(stream)
    const jobs = asked.map(({ shard, at: some }) => {
      const payload: ReplayPayload = { pipeline: name, shard, ...(some && { at: [...some] }) }
      return request(ingest.kinds.replay, payload, { stream })
    })
    const begun = await engine.write({ jobs })
    await runWork(context, openedSources(ingestApp, opened), [ingestSource(name)])
    await report(context, opened, { name, asked, ids: begun.map(({ id }) => id) })
  })
}

function recordNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`"${text}" is not the number of a record.`, {
    hint: 'tidemark ingest quarantine lists these numbers.',
  })
}

async function askedOf(
  { ingest }: IngestRuntime,
  { pipeline, id: shard, uri, state }: ShardRow,
  at: readonly number[],
): Promise<Asked[]> {
  if (state === 'skipped') {
    const hint = `Nothing of it is read any more. See: tidemark ingest show ${pipeline} ${shard.slice(0, 12)}`
    throw new UsageError(`${uri} cannot be replayed: ${REPLACED}.`, { code: 'replaced', hint })
  }
  const there = await ingest.tables.quarantinedAt(pipeline, shard)
  if (at.length === 0) return [{ shard, n: there.length }]
  const wrong = at.filter((one) => !there.includes(one))
  if (wrong.length === 0) return [{ shard, n: new Set(at).size, at }]
  const some = there.slice(0, NUMBERS_SHOWN_MAX).join(', ')
  const more = there.length > NUMBERS_SHOWN_MAX ? `, and ${formatCount(there.length)} in all` : ''
  const what = `${plural(wrong.length, 'Record')} ${wrong.slice(0, NUMBERS_SHOWN_MAX).join(', ')}`
  throw new UsageError(`${what} of ${uri} ${plural(wrong.length, 'is', 'are')} not in quarantine.`, {
    code: 'record-unknown',
    hint: there.length === 0 ? 'None of its records is.' : `These are: ${some}${more}.`,
  })
}

async function askedOfAll({ ingest }: IngestRuntime, name: string): Promise<Asked[]> {
  await ingest.pipelines.get(name)
  const all: Asked[] = []
  for (let after = ''; ; after = all.at(-1)!.shard) {
    const page = await ingest.tables.quarantinedBy(name, after, SHARDS_PAGE)
    all.push(...page)
    if (page.length < SHARDS_PAGE) return all
  }
}

function nothing({ output }: CliContext, name: string, row: ShardRow | undefined): void {
  const records = { records: 0, published: 0, quarantined: 0, waiting: 0, replaced: 0 }
  if (output.json) output.event({ type: 'replay', pipeline: name, objects: 0, ...records })
  else
    output.line(
      `${name}: no record${row ? ` of ${row.uri}` : ''} is in quarantine, and nothing was read again.`,
    )
}

type Fate = 'published' | 'quarantined' | 'waiting' | 'replaced'
type Replayed = { name: string; asked: readonly Asked[]; ids: readonly number[] }

/**
 * What became of them. What is in quarantine no more was published, in one transaction, unless its object is wanted no
 * more: then nothing of it is there, whether it had been published or not.
 */
export async function replayed(
  tables: IngestTables,
  { name, asked, ids }: Replayed,
): Promise<{ sums: Record<Fate, number>; left: { shard: string; at: number }[] }> {
  const sums: Record<Fate, number> = { published: 0, quarantined: 0, waiting: 0, replaced: 0 }
  const left: { shard: string; at: number }[] = []
  for (const [n, { shard, n: records, at }] of asked.entries()) {
    const row = await tables.shard(name, shard)
    if (!row || row.state === 'skipped') {
      sums.replaced += records
      continue
    }
    const there = await tables.quarantinedAt(name, shard)
    const of = at ? there.filter((one) => at.includes(one)) : there.slice(0, records)
    const state = (await tables.ledger.job(ids[n]!))?.job.state
    const isWaiting = state === 'pending' || state === 'claimed'
    sums[isWaiting ? 'waiting' : 'quarantined'] += of.length
    sums.published += records - of.length
    if (!isWaiting) left.push(...of.slice(0, LEFT_SHOWN_MAX).map((one) => ({ shard, at: one })))
  }
  return { sums, left }
}

async function report({ output }: CliContext, { ingest }: IngestRuntime, told: Replayed): Promise<void> {
  const { name, asked, ids } = told
  const { sums, left } = await replayed(ingest.tables, told)
  if (output.json) {
    const records = asked.reduce((sum, { n }) => sum + n, 0)
    output.event({ type: 'replay', pipeline: name, objects: asked.length, records, ...sums, jobs: ids })
    return
  }
  const parts = [`${counted(sums.published, 'record')} published`]
  if (sums.quarantined > 0) parts.push(`${formatCount(sums.quarantined)} still in quarantine`)
  if (sums.waiting > 0) parts.push(`${formatCount(sums.waiting)} not read yet`)
  if (sums.replaced > 0) parts.push(`${formatCount(sums.replaced)} of objects that were replaced meanwhile`)
  output.line(`${name}: ${parts.join(', ')}`)
  if (sums.waiting > 0) output.note('  The next tidemark ingest sync goes on, or tidemark serve.')
  for (const { shard, at } of left.slice(0, LEFT_SHOWN_MAX)) {
    const page = { pipeline: name, shard, after: { shard, at: at - 1 }, limit: 1 }
    for (const { line, uri, reason } of await ingest.tables.quarantine(page)) {
      output.line(`  record ${at}${line === null ? '' : `, line ${formatCount(line)}`} of ${uri}: ${reason}`)
    }
  }
  if (sums.quarantined > LEFT_SHOWN_MAX) output.note(`  See all with: tidemark ingest quarantine ${name}`)
}
