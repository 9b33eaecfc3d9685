/** `tidemark mail stats`: what the archives hold, by year, sender, label or size. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { idOption } from '../../../cli/output/input.ts'
import type { OpenedArchive, Unsearched } from '../merged-search.ts'
import type { StatsBy, StatsRow } from '../store/contract.ts'

type StatsFlags = { account?: string; by: StatsBy; limit: number }

const BY: readonly StatsBy[] = ['year', 'sender', 'label', 'size']
/** More than any archive has: sums over several accounts are cut only after they are made. */
const ROWS_MAX = 1_000_000

const HELP = `
Years are those of UTC, sizes those of the mail as it came. A mail with several labels counts for each of them.
With --json: by, rows [{key, messages, bytes}], unsearched [{account, shard, reason}]; the key '' stands for none.
Ends with 0, or with 1 where a part of an archive could not be read.`

export function registerMailStats(mail: Command, context: CliContext): void {
  mail
    .command('stats')
    .description('show what the archives hold, by year, sender, label or size')
    .addOption(new Option('--by <what>', 'how to sort it').choices(BY).default('year'))
    .option('--account <address>', 'only the archive of this account')
    .addOption(idOption('--limit <number>', 'how many rows to show').default(50))
    .addHelpText('after', HELP)
    .action((flags: StatsFlags) => showStats(context, flags))
}

async function showStats(context: CliContext, flags: StatsFlags): Promise<void> {
  const { withMailArchive } = await import('./context.ts')
  await withMailArchive(context, { account: flags.account }, async ({ archives }) => {
    const { rows, unsearched } = await gather(archives, flags.by)
    await print(context, flags, rows)
    const { noteUnsearched } = await import('./search-run.ts')
    if (context.output.json)
      context.output.value({ by: flags.by, rows: rows.slice(0, flags.limit), unsearched })
    noteUnsearched(context, unsearched)
  })
}

async function gather(
  archives: readonly OpenedArchive[],
  by: StatsBy,
): Promise<{ rows: StatsRow[]; unsearched: Unsearched[] }> {
  const totals = new Map<string, StatsRow>()
  const unsearched: Unsearched[] = []
  for (const { name, archive, labelNames } of archives) {
    const stats = await archive.stats(by, ROWS_MAX)
    unsearched.push(...stats.unsearched.map((one) => ({ account: name, ...one })))
    for (const { key: id, messages, bytes } of stats.rows) {
      // Two accounts have the same label by its name: its id is another one in each.
      const key = by === 'label' ? (labelNames.get(id) ?? id) : id
      const known = totals.get(key)
      totals.set(key, {
        key,
        messages: messages + (known?.messages ?? 0),
        bytes: bytes + (known?.bytes ?? 0),
      })
    }
  }
  const { statsOrder } = await import('../store/stats.ts')
  const rows = [...totals.values()].sort(statsOrder(by))
  return { rows, unsearched }
}

async function print({ output }: CliContext, flags: StatsFlags, rows: readonly StatsRow[]): Promise<void> {
  if (output.json) return
  const { formatBytes, formatCount } = await import('../../../base/format.ts')
  output.listing<StatsRow>({
    columns: [
      { title: flags.by, value: ({ key }) => (key === '' ? '(none)' : key) },
      { title: 'messages', value: ({ messages }) => formatCount(messages), align: 'right' },
      { title: 'size', value: ({ bytes }) => formatBytes(bytes), align: 'right' },
    ],
    rows: rows.slice(0, flags.limit),
    empty: 'The archive is empty.',
  })
  if (rows.length > flags.limit) output.note(`${formatCount(rows.length - flags.limit)} more; see --limit.`)
}
