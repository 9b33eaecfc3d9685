/** What is the assistant's own about `tidemark assist sync`: the whole inbox may be looked through. */
import { type SyncPart, syncSources } from '../../../app/cli/sync.ts'
import type { CliContext } from '../../../app/command.ts'
import { assistApp } from '../app.ts'
import { assistRuntime } from '../runtime.ts'
import { wantSync } from '../store/accounts.ts'
import type { AccountOption } from './context.ts'

export const assistSync: SyncPart = {
  steps: (_context, { runtime, sources }, { options }) =>
    options.full === true
      ? {
          begin: async (source) => {
            const { ledger } = assistRuntime(runtime)
            await ledger.transaction((tx) => wantSync(tx, source.name, { full: true, nowMs: ledger.now() }))
            await sources.begin(source)
          },
        }
      : {},
}

export function runAssist(context: CliContext, { account }: AccountOption): Promise<void> {
  return syncSources(context, assistApp, { wanted: account, options: { watch: true } }, assistSync)
}
