/** What a sync needs in memory for few and for many messages, and how fast the larger archive is searched. */
import { join } from 'node:path'
import { folderName } from '../../src/apps/mail/account.ts'
import type { Row } from '../bench.ts'
import { percentile } from '../engine/measure.ts'
import { formatValue } from '../table.ts'
import { ADDRESS, Gmail } from './gmail.ts'
import { Home, UNBOUNDED } from './home.ts'
import type { Searched } from './search.ts'
import type { Session } from './session.ts'

export const MEMORY = 'memory: peak of a sync'
export const SEARCH = 'search'

const SYNC_MS_MAX = 1_800_000
const SEARCH_MS_MAX = 600_000
const SLOWEST = 5

export type Wanted = { memory: boolean; search: boolean }

export async function runArchives(session: Session, wanted: Wanted): Promise<Row[]> {
  const [few, many] = session.sizes.memoryMessages
  const rows: Row[] = []
  for (const messages of wanted.memory ? [few, many] : [many]) {
    const gmail = await Gmail.start(session.processes, { messages, unitsPerMinute: null, profile: 'plain' })
    try {
      const home = await Home.create({
        folder: session.folder,
        processes: session.processes,
        gmail,
        settings: UNBOUNDED,
      })
      const { peakMb } = await home.synced(SYNC_MS_MAX)
      const { stored, ms } = home.timing()
      if (stored !== messages) throw new Error(`${stored} of ${messages} messages were stored`)
      session.say(`${MEMORY} · ${stored} messages in ${formatValue(ms / 1000)} s · ${formatValue(peakMb)} MB`)
      if (wanted.memory) rows.push(memoryRow(messages, peakMb))
      if (wanted.search && messages === many) {
        // The simulator would only be in the way.
        await gmail.stop()
        const searched = await search(session, home)
        rows.push(...searchRows(messages, searched))
        session.notes.push(slowest(searched))
      }
      home.remove()
    } finally {
      await gmail.stop()
    }
  }
  return rows
}

async function search({ processes, sizes }: Session, home: Home): Promise<Searched[]> {
  return await processes.order<Searched[]>(
    {
      do: 'search',
      folder: join(home.folder, 'mail', folderName(ADDRESS)),
      archiveId: home.archiveId(),
      labels: home.labels(),
      rounds: sizes.searchRounds,
    },
    { msMax: SEARCH_MS_MAX },
  )
}

function memoryRow(messages: number, peakMb: number): Row {
  const name = `${MEMORY} of ${messages.toLocaleString('en-US')} messages`
  return { case: name, subject: 'tidemark', value: Math.round(peakMb), unit: 'MB' }
}

export function searchRows(messages: number, searched: readonly Searched[]): Row[] {
  const ms = searched.flatMap((one) => one.ms)
  const name = `${SEARCH}: ${searched.length} queries on ${messages.toLocaleString('en-US')} messages`
  return [0.5, 0.95, 1].map((share) => ({
    case: `${name}, ${share === 1 ? 'slowest' : `p${share * 100}`}`,
    subject: 'tidemark',
    value: Math.round(percentile(ms, share) * 100) / 100,
    unit: 'ms',
  }))
}

/** The slowest queries by their median. */
export function slowest(searched: readonly Searched[]): string {
  const named = searched
    .map(({ text, ms, hits }) => ({ text, hits, ms: percentile(ms, 0.5) }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, SLOWEST)
    .map(({ text, ms, hits }) => `\`${text}\` ${formatValue(ms)} ms (${hits} hits on the page)`)
  return `slowest queries by their median: ${named.join(', ')}`
}
