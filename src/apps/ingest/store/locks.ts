/** What effects of ingest change and several processes do: objects, with all their versions (ledger/lock-order.ts). */
import type { RowLocks } from '../../../ledger/contract.ts'
import { shardsOfUris } from './shards.ts'

export function objectLocks(pipeline: string, uris: readonly string[]): RowLocks {
  return { lock: lockObjects, keys: uris.map((uri) => `${pipeline}/${uri}`) }
}

/** Not those that are skipped: of an object that is overwritten every minute there are thousands. */
const lockObjects: RowLocks['lock'] = async (tx, keys) => {
  const byPipeline = Map.groupBy(keys, (key) => key.slice(0, key.indexOf('/')))
  const locking = [...byPipeline].map(([pipeline, own]) => {
    const uris = own.map((key) => key.slice(pipeline.length + 1))
    return shardsOfUris(tx, { pipeline, uris, isLocked: true, isLive: true }, 'id')
  })
  await Promise.all(locking)
}
