/** `tidemark mail reindex`: texts, headers and the search index, made anew from the raw bytes. */
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import type { Archive } from '../store/contract.ts'
import { withMailArchive } from './context.ts'
import { checkShards } from './verify.ts'

type ReindexFlags = { account?: string; shard?: string[] }

const TOLD_EVERY = 0.1

export async function reindexMail(context: CliContext, flags: ReindexFlags): Promise<void> {
  const { output } = context
  await withMailArchive(context, flags, async ({ archives }) => {
    const all: { account: string; messages: number; damaged: string[] }[] = []
    for (const { archive } of archives) {
      await checkShards(archive, flags.shard)
      all.push({ account: archive.account, ...(await reindexOne(context, archive, flags.shard)) })
    }
    if (output.json) output.value(all)
    else
      for (const { account, messages, damaged } of all) {
        output.line(`${account}: ${formatCount(messages)} ${plural(messages, 'message')} indexed anew`)
        if (damaged.length > 0)
          output.line(
            `  ${formatCount(damaged.length)} ${plural(damaged.length, 'message')} cannot be read. Run: tidemark mail verify --repair`,
          )
      }
    if (all.some(({ damaged }) => damaged.length > 0)) context.exitCode = exitCodes.failure
  })
}

async function reindexOne(
  { output }: CliContext,
  archive: Archive,
  shards: readonly string[] | undefined,
): Promise<{ messages: number; damaged: string[] }> {
  const stop = new AbortController()
  const onSignal = (): void =>
    stop.abort(
      new TidemarkError('The rebuilding was stopped.', {
        kind: 'transient',
        hint: 'The next run goes on where this one was: tidemark mail reindex',
      }),
    )
  process.once('SIGINT', onSignal)
  process.once('SIGTERM', onSignal)
  let told = { shard: '', share: 0 }
  const done = new Map<string, number>()
  const damaged: string[] = []
  try {
    for await (const event of archive.reindex({ ...(shards ? { shards } : {}), signal: stop.signal })) {
      const { shard, messages, total } = event
      done.set(shard, messages)
      damaged.push(...event.damaged)
      const share = total > 0 ? messages / total : 1
      if (shard === told.shard && share < told.share + TOLD_EVERY) continue
      told = { shard, share }
      output.note(
        `${archive.account}: ${shard}.db, ${formatCount(messages)} of ${formatCount(total)} messages`,
      )
    }
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
  return { messages: [...done.values()].reduce((sum, n) => sum + n, 0), damaged }
}
