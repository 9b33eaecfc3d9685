/** Runs in a thread: extends the lease of one owner until told to stop. See heartbeat-loop.ts. */
import { workerData } from 'node:worker_threads'
import { sleep, systemClock } from '../../base/clock.ts'
import type { Tx, Value } from '../contract.ts'
import { beatForever, type ThreadData, tellMain } from '../heartbeat-loop.ts'
import { measureOffset } from '../server-clock.ts'
import { extendLease } from '../workers.ts'
import { Connection, REFUSED_PAUSE_MS, serverMs, type Target } from './connection.ts'
import { classify } from './errors.ts'

const data = workerData as ThreadData & { target: Target }
/** Hanging on to an answer that does not come would cost the lease; the next one may. */
const answerMsMax = Math.max(1_000, Math.floor(data.leaseMs / 4))
/** The server sends some away who wait for its lock. */
const TRIES_MAX = 10
const stream = new Connection(data.target).stream()
const tx: Pick<Tx, 'run'> = {
  run: async (sql: string, args: readonly Value[] = []) => {
    for (let tries = 1; ; tries++) {
      const { results, errors } = await stream.batch([{ sql, args }], { isFirst: true, answerMsMax })
      if (!errors[0]) return results[0]!.changes
      if (!errors[0].isNotBegun || tries === TRIES_MAX) throw errors[0]
      await sleep(systemClock, REFUSED_PAUSE_MS)
    }
  },
}

beatForever(data, async () => {
  try {
    const offsetMs = await measureOffset(() => serverMs(stream, answerMsMax), 1)
    tellMain({ offsetMs })
    return await extendLease(tx, data.owner, systemClock.now() + offsetMs, data.leaseMs)
  } catch (thrown) {
    throw classify(thrown, data.target.where)
  }
})
