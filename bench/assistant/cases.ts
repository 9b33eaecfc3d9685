/** The cases of the assistant's bench. Each has a cloud, a ledger and a process of its own. */
import type { Row } from '../bench.ts'
import { row } from '../session.ts'
import type { Latency, Pace } from './assisting.ts'
import type { Database, Session } from './session.ts'

export const LATENCY = 'latency'
export const BACKLOG = 'backlog'
export const USERS = 'users'

const MS_MAX = 60 * 60_000

export async function runLatency(session: Session, database: Database): Promise<Row[]> {
  const { mails } = session.sizes
  const { labelMs, draftMs } = await session.processes.order<Latency>(
    { do: 'latency', database, mails },
    { msMax: MS_MAX },
  )
  return Object.entries({ label: labelMs, draft: draftMs }).flatMap(([what, times]) =>
    [50, 95].map((share) =>
      row(`${LATENCY}: ${database}, to ${what}, p${share}`, 'tidemark', percentile(times, share), 'ms'),
    ),
  )
}

export async function runBacklog(session: Session, database: Database): Promise<Row[]> {
  const { backlog: mails, unitsPerMinute } = session.sizes
  const pace = await session.processes.order<Pace>(
    { do: 'backlog', database, mails, unitsPerMinute },
    { msMax: MS_MAX },
  )
  const name = `${BACKLOG}: ${database}`
  return [
    row(name, 'tidemark', perMinute(pace.mails, pace), 'mails/min'),
    row(`${name}, units`, 'tidemark', perMinute(pace.units, pace), 'units/min'),
    row(`${name}, units`, 'limit quota', unitsPerMinute, 'units/min'),
  ]
}

export async function runUsers(session: Session, database: Database): Promise<Row[]> {
  const { users, mailsEach } = session.sizes
  const pace = await session.processes.order<Pace>(
    { do: 'users', database, users, mailsEach },
    { msMax: MS_MAX },
  )
  const name = `${USERS}: ${database}, ${users}`
  return [
    row(name, 'tidemark', perMinute(pace.mails, pace), 'mails/min'),
    row(`${name}, by processor time`, 'tidemark', pace.cpuMs / pace.mails, 'ms of processor'),
  ]
}

function perMinute(n: number, { ms }: Pace): number {
  return (n * 60_000) / ms
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * share) / 100) - 1)] ?? Number.NaN
}
