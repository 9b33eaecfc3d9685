/** Of words that everything has, it is those in the name that say what a document is about. */
import type { Tx } from '../../ledger/contract.ts'
import { COLUMN_WEIGHTS } from '../query/fuse.ts'
import type { TextLeaf } from '../query/query.ts'
import { stretchesOf } from '../query/snippet.ts'
import type { IndexDialect, Match } from './dialect.ts'

export async function scoredByName(
  tx: Tx,
  { oneOf }: Pick<IndexDialect, 'oneOf'>,
  { rows, leaves }: { rows: Match[]; leaves: readonly TextLeaf[] },
): Promise<Match[]> {
  const list = oneOf(
    'id',
    rows.map(({ id }) => id),
  )
  const named = await tx.all<{ id: number; title: string }>(
    `SELECT id, title FROM search_documents WHERE ${list.sql}`,
    list.params,
  )
  const scores = new Map(
    named.map(({ id, title }) => {
      const inName = new Set(stretchesOf(title, leaves).map(({ leaf }) => leaf)).size
      return [id, inName * COLUMN_WEIGHTS.title + (leaves.length - inName) * COLUMN_WEIGHTS.body]
    }),
  )
  for (const row of rows) row.score = scores.get(row.id) ?? 0
  return rows
}
