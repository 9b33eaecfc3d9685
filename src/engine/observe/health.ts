/** A look around for the alert rules: what can be measured cheaply, every half minute. */
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { COUNTER_MS } from '../../ledger/changes.ts'
import { SIGN_IN } from '../../ledger/control.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Limits } from '../limits/limits.ts'
import type { Streams } from '../streams.ts'
import type { AlertInputs } from './alert-rules.ts'
import type { EngineStats } from './stats.ts'

const HOUR_MINUTES = 60

export type HealthSources = {
  ledger: Ledger
  streams: Streams
  limits: Limits
  stats: EngineStats
  ledgerState: { downSince: number | null; detail: string }
}

export async function healthInputs({
  ledger,
  streams,
  limits,
  stats,
  ledgerState,
}: HealthSources): Promise<AlertInputs> {
  const now = ledger.now()
  const { throttles } = stats.snapshot()
  const pauses = await ledger.pauses()
  const workers = await ledger.workers()
  return {
    now,
    bad: await badByStream(ledger, streams, now),
    budgets: limits
      .snapshot()
      .budgets.map(({ name }) => ({ name, throttledMs: throttles[name]?.throttledMs ?? 0 })),
    workers: workers.map((w) => ({ id: w.id, name: w.name, host: w.host, heartbeatAt: w.heartbeat_at })),
    unbalanced: await ledger.unbalanced(),
    signIns: pauses
      .filter((pause) => pause.scope === 'stream' && pause.code === SIGN_IN)
      .map((pause) => ({ stream: pause.target, reason: pause.reason })),
    ledger: ledgerState,
    disks: await disks(ledger),
  }
}

async function badByStream(
  ledger: Ledger,
  streams: Streams,
  now: number,
): Promise<NonNullable<AlertInputs['bad']>> {
  const counters = await ledger.countersByStream(Math.floor(now / COUNTER_MS) - HOUR_MINUTES)
  const found = new Map<
    number,
    { target: string; recentItems: number; recentBad: number; badLastHour: number }
  >()
  for (const { streamId, name, n } of counters) {
    const target = streams.name(streamId) ?? ''
    const entry = found.get(streamId) ?? { target, recentItems: 0, recentBad: 0, badLastHour: 0 }
    if (name === 'processed') entry.recentItems += n
    if (name === 'bad') {
      entry.recentItems += n
      entry.recentBad += n
      entry.badLastHour += n
    }
    found.set(streamId, entry)
  }
  return [...found.values()]
}

async function disks(ledger: Ledger): Promise<NonNullable<AlertInputs['disks']>> {
  const { file } = ledger.driver
  if (file === null || file === ':memory:') return []
  const folder = dirname(file)
  const stats = await statfs(folder)
  return [{ path: folder, freeBytes: stats.bavail * stats.bsize }]
}
