/** Transactions of apps on the ledger's database, with work inside them. */
import type { EnqueueResult, Tx, Work } from './contract.ts'
import { guarded } from './guard.ts'
import { type WriteContext, writeWork } from './work.ts'

export type AppTx = Tx & { write(work: Work): Promise<EnqueueResult[]> }

/** However many an app begins at once, what the engine commits does not wait behind all of them. */
export const APP_TRANSACTIONS_MAX = 4

export function appTx(ctx: WriteContext): AppTx {
  const { tx } = ctx
  return {
    dialect: tx.dialect,
    all: (sql, params) => tx.all(sql, params),
    get: (sql, params) => tx.get(sql, params),
    run: (sql, params) => tx.run(sql, params),
    write: (work) => writeWork(ctx, work),
  }
}

export function runAppTransaction<T>(ctx: WriteContext, fn: (tx: AppTx) => Promise<T>): Promise<T> {
  return guarded({ ...ctx, what: 'a transaction on the ledger' }, (guard) =>
    fn({ ...appTx({ ...ctx, tx: guard }), write: (work) => guard.busy(() => writeWork(ctx, work)) }),
  )
}
