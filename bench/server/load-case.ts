/**
 * A sync through `tidemark serve`, without and with clients. Phases take turns within one sync of one process, so that
 * what else happens on the machine, and how far the sync is, weigh on both alike.
 */
import { once } from 'node:events'
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Row } from '../bench.ts'
import { ADDRESS, Gmail } from '../mail/gmail.ts'
import { Home, UNBOUNDED } from '../mail/home.ts'
import { cpuSeconds, percentile } from '../session.ts'
import { formatValue } from '../table.ts'
import type { ClientReport } from './clients.ts'
import type { Served, Session } from './session.ts'

export type LoadWorld = {
  name: string
  unitsPerMinute: number | null
  messages: number
  phaseMs: number
  settleMs: number
  settings: Record<string, string>
}

type Phase = { perS: number; cpu: number; report?: ClientReport }

const CLIENTS_MS_MAX = 600_000
const UNITS_PER_MINUTE = 15_000
const LISTED_MS_MAX = 60_000

export function loadWorlds({ sizes }: Pick<Session, 'sizes'>): LoadWorld[] {
  return [
    {
      name: 'load: quota of 15,000 units/min',
      unitsPerMinute: UNITS_PER_MINUTE,
      messages: sizes.quotaMessages,
      phaseMs: sizes.quotaPhaseMs,
      settleMs: 3_000,
      settings: { TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(UNITS_PER_MINUTE) },
    },
    {
      name: 'load: unbounded',
      unitsPerMinute: null,
      messages: sizes.unboundedMessages,
      phaseMs: sizes.unboundedPhaseMs,
      settleMs: 1_000,
      settings: UNBOUNDED,
    },
  ]
}

export async function runLoad(session: Session, world: LoadWorld): Promise<Row[]> {
  const { processes, folder, sizes } = session
  const { messages, unitsPerMinute } = world
  const gmail = await Gmail.start(processes, { messages, unitsPerMinute })
  const home = await Home.create({ folder, processes, gmail, settings: world.settings })
  const served = await session.serve(home.env)
  const order = {
    do: 'clients',
    url: served.url,
    account: ADDRESS,
    pages: sizes.pages,
    readsPerS: sizes.readsPerS,
  }
  const clients = (await processes.serve(order, { msMax: CLIENTS_MS_MAX })).running
  const alone: Phase[] = []
  const loaded: Phase[] = []
  try {
    await untilFetching(gmail)
    await sleep(systemClock, world.settleMs)
    for (let pair = 0; pair < sizes.phasePairs; pair++) {
      alone.push(await measure(world, { gmail, served }))
      clients.child.send('start')
      await sleep(systemClock, world.settleMs)
      clients.child.send('begin')
      const phase = await measure(world, { gmail, served })
      clients.child.send('stop')
      const [answer] = (await once(clients.child, 'message')) as [{ value: ClientReport }]
      loaded.push({ ...phase, report: answer.value })
      session.say(
        `${world.name}: ${formatValue(alone.at(-1)!.perS)} messages/s alone, ${formatValue(phase.perS)} with clients`,
      )
      await sleep(systemClock, world.settleMs / 2)
    }
  } finally {
    await clients.stop()
    await served.running.stop()
    await gmail.stop()
    home.remove()
  }
  return loadRows(world.name, alone, loaded)
}

async function fetched(gmail: Gmail): Promise<number> {
  return (await gmail.counters()).parts['messages.get']?.[200] ?? 0
}

async function untilFetching(gmail: Gmail): Promise<void> {
  const untilMs = systemClock.monotonicMs() + LISTED_MS_MAX
  while ((await fetched(gmail)) === 0) {
    if (systemClock.monotonicMs() > untilMs) throw new Error('the sync did not begin')
    await sleep(systemClock, 100)
  }
}

async function measure(
  { phaseMs, messages }: LoadWorld,
  { gmail, served }: { gmail: Gmail; served: Served },
): Promise<Phase> {
  const before = { n: await fetched(gmail), cpu: cpuSeconds(served.pid), atMs: systemClock.monotonicMs() }
  await sleep(systemClock, phaseMs)
  const n = await fetched(gmail)
  const seconds = (systemClock.monotonicMs() - before.atMs) / 1_000
  if (n >= messages)
    throw new Error(`all ${messages} messages were fetched before the end of the measurement`)
  return { perS: (n - before.n) / seconds, cpu: ((cpuSeconds(served.pid) - before.cpu) / seconds) * 100 }
}

/** The sum of all phases of a kind, since single ones vary. */
export function loadRows(name: string, alone: readonly Phase[], loaded: readonly Phase[]): Row[] {
  const mean = (phases: readonly Phase[], of: (phase: Phase) => number): number =>
    phases.reduce((sum, phase) => sum + of(phase), 0) / Math.max(1, phases.length)
  const row = (what: string, value: number, unit: string): Row => ({
    case: `${name}, ${what}`,
    subject: 'tidemark',
    value,
    unit,
  })
  const reports = loaded.flatMap(({ report }) => report ?? [])
  const reads = reports.flatMap((report) => Object.values(report.reads).flat()).sort((a, b) => a - b)
  const errors = reports.flatMap((report) => report.errors)
  if (errors.length > 0) process.stderr.write(`${[...new Set(errors)].slice(0, 10).join('\n')}\n`)
  const byKind = Object.keys(reports[0]?.reads ?? {}).map((kind) => {
    const all = reports.flatMap((report) => report.reads[kind] ?? []).sort((a, b) => a - b)
    return row(`read of ${kind} p99`, percentile(all, 0.99), 'ms')
  })
  return [
    row(
      'without clients',
      mean(alone, ({ perS }) => perS),
      'messages/s',
    ),
    row(
      'with clients',
      mean(loaded, ({ perS }) => perS),
      'messages/s',
    ),
    row('share kept', mean(loaded, ({ perS }) => perS) / mean(alone, ({ perS }) => perS), '×'),
    row('errors', errors.length, 'requests'),
    row('reads', reads.length, 'requests'),
    row(
      'requests of pages',
      reports.reduce((sum, { pageRequests }) => sum + pageRequests, 0),
      'requests',
    ),
    row(
      'events',
      reports.reduce((sum, { events }) => sum + events, 0),
      'events',
    ),
    row('read p50', percentile(reads, 0.5), 'ms'),
    row('read p99', percentile(reads, 0.99), 'ms'),
    ...byKind,
    row(
      'processor of the server without clients',
      mean(alone, ({ cpu }) => cpu),
      '%',
    ),
    row(
      'processor of the server with clients',
      mean(loaded, ({ cpu }) => cpu),
      '%',
    ),
  ]
}
