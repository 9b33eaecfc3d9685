/** `tidemark mail stats`: what the archives hold, by year, sender, label or size. */
import type { CliContext } from '../../../app/command.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import type { OpenedArchive, Unsearched } from '../merged-search.ts'
import type { StatsBy, StatsRow } from '../store/contract.ts'
import { statsOrder } from '../store/stats.ts'
import { withMailArchive } from './context.ts'
import { noteUnsearched } from './search.ts'

type StatsFlags = { account?: string; by: StatsBy; limit: number }

/** More than any archive has: sums over several accounts are cut only after they are made. */
const ROWS_MAX = 1_000_000

export async function showStats(context: CliContext, flags: StatsFlags): Promise<void> {
  await withMailArchive(context, { account: flags.account, onlyReads: true }, async ({ archives }) => {
    const { rows, unsearched } = await gather(archives, flags.by)
    print(context, flags, rows)
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
  const rows = [...totals.values()].sort(statsOrder(by))
  return { rows, unsearched }
}

function print({ output }: CliContext, flags: StatsFlags, rows: readonly StatsRow[]): void {
  if (output.json) return
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
