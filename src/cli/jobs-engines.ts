/** An engine as `--json` prints it. */
import type { SeenEngine } from '../engine/sightings.ts'
import { isoTime } from '../moment.ts'

export function engineJson(engine: SeenEngine) {
  return {
    id: engine.id,
    name: engine.name,
    host: engine.host,
    pid: engine.pid,
    state: engine.liveness,
    startedAt: isoTime(engine.started_at),
    heartbeatAt: isoTime(engine.heartbeat_at),
    leaseUntil: isoTime(engine.lease_until),
  }
}
