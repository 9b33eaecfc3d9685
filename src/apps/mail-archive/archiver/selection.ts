/** What a run means, read again from its row: the query as it was understood when the run was made. */
import { parseQuery } from '../query/parse.ts'
import type { Query } from '../query/query.ts'
import type { NewRun } from '../store/journal.ts'
import type { MailTables } from '../store/tables.ts'
import type { Selection } from './candidates.ts'
import { labelsOfQuery, type Purpose } from './verdict.ts'

type Meant = Omit<NewRun, 'approved' | 'messagesMax'> & { createdAtMs: number }
type Tables = { tables: () => Promise<MailTables> }

export async function selectionOf(kinds: Tables, run: Meant): Promise<Selection> {
  const labelIds = await labelIdsOf(await kinds.tables(), run.account)
  const query = queryOf(run)
  return {
    ...{ action: run.action, label: run.label, cutoffMs: run.cutoffMs, labelIds, nowMs: run.createdAtMs },
    query: query.is === 'all' ? null : query,
    queryLabels: labelsOfQuery(query, labelIds),
  }
}

export async function purposeOf(kinds: Tables, run: Meant): Promise<Purpose> {
  const { action, label, queryLabels } = await selectionOf(kinds, run)
  return { action, label, queryLabels }
}

/** Ids by lower-case name, and by themselves. */
export async function labelIdsOf(tables: MailTables, account: string): Promise<Map<string, string>> {
  const rows = await tables.labels(account)
  return new Map([
    ...rows.map(({ id }): [string, string] => [id.toLowerCase(), id]),
    ...rows.map(({ id, name }): [string, string] => [name.toLowerCase(), id]),
  ])
}

/** Times in it are counted from when the run was made, so that a run that is resumed means the same. */
function queryOf({ query, createdAtMs, account }: Meant): Query {
  return parseQuery(query, { now: createdAtMs, me: account })
}
