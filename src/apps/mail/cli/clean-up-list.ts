/** `tidemark mail archive-runs`: what was archived when, and what became of it. */

import type { CliContext } from '../../../app/command.ts'
import { lookAtLedger } from '../../../app/with-ledger.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import type { RunRow } from '../store/journal.ts'
import { parseRun } from './clean-up-input.ts'
import { printRun, summaryOf, timeText } from './clean-up-report.ts'

export async function listCleanUpRuns(
  context: CliContext,
  run: string | undefined,
  options: { account?: string; limit: number },
): Promise<void> {
  const { output } = context
  const id = run === undefined ? undefined : parseRun(run)
  await lookAtLedger(context, {
    look: async ({ ledger }) => {
      const { ArchiveJournal } = await import('../store/journal.ts')
      const journal = await ArchiveJournal.open(ledger)
      if (id === undefined) {
        const { account, limit } = options
        return printRuns(
          context,
          await journal.runs({ limit, ...(account === undefined ? {} : { account }) }),
        )
      }
      const found = await journal.run(id)
      if (!found) {
        throw new UsageError(`There is no archive run ${id}.`, {
          code: 'run-unknown',
          hint: 'See them with: tidemark mail archive-runs',
        })
      }
      const report = { run: found, tallies: await journal.tallies(id), troubles: await journal.troubles(id) }
      if (!output.json) output.line(summaryOf(found))
      printRun(output, report)
    },
    missing: () => printRuns(context, []),
  })
}

function printRuns({ output }: CliContext, rows: readonly RunRow[]): void {
  output.listing({
    columns: [
      { title: 'run', value: ({ id }) => id, align: 'right' },
      { title: 'started', value: ({ createdAtMs }) => timeText(createdAtMs) },
      { title: 'account', value: ({ account }) => account },
      { title: 'action', value: ({ action }) => action },
      { title: 'state', value: stateText },
      { title: 'planned', value: ({ planned }) => formatCount(planned), align: 'right' },
      { title: 'done', value: ({ done }) => formatCount(done), align: 'right' },
      { title: 'refused', value: ({ refused }) => formatCount(refused), align: 'right' },
      { title: 'size', value: ({ doneBytes }) => formatBytes(doneBytes), align: 'right' },
      { title: 'query', value: ({ query }) => query },
    ],
    rows,
    empty: 'Nothing was archived yet.',
  })
}

function stateText({ state, undo }: RunRow): string {
  return undo ?? state
}
