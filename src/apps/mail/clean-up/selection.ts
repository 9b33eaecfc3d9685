/** What a run means, read again from its row: the query as it was understood when the run was made. */
import { isDeepStrictEqual } from 'node:util'
import { UsageError } from '../../../base/errors.ts'
import { formatQuery } from '../query/format.ts'
import { type ParseOptions, parseQuery } from '../query/parse.ts'
import { labelNamesIn, type Query } from '../query/query.ts'
import { knownLabelIds } from '../store/compiled-query.ts'
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
    action: run.action,
    label: run.label,
    cutoffMs: run.cutoffMs,
    labelIds,
    nowMs: run.createdAtMs,
    query: query.is === 'all' ? null : query,
    queryLabels: labelsOfQuery(query, labelIds),
  }
}

export async function purposeOf(kinds: Tables, run: Meant): Promise<Purpose> {
  const { action, label, queryLabels } = await selectionOf(kinds, run)
  return { action, label, queryLabels }
}

/**
 * A query as it is understood, for people to see before a run begins and for the run's row; '' is all mail. Every
 * joint, time and own address in it is written out, so that it means the same whenever it is read again.
 */
export async function understoodQuery(
  tables: MailTables,
  text: string,
  options: ParseOptions & { me: string },
): Promise<string> {
  const query = parseQuery(text, { ...options, smallJoints: 'refuse' })
  if (query.is === 'all') return ''
  const labelIds = await labelIdsOf(tables, options.me)
  for (const name of labelNamesIn(query)) {
    if (knownLabelIds(name, labelIds).length > 0) continue
    // To search, it finds nothing; left out, as in -label:imporant, it would leave nothing out.
    throw new UsageError(`${options.me} has no label "${name}", of which the query speaks.`, {
      code: 'bad-query',
    })
  }
  const understood = formatQuery(query)
  if (!isDeepStrictEqual(parseQuery(understood, options), query)) {
    throw new UsageError(`The query cannot be repeated as it is understood: ${understood}`, {
      code: 'bad-query',
      hint: 'Write it in another way.',
    })
  }
  return understood
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
