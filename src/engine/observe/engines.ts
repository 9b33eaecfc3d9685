/** Which engines there are. A row in the ledger says that one registered; whether it lives is looked up. */

import { isDeadHere, processIdentity } from '../../base/process-identity.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { lastHeartbeatAt, type WorkerRow } from '../../ledger/workers.ts'

/**
 * - live: its lease runs
 * - silent: its lease ran out without a good-bye; its jobs are taken back by the next engine that looks
 * - dead: its process on this machine has ended
 */
export type Liveness = 'live' | 'silent' | 'dead'
export type ListedEngine = WorkerRow & { liveness: Liveness }

export async function listEngines(ledger: Ledger): Promise<ListedEngine[]> {
  const self = processIdentity()
  const now = ledger.now()
  return (await ledger.workers()).map((worker) => ({
    ...worker,
    liveness: isDeadHere(worker, self) ? 'dead' : worker.lease_until < now ? 'silent' : 'live',
  }))
}

/** `since`: when the last process that worked here was last seen; null while one works, or where none is known. */
export type Attendance = { isAttended: boolean; since: number | null }

/** Whether any process works on this ledger now: what waits there moves only then. */
export async function readAttendance(ledger: Ledger): Promise<Attendance> {
  const isAttended = liveCount(await listEngines(ledger)) > 0
  return { isAttended, since: isAttended ? null : await ledger.driver.read(lastHeartbeatAt) }
}

/** Takes back what the dead held, as an engine would when it starts. */
export function reclaimFromDead(ledger: Ledger): Promise<{ owners: number[]; jobs: number }> {
  const self = processIdentity()
  return ledger.reclaim((worker) => isDeadHere(worker, self))
}

export function liveCount(engines: readonly ListedEngine[]): number {
  return engines.filter(({ liveness }) => liveness === 'live').length
}

/** The name people know; the rest of a host's identity tells containers and boots apart. */
export function hostName(host: string): string {
  return host.split('/')[0] || host
}

/** `worker #3 (tidemark on anna, pid 4242)` */
export function workerText(worker: Pick<WorkerRow, 'id' | 'host' | 'pid' | 'name'>): string {
  return `worker #${worker.id} (${worker.name} on ${hostName(worker.host)}, pid ${worker.pid})`
}
