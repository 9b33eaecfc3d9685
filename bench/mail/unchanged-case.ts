/** What a sync costs when nothing has changed: calls, as the simulator counts them. */
import type { Row } from '../bench.ts'
import { type Counters, Gmail } from './gmail.ts'
import { Home, UNBOUNDED } from './home.ts'
import type { Session } from './session.ts'

export const UNCHANGED = 'unchanged mailbox: API calls of a sync'

const SYNC_MS_MAX = 300_000

export async function runUnchanged(session: Session): Promise<Row[]> {
  const { processes, folder, sizes } = session
  const gmail = await Gmail.start(processes, { messages: sizes.unchangedMessages, unitsPerMinute: null })
  try {
    const home = await Home.create({ folder, processes, gmail, settings: UNBOUNDED })
    await home.synced(SYNC_MS_MAX)
    await gmail.resetCounters()
    await home.synced(SYNC_MS_MAX)
    const calls = apiCalls(await gmail.counters())
    home.remove()
    return [{ case: UNCHANGED, subject: 'tidemark', value: calls, unit: 'calls' }]
  } finally {
    await gmail.stop()
  }
}

/** Requests to the API; a new token and our own questions to the simulator are none. */
export function apiCalls({ requests }: Pick<Counters, 'requests'>): number {
  let calls = 0
  for (const [name, statuses] of Object.entries(requests)) {
    if (name.startsWith('oauth') || name === 'control') continue
    for (const count of Object.values(statuses)) calls += count
  }
  return calls
}
