/** The heartbeat of a process on PostgreSQL; see heartbeat-loop.ts. It also keeps our idea of the server's clock right. */
import { type Clock, systemClock } from '../../base/clock.ts'
import type { Heartbeat, HeartbeatOptions } from '../contract.ts'
import { inThread, onTimer } from '../heartbeat-loop.ts'
import type { PostgresDriver } from './driver.ts'

export async function startHeartbeat(
  driver: PostgresDriver,
  clock: Clock,
  options: HeartbeatOptions & { onOffset: (offsetMs: number) => void },
): Promise<Heartbeat> {
  if (clock !== systemClock) return onTimer(driver, clock, options)
  return inThread(new URL('./heartbeat-thread.ts', import.meta.url), { target: driver.target }, options)
}
