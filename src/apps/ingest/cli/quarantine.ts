/** `tidemark ingest quarantine` and `dispose`: what could not be read or taken away, and trying the latter again. */
import { runWork } from '../../../app/cli/sync.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { distance } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import { ingestApp } from '../app.ts'
import { askAgain } from '../dispose.ts'
import { streamOf } from '../pipeline.ts'
import { disposeJob } from '../placing.ts'
import { quarantineView, unparsedView } from '../shard-view.ts'
import { ingestSource } from '../sources.ts'
import { findShard, withIngest } from './context.ts'

type Options = { object?: string; messages?: boolean; limit: number }

const EXCERPT_CHARS = 60

export async function listQuarantine(context: CliContext, name: string, options: Options): Promise<void> {
  const { object, messages, limit } = options
  await withIngest(context, async (opened) => {
    const { ingest, ledger } = opened
    await ingest.pipelines.get(name)
    const nowMs = ledger.now()
    if (messages) {
      const rows = (await ingest.tables.unparsed(name, limit)).map(unparsedView)
      context.output.listing({
        columns: [
          { title: 'message', value: ({ message }) => message },
          { title: 'deliveries', value: ({ deliveries }) => deliveries, align: 'right' },
          { title: 'last', value: ({ lastAtMs }) => distance(lastAtMs, nowMs) },
          { title: 'reason', value: ({ reason }) => reason },
          { title: 'begins', value: ({ excerpt }) => excerpt.slice(0, EXCERPT_CHARS) },
        ],
        rows,
        json: rows,
        empty: 'Every message was understood.',
      })
      return
    }
    const shard = object === undefined ? undefined : (await findShard(opened, name, object)).id
    const page = { pipeline: name, shard, isLive: true, after: { shard: '', at: -1 }, limit }
    const rows = (await ingest.tables.quarantine(page)).map(quarantineView)
    context.output.listing({
      columns: [
        { title: 'object', value: ({ uri }) => uri },
        { title: 'id', value: (row) => row.shard.slice(0, 12) },
        { title: 'record', value: ({ at }) => at, align: 'right' },
        { title: 'line', value: ({ line }) => line ?? '', align: 'right' },
        { title: 'reason', value: ({ reason }) => reason },
        { title: 'begins', value: ({ excerpt }) => excerpt.slice(0, EXCERPT_CHARS) },
      ],
      rows,
      json: rows,
      empty: 'No record is in quarantine.',
    })
  })
}

/** What was left where it is stays so until somebody asks: whatever the reason was, it may be mended by now. */
export async function dispose(
  context: CliContext,
  { name, object }: { name: string; object: string | undefined },
): Promise<void> {
  await withIngest(context, async (opened) => {
    const { ingest, engine } = opened
    const { config } = await ingest.pipelines.get(name)
    if (config.after.do === 'keep') {
      throw new UsageError(`The pipeline ${name} keeps its objects where they are.`, {
        code: 'after-keep',
        hint: `Say what becomes of them with: tidemark ingest add ${name} --update --after move --to PLACE`,
      })
    }
    await engine.streams.open(streamOf(name))
    const jobs =
      object === undefined
        ? await askAgain(ingest.kinds, name)
        : [disposeJob(ingest.kinds, name, await findShard(opened, name, object))]
    const what =
      jobs.length === 0 ? 'no object was left where it is' : `trying ${counted(jobs.length, 'object')} again`
    context.output.note(`${name}: ${what}`)
    await engine.write({ jobs })
    await runWork(context, openedSources(ingestApp, opened), [ingestSource(name)])
  })
}
