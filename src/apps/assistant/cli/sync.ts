/** What is the assistant's own about `tidemark assist sync`: a whole scan, and a yes to its cost. */
import { type SyncPart, syncSources } from '../../../app/cli/sync.ts'
import type { CliContext } from '../../../app/command.ts'
import { lookNow, requestSync } from '../actions.ts'
import { assistApp } from '../app.ts'
import { agreeToBacklog, backlogOf, backlogText } from '../backlog.ts'
import { assistRuntime } from '../runtime.ts'
import { assistStatus, undraftedText } from '../status.ts'
import type { AccountOption } from './context.ts'

export const assistSync: SyncPart = {
  steps: (context, { runtime }, { options }) => ({
    begin: async (source) => {
      const { engine, ledger, assist } = assistRuntime(runtime)
      const place = { engine, ledger, kinds: assist.kinds }
      if (options.yes === true) await agreeToBacklog(place, source.name, { ahead: true })
      else if (options.full === true) await requestSync(place, source.name, { full: true })
      else await lookNow(place, source.name)
    },
    explain: async ({ name }) => {
      const { assist, ledger } = assistRuntime(runtime)
      const [status] = await assistStatus(ledger, assist.tables, [name])
      const undrafted = status ? undraftedText(status) : ''
      if (undrafted !== '') context.output.note(`${name}: ${undrafted}`)
      const backlog = await backlogOf(assist, name)
      if (backlog.mails + backlog.drafts === 0) return
      context.output.note(`${name}: ${backlogText(backlog)}`)
      context.output.note('  To agree: tidemark assist run --yes')
    },
  }),
}

export function runAssist(
  context: CliContext,
  { account, yes }: AccountOption & { yes?: boolean },
): Promise<void> {
  return syncSources(context, assistApp, { wanted: account, options: { watch: true, yes } }, assistSync)
}
