/** What is Drive's own about `tidemark drive sync`: everything may be listed anew. */
import type { SyncPart } from '../../../app/cli/sync.ts'
import { driveRuntime } from '../runtime.ts'
import { wantListing } from '../store/feeds.ts'

export const driveSync: SyncPart = {
  steps: (_context, { runtime, sources }, { options }) =>
    options.relist === true
      ? {
          begin: async (source) => {
            const { drive } = driveRuntime(runtime)
            await drive.tables.ledger.transaction((tx) => wantListing(tx, source.name))
            await sources.begin(source)
          },
        }
      : {},
}
