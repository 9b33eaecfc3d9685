/** The cases of the assistant's bench. Each has a cloud, a ledger and a process of its own. */
import type { Row } from '../bench.ts'
import { row } from '../session.ts'
import type { Latency, Pace } from './assisting.ts'
import type { Database, Session } from './session.ts'

export const LATENCY = 'latency'
export const BACKLOG = 'backlog'
export const USERS = 'users'
/** Processes on one PostgreSQL. */
export const WORKERS = 3

/** A process that is not done by then is ended. */
const LATENCY_MS_MAX = 40_000
/** For what comes before a measurement and after it. */
const AROUND_MS = 120_000

export async function runLatency(session: Session, database: Database): Promise<Row[]> {
  const { mails } = session.sizes
  const { labelMs, draftMs } = await session.processes.order<Latency>(
    { do: 'latency', database, mails },
    { msMax: LATENCY_MS_MAX },
  )
  return Object.entries({ label: labelMs, draft: draftMs }).flatMap(([what, times]) =>
    [50, 95].map((share) =>
      row(`${LATENCY}: ${database}, to ${what}, p${share}`, 'tidemark', percentile(times, share), 'ms'),
    ),
  )
}

export async function runBacklog(session: Session, database: Database): Promise<Row[]> {
  const { backlog, backlogMs } = session.sizes
  const [mails, forMs] = [backlog[database], backlogMs[database]]
  const unitsPerMinute = session.sizes.unitsPerMinute[database]
  const pace = await session.processes.order<Pace>(
    { do: 'backlog', database, mails, unitsPerMinute, forMs },
    { msMax: forMs + AROUND_MS },
  )
  const name = `${BACKLOG}: ${database}`
  if (pace.mails < mails) {
    session.notes.push(
      `${name}: ${pace.mails} of ${mails} mails were done in the ${forMs / 1_000} s that it has`,
    )
  }
  return [
    row(name, 'tidemark', perMinute(pace.mails, pace), 'mails/min'),
    row(`${name}, units`, 'tidemark', perMinute(pace.units, pace), 'units/min'),
    row(`${name}, units`, 'limit quota', unitsPerMinute, 'units/min'),
    row(`${name}, by processor time`, 'tidemark', pace.cpuMs / pace.mails, 'ms of processor'),
  ]
}

export async function runUsers(
  session: Session,
  { database, workers }: { database: Database; workers: number },
): Promise<Row[]> {
  const { users, mailsEach, usersMs: forMs } = session.sizes
  const pace = await session.processes.order<Pace>(
    { do: 'users', database, users, mailsEach, workers, forMs },
    { msMax: forMs + AROUND_MS },
  )
  const name = usersName({ database, workers, users })
  if (pace.mails < users * mailsEach) {
    session.notes.push(`${name}: ${pace.mails} of ${users * mailsEach} mails were done in ${forMs / 1_000} s`)
  }
  const rate = row(name, 'tidemark', perMinute(pace.mails, pace), 'mails/min')
  if (workers > 1) return [rate]
  const each = pace.cpuMs / pace.mails
  return [rate, row(`${name}, by processor time`, 'tidemark', each, 'ms of processor')]
}

function usersName({
  database,
  workers,
  users,
}: {
  database: Database
  workers: number
  users: number
}): string {
  return `${USERS}: ${database}, ${users}${workers === 1 ? '' : `, ${workers} processes`}`
}

function perMinute(n: number, { ms }: Pace): number {
  return (n * 60_000) / ms
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * share) / 100) - 1)] ?? Number.NaN
}
