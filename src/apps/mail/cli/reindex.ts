/** `tidemark mail reindex`: texts, headers and the search index, made anew from the raw bytes. */
import { stoppable } from '../../../app/cli/sync.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { formatCount } from '../../../base/format.ts'
import { counted } from '../../../base/wording.ts'
import type { Archive } from '../store/contract.ts'
import { withMailArchive } from './context.ts'
import { checkShards } from './verify.ts'

type ReindexFlags = { account?: string; shard?: string[] }

export async function reindexMail(context: CliContext, flags: ReindexFlags): Promise<void> {
  const { output } = context
  await withMailArchive(context, flags, async ({ archives }) => {
    const all: { account: string; messages: number; damaged: string[] }[] = []
    for (const { archive } of archives) {
      await checkShards(archive, flags.shard)
      const done = await stoppable(
        context,
        (stop) => reindexOne(context, archive, { shards: flags.shard, stop }),
        { reason: 'The rebuilding was stopped.' },
      )
      all.push({ account: archive.account, ...done })
    }
    if (output.json) output.value(all)
    else
      for (const { account, messages, damaged } of all) {
        output.line(`${account}: ${counted(messages, 'message')} indexed anew`)
        if (damaged.length > 0)
          output.line(
            `  ${counted(damaged.length, 'message')} cannot be read. Run: tidemark mail verify --repair`,
          )
      }
    if (all.some(({ damaged }) => damaged.length > 0)) context.exitCode = exitCodes.failure
  })
}

async function reindexOne(
  { output }: CliContext,
  archive: Archive,
  { shards, stop }: { shards: readonly string[] | undefined; stop: AbortSignal },
): Promise<{ messages: number; damaged: string[] }> {
  const note = output.pacedNotes()
  const done = new Map<string, number>()
  const damaged: string[] = []
  for await (const event of archive.reindex({ ...(shards ? { shards } : {}), signal: stop })) {
    const { shard, messages, total } = event
    done.set(shard, messages)
    damaged.push(...event.damaged)
    note(`${archive.account}: ${shard}.db, ${formatCount(messages)} of ${formatCount(total)} messages`)
  }
  return { messages: [...done.values()].reduce((sum, n) => sum + n, 0), damaged }
}
