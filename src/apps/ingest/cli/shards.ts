/** `tidemark ingest shards` and `show`: object versions, and what became of each. */
import type { CliContext } from '../../../app/command.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { distance, isoTime } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import type { KeptObjects } from '../kept-objects.ts'
import { hostOf } from '../object-bytes.ts'
import type { ShardState } from '../shard-states.ts'
import { shardView } from '../shard-view.ts'
import { findShard, withIngest } from './context.ts'

const VERSIONS_MAX = 1_000
const VERSIONS_SHOWN_MAX = 5

type Options = { state?: ShardState; code?: string; limit: number }

export async function listShards(
  context: CliContext,
  name: string,
  { state, code, limit }: Options,
): Promise<void> {
  await withIngest(context, async ({ ingest, ledger }) => {
    await ingest.pipelines.get(name)
    const rows = await ingest.tables.shards({ pipeline: name, state, code, after: '', limit })
    const nowMs = ledger.now()
    context.output.listing({
      columns: [
        { title: 'object', value: ({ uri }) => uri },
        { title: 'id', value: ({ id }) => id.slice(0, 12) },
        { title: 'state', value: (row) => row.state },
        { title: 'records', value: ({ published }) => formatCount(published), align: 'right' },
        { title: 'quarantined', value: ({ quarantined }) => formatCount(quarantined), align: 'right' },
        { title: 'size', value: ({ size }) => (size === null ? '' : formatBytes(size)), align: 'right' },
        { title: 'changed', value: ({ updated_at }) => distance(updated_at, nowMs) },
        { title: 'reason', value: (row) => row.code ?? '' },
      ],
      rows,
      json: rows.map(shardView),
      empty: `The pipeline ${name} knows of no ${state || code ? 'such ' : ''}object${state || code ? '' : ' yet'}.`,
    })
  })
}

export async function showShard(context: CliContext, name: string, object: string): Promise<void> {
  await withIngest(context, async (opened) => {
    const row = await findShard(opened, name, object)
    const view = shardView(row)
    const { output } = context
    const all = await opened.ingest.tables.addressed(name, [row.uri], VERSIONS_MAX)
    const others = all.filter(({ id }) => id !== row.id)
    if (output.json) {
      output.value({ ...view, otherVersions: others.map(({ id, state, code }) => ({ id, state, code })) })
      return
    }
    output.line(row.uri)
    for (const [title, text] of facts(view, opened.ingest.kinds.kept))
      output.line(`  ${title.padEnd(12)} ${text}`)
    for (const { id, state, code } of others.slice(0, VERSIONS_SHOWN_MAX))
      output.line(`  another      ${id.slice(0, 12)}, ${state}${code === null ? '' : ` (${code})`}`)
    const more = others.length - VERSIONS_SHOWN_MAX
    if (more > 0) output.line(`  and more     ${counted(more, 'version')}`)
  })
}

/** On this machine as a path, for whoever has lost the database. */
function whereText(to: string, view: ReturnType<typeof shardView>, kept: KeptObjects): string {
  const host = hostOf(to)
  if (host === undefined) return to
  return host === kept.host ? kept.pathOf({ pipeline: view.pipeline, shard: view.id }) : `kept on ${host}`
}

function* facts(view: ReturnType<typeof shardView>, kept: KeptObjects): Generator<[string, string]> {
  yield ['id', view.id]
  yield ['version', view.version === '' ? 'nobody says' : view.version]
  yield ['state', view.reason === null ? view.state : `${view.state}: ${view.reason} (${view.code})`]
  if (view.state === 'gone') yield ['', 'it was bad, and is listed no more']
  const { records, byte, line } = view.position
  const at = [`${formatCount(records)} records`]
  if (byte !== null) at.push(`byte ${formatCount(byte)}`)
  if (line !== null) at.push(`line ${formatCount(line)}`)
  yield ['position', `${at.join(', ')}${view.isAtEnd ? ', the end' : ''}`]
  yield ['published', `${formatCount(view.published)}, ${formatCount(view.quarantined)} in quarantine`]
  if (view.shape) yield ['read as', `${view.shape.format}, compression ${view.shape.compression}`]
  yield ['attempts', `${view.attempts}, taken over ${counted(view.takeovers, 'time')}`]
  if (view.token !== null) yield ['token', `job ${view.token}`]
  if (view.announcedAtMs !== null) yield ['announced', isoTime(view.announcedAtMs)]
  if (view.listedAtMs !== null) yield ['listed', isoTime(view.listedAtMs)]
  if (view.settledAtMs !== null) yield ['settled', isoTime(view.settledAtMs)]
  if (view.disposed !== null) yield ['afterwards', view.disposed]
  if (view.disposedTo !== null) yield ['its bytes', whereText(view.disposedTo, view, kept)]
}
