/** Messages a second with no quota in the way, beside a download that stores nothing and inserts that fetch nothing. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Row } from '../bench.ts'
import { formatValue } from '../table.ts'
import { Gmail } from './gmail.ts'
import { Home, UNBOUNDED } from './home.ts'
import type { Pace } from './limits.ts'
import type { Session } from './session.ts'

export const SPEED = 'unbounded: all messages'
export const SUBJECTS = ['limit download', 'limit insert', 'tidemark', 'tidemark, archive only'] as const
export type Subject = (typeof SUBJECTS)[number]

const MS_MAX = 900_000
const WARM_UP_IDS = 1_000

/** Subjects take turns; of each the best run counts. */
export async function runSpeed(session: Session, subjects: readonly Subject[]): Promise<Row[]> {
  const { processes, folder, sizes } = session
  const gmail = await Gmail.start(processes, { messages: sizes.speedMessages, unitsPerMinute: null })
  const best = new Map<Subject, number>()
  try {
    const ids = await gmail.ids()
    const listOf = (some: readonly string[]): string => {
      const file = join(folder, `ids-${some.length}`)
      writeFileSync(file, some.join('\n'))
      return file
    }
    const work: Record<Subject, (run: number) => Promise<Pace>> = {
      'limit download': () => download(session, gmail, listOf(ids)),
      'limit insert': (run) => insert(session, run),
      tidemark: () => sync(session, gmail, UNBOUNDED),
      'tidemark, archive only': () => sync(session, gmail, { ...UNBOUNDED, TIDEMARK_MAIL_INDEX: 'off' }),
    }
    // The simulator's code is compiled while it runs: nobody shall be the first to wait for that.
    await download(session, gmail, listOf(ids.slice(0, WARM_UP_IDS)))
    for (let run = 1; run <= sizes.speedRuns; run++) {
      for (const subject of subjects) {
        const { messages, ms, bytes } = await work[subject](run)
        const perS = (messages * 1000) / ms
        best.set(subject, Math.max(best.get(subject) ?? 0, perS))
        session.say(
          `${SPEED} · ${subject} · ${formatValue(perS)} messages/s${bytes > 0 ? ` of ${formatValue(bytes / messages)} bytes` : ''}`,
        )
      }
    }
  } finally {
    await gmail.stop()
  }
  return [...best].map(([subject, value]) => ({
    case: SPEED,
    subject,
    value: Math.round(value),
    unit: 'messages/s',
  }))
}

async function download({ processes }: Session, gmail: Gmail, ids: string): Promise<Pace> {
  const { baseUrl, accounts } = gmail.at
  const { accessToken } = accounts[0]!
  await gmail.resetCounters()
  const pace = await processes.order<Pace>({ do: 'download', baseUrl, accessToken, ids }, { msMax: MS_MAX })
  // The loop reads nothing of what it gets: the simulator knows whether it was messages.
  const given = (await gmail.counters()).parts['messages.get']?.[200]
  if (given !== pace.messages) throw new Error(`${given} of ${pace.messages} messages were given`)
  return pace
}

async function insert({ processes, folder, sizes }: Session, run: number): Promise<Pace> {
  const file = join(folder, `insert-${run}.db`)
  try {
    return await processes.order<Pace>(
      { do: 'insert', file, messages: sizes.speedMessages },
      { msMax: MS_MAX },
    )
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
  }
}

async function sync(
  { processes, folder, sizes }: Session,
  gmail: Gmail,
  settings: Record<string, string>,
): Promise<Pace> {
  const home = await Home.create({ folder, processes, gmail, settings })
  try {
    await home.synced(MS_MAX)
    const { ms, stored } = home.timing()
    if (stored !== sizes.speedMessages) throw new Error(`${stored} messages were stored`)
    return { messages: stored, ms, bytes: 0 }
  } finally {
    home.remove()
  }
}
