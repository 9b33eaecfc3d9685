/**
 * Runs in a thread: extends the lease of one owner until told to stop. See heartbeat-loop.ts. Every process that runs
 * jobs starts one: so it loads no more of the driver than the one statement takes.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../base/clock.ts'
import type { Tx } from '../contract.ts'
import { beatForever, type ThreadData } from '../heartbeat-loop.ts'
import { extendLease } from '../workers.ts'

const data = workerData as ThreadData & { file: string }
const db = new DatabaseSync(data.file, { timeout: 10_000 })
db.exec('PRAGMA synchronous = NORMAL') // a lease that a power cut forgets was lost anyway
const tx: Pick<Tx, 'run'> = {
  run: async (sql, params = []) => Number(db.prepare(sql).run(...(params as SQLInputValue[])).changes),
}

beatForever(data, () => extendLease(tx, data.owner, systemClock.now(), data.leaseMs))
