/** The dry run: what a run would do and what it would refuse, by class. Reads only, and writes nothing anywhere. */
import type { Clock } from '../../../clock.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { MailAccount } from '../account.ts'
import type { NewRun, Sum } from '../store/journal.ts'
import type { MailTables } from '../store/tables.ts'
import { addPassedOver, candidatePages, type PassedOver } from './candidates.ts'
import { examine, standingOf } from './examination.ts'
import { BATCH_MESSAGES } from './jobs.ts'
import { selectionOf } from './selection.ts'

export type Survey = {
  markS: number | null
  /** What would be done. `proven` only if the bytes were read and Gmail was asked. */
  proven: Sum
  depth: 'full' | 'index'
  /** What would leave Gmail's quota: at once for a deletion, after 30 days for the trash. */
  freedBytes: number
  refused: PassedOver
  unsearched: string[]
}

export type SurveyInput = {
  run: Omit<NewRun, 'approved'>
  account: MailAccount
  ledger: Ledger
  tables: MailTables
  clock: Clock
  depth: 'full' | 'index'
  signal: AbortSignal
  onLook?: (messages: number) => void
}

export async function surveyRun(input: SurveyInput): Promise<Survey> {
  const { run, account, ledger, clock, depth, signal } = input
  const tables = async (): Promise<MailTables> => input.tables
  const selection = await selectionOf({ tables }, { ...run, createdAtMs: clock.now() })
  const standing = await standingOf(ledger, account.stream)
  const survey: Survey = {
    ...{ markS: standing.markS, depth, freedBytes: 0, unsearched: [] },
    ...{ proven: { messages: 0, bytes: 0 }, refused: {} },
  }
  let left = run.messagesMax ?? Number.POSITIVE_INFINITY
  let looked = 0
  for await (const page of candidatePages(account.archive, selection, standing)) {
    survey.refused = addPassedOver(survey.refused, page.passedOver)
    survey.unsearched = [...new Set([...survey.unsearched, ...page.unsearched])]
    const taken = page.candidates.slice(0, left)
    left -= taken.length
    for (let at = 0; at < taken.length; at += BATCH_MESSAGES) {
      signal.throwIfAborted()
      const group = taken.slice(at, at + BATCH_MESSAGES)
      const { passed, refused } = await examine(group, {
        account,
        standing,
        purpose: selection,
        signal,
        depth,
      })
      for (const { candidate } of passed) addTo(survey.proven, candidate)
      const entries = refused.map((one) => ({ entry: one, class: one.class }))
      survey.refused = addPassedOver(survey.refused, entries)
      looked += group.length
      input.onLook?.(looked)
    }
    if (left <= 0) break
  }
  if (run.action !== 'unlabel') survey.freedBytes = survey.proven.bytes
  return survey
}

function addTo(sum: Sum, { id, bytes }: { id: string; bytes: number }): void {
  sum.messages += 1
  sum.bytes += bytes
  sum.example ??= id
}
