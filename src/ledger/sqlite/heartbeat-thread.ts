/** Runs in a thread: extends the lease of one owner until told to stop. See heartbeat-loop.ts. */
import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../base/clock.ts'
import { beatForever, type ThreadData } from '../heartbeat-loop.ts'
import { extendLease } from '../workers.ts'
import { SqliteTx } from './driver.ts'

const data = workerData as ThreadData & { file: string }
const db = new DatabaseSync(data.file, { timeout: 10_000 })
db.exec('PRAGMA synchronous = NORMAL') // a lease that a power cut forgets was lost anyway
const tx = new SqliteTx(db)

beatForever(data, () => extendLease(tx, data.owner, systemClock.now(), data.leaseMs))
