/** An engine as `--json` prints it. */

import { isoTime } from '../../base/moment.ts'
import type { ListedEngine } from '../../engine/observe/engines.ts'

export function engineJson(engine: ListedEngine) {
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
