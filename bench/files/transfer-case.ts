/** Files up and down, each beside a bare loop that makes the same calls as many at a time. */
import type { Row } from '../bench.ts'
import { row } from '../session.ts'
import { formatValue } from '../table.ts'
import type { LimitOrder } from './limits.ts'
import type { Session, World } from './session.ts'
import { fileCount, type Huge, type Tree } from './tree.ts'

export const TRANSFERS = ['small up', 'small down', 'far up', 'far down', 'huge up', 'huge down'] as const
export type TransferName = (typeof TRANSFERS)[number]

type Paced = { ms: number; cpuMs: number; peakMb?: number }

/** The subjects take turns, each on a simulator and a folder of its own; of each the better of two runs counts. */
const RUNS: Record<TransferName, number> = {
  'small up': 2,
  'small down': 2,
  'far up': 1,
  'far down': 1,
  'huge up': 1,
  'huge down': 1,
}

export async function runTransfer(session: Session, name: TransferName): Promise<Row[]> {
  const best = new Map<string, Paced>()
  for (let run = 0; run < RUNS[name]; run++) {
    for (const subject of ['limit', 'tidemark'] as const) {
      const paced = await once(session, name, subject)
      const known = best.get(subject)
      if (!known || paced.ms < known.ms) best.set(subject, paced)
      session.say(`${titleOf(session, name)} · ${subject} · ${formatValue(paced.ms / 1_000)} s`)
    }
  }
  return [...best].flatMap(([subject, paced]) => transferRows(session, name, { subject, ...paced }))
}

async function once(session: Session, name: TransferName, subject: 'limit' | 'tidemark'): Promise<Paced> {
  const content = transferContent(session, name)
  const isUp = name.endsWith('up')
  const latencyMs = name.startsWith('far') ? session.sizes.far.latencyMs : 0
  return await session.world(
    { ...(isUp ? {} : content), latencyMs },
    async (world: World): Promise<Paced> => {
      await world.setUp(isUp ? content : {})
      if (subject === 'limit') return await world.limit({ loop: LOOPS[name], ...content })
      const { steps, peakMb } = await world.sync([{ kind: 'sync' }])
      return { ...steps[0]!, peakMb }
    },
  )
}

const LOOPS: Record<TransferName, LimitOrder['loop']> = {
  'small up': 'up',
  'small down': 'down',
  'far up': 'up',
  'far down': 'down',
  'huge up': 'huge-up',
  'huge down': 'huge-down',
}

function transferContent(
  { sizes }: Pick<Session, 'sizes'>,
  name: TransferName,
): { tree?: Tree; huge?: Huge } {
  if (name.startsWith('huge')) return { huge: sizes.huge }
  return { tree: name.startsWith('far') ? sizes.far.tree : sizes.small }
}

export function titleOf({ sizes }: Pick<Session, 'sizes'>, name: TransferName): string {
  const way = name.endsWith('up') ? 'up' : 'down'
  const { files, bytes } = sizes.huge
  if (name.startsWith('huge')) return `${files} files of ${formatValue(bytes / 2 ** 20)} MiB ${way}`
  const { tree, latencyMs } = sizes.far
  if (name.startsWith('far'))
    return `${formatValue(fileCount(tree))} small files ${way}, ${latencyMs} ms a call`
  return `${formatValue(fileCount(sizes.small))} small files ${way}`
}

function transferRows(
  session: Session,
  name: TransferName,
  { subject, ms, cpuMs, peakMb }: Paced & { subject: string },
): Row[] {
  const title = titleOf(session, name)
  const { tree, huge } = transferContent(session, name)
  const pace = tree
    ? row(title, subject, (fileCount(tree) * 1_000) / ms, 'files/s')
    : row(title, subject, (huge!.files * huge!.bytes) / 1_000 / ms, 'MB/s')
  const rows = [pace, row(`${title}, processor`, subject, cpuMs / 1_000, 's')]
  if (peakMb !== undefined) rows.push(row(`${title}, resident at most`, subject, peakMb, 'MB'))
  return rows
}
