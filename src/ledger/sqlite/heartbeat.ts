/** The heartbeat of a process on SQLite; see heartbeat-loop.ts. */
import type { Clock } from '../../base/clock.ts'
import type { Heartbeat, HeartbeatOptions } from '../contract.ts'
import { inThread, onTimer } from '../heartbeat-loop.ts'
import type { SqliteDriver } from './driver.ts'

export async function startHeartbeat(
  driver: SqliteDriver,
  clock: Clock,
  options: HeartbeatOptions,
): Promise<Heartbeat> {
  // A database in memory has no other process to tell.
  if (driver.file === ':memory:') return onTimer(driver, clock, options)
  return inThread(new URL('./heartbeat-thread.ts', import.meta.url), { file: driver.file }, options)
}
