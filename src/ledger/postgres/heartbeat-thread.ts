/** Runs in a thread: extends the lease of one owner until told to stop, over a connection that comes back by itself. */
import { workerData } from 'node:worker_threads'
import type pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { beatForever, type ThreadData, tellMain } from '../heartbeat-loop.ts'
import { measureOffset } from '../server-clock.ts'
import { extendLease } from '../workers.ts'
import { connect, hangUp, serverMs, type Target } from './connection.ts'
import { classify } from './errors.ts'
import { PostgresTx } from './tx.ts'

const data = workerData as ThreadData & { target: Target }
/** Hanging on to a connection that went silent would cost the lease; a new one may get through. */
const answerMsMax = Math.max(1_000, Math.floor(data.leaseMs / 4))
let client: pg.Client | undefined

beatForever(data, async () => {
  try {
    if (!client) {
      client = await connect(data.target, 'plain', { connectMsMax: answerMsMax, answerMsMax })
      await client.query('SET synchronous_commit = off') // a lease that a power cut forgets was lost anyway
    }
    const connected = client
    const offsetMs = await measureOffset(() => serverMs(connected), 1)
    tellMain({ offsetMs })
    const tx = new PostgresTx(client, data.target.where)
    return await extendLease(tx, data.owner, systemClock.now() + offsetMs, data.leaseMs)
  } catch (thrown) {
    if (client) await hangUp(client)
    client = undefined
    throw classify(thrown, data.target.where)
  }
})
