/**
 * How much of the units that a user has is used, and how often the service has to say no. The simulator counts both;
 * the worlds of this case sleep most of the time and run side by side.
 */
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Row } from '../bench.ts'
import { ADDRESS, type Counters, Gmail } from './gmail.ts'
import { Home } from './home.ts'
import type { QuotaWorld, Session } from './session.ts'

export type QuotaSpan = { units: number; minutes: number; answers: number; throttled: number }

const START_MS_MAX = 60_000
const LOOK_MS = 100
const SYNC_MS_MAX = 1_800_000

/** The rows of all worlds that are wanted. */
export async function runQuota(session: Session, worlds: readonly QuotaWorld[]): Promise<Row[]> {
  const rows = await Promise.all(
    worlds.map((world) =>
      runWorld(session, world).catch((error: unknown) => {
        session.failed(`quota: ${world.name}`, error)
        return []
      }),
    ),
  )
  return rows.flat()
}

async function runWorld(session: Session, world: QuotaWorld): Promise<Row[]> {
  const { processes, folder, sizes } = session
  const { unitsPerMinute, otherShare } = world
  const gmail = await Gmail.start(processes, { messages: world.messages, unitsPerMinute })
  const home = await Home.create({
    folder,
    processes,
    gmail,
    settings: { TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(unitsPerMinute) },
  })
  const running = home.sync(SYNC_MS_MAX)
  try {
    await firstUnits(gmail)
    await sleep(systemClock, sizes.quotaWarmUpMs)
    const spans: QuotaSpan[] = []
    for (const share of otherShare > 0 ? [0, otherShare] : [0]) {
      if (share > 0) await gmail.setQuota({ otherShare: share })
      const ms = otherShare > 0 ? sizes.quotaMs / 2 : sizes.quotaMs
      const before = await look(gmail)
      await sleep(systemClock, ms)
      if (running.isOver) throw new Error(`the sync ended early: ${(await running.ended).stderr.slice(-500)}`)
      spans.push(spanOf(before, await look(gmail)))
    }
    await running.stop()
    return quotaRows(world, spans)
  } finally {
    await running.stop()
    await gmail.stop()
    home.remove()
  }
}

/** Measuring begins with the first call, not with the start of the process. */
async function firstUnits(gmail: Gmail): Promise<void> {
  const untilMs = systemClock.monotonicMs() + START_MS_MAX
  while (systemClock.monotonicMs() < untilMs) {
    if (((await gmail.counters()).quota[ADDRESS]?.unitsUsed ?? 0) > 0) return
    await sleep(systemClock, LOOK_MS)
  }
  throw new Error('the sync called nothing for a minute')
}

type Look = { atMs: number; counters: Counters }

async function look(gmail: Gmail): Promise<Look> {
  return { counters: await gmail.counters(), atMs: systemClock.monotonicMs() }
}

export function spanOf(before: Look, after: Look): QuotaSpan {
  const [from, to] = [before.counters.quota[ADDRESS], after.counters.quota[ADDRESS]]
  const calls = (to?.calls ?? 0) - (from?.calls ?? 0)
  const throttled = (to?.callsRefused ?? 0) - (from?.callsRefused ?? 0)
  return {
    units: (to?.unitsUsed ?? 0) - (from?.unitsUsed ?? 0),
    minutes: (after.atMs - before.atMs) / 60_000,
    answers: calls + throttled,
    throttled,
  }
}

/** In percent: what was used of what there was for us, span by span, and what was refused of all. */
export function quotaRows(world: QuotaWorld, spans: readonly QuotaSpan[]): Row[] {
  const name = `quota: ${world.name}`
  const used = spans.map(({ units, minutes }, index) => {
    const share = index === 0 ? 1 : 1 - world.otherShare
    return (100 * units) / (world.unitsPerMinute * share * minutes)
  })
  const titles = spans.length > 1 ? ['used before', 'used while the other eats'] : ['used']
  const answers = spans.reduce((sum, span) => sum + span.answers, 0)
  const throttled = spans.reduce((sum, span) => sum + span.throttled, 0)
  return [
    ...used.map((value, index) => row(`${name}, ${titles[index]}`, value)),
    row(`${name}, throttled`, answers === 0 ? 0 : (100 * throttled) / answers),
  ]
}

function row(name: string, value: number): Row {
  return { case: name, subject: 'tidemark', value: Math.round(value * 100) / 100, unit: '%' }
}
