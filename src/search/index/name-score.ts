/** Of words that everything has, it is those in the name that say what a document is about. */
import type { Tx } from '../../ledger/contract.ts'
import { COLUMN_WEIGHTS } from '../query/fuse.ts'
import type { TextLeaf } from '../query/query.ts'
import type { IndexDialect, Match } from './dialect.ts'
import { wordsOf } from './words.ts'

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
      const words = wordsOf(title)
      const inName = leaves.reduce((n, leaf) => n + (isIn(leaf, words) ? 1 : 0), 0)
      return [id, inName * COLUMN_WEIGHTS.title + (leaves.length - inName) * COLUMN_WEIGHTS.body]
    }),
  )
  for (const row of rows) row.score = scores.get(row.id) ?? 0
  return rows
}

function isIn({ words, prefix }: TextLeaf, name: readonly string[]): boolean {
  for (let from = 0; from + words.length <= name.length; from++) {
    const isThere = words.every((word, i) => {
      const there = name[from + i]!
      return prefix && i === words.length - 1 ? there.startsWith(word) : there === word
    })
    if (isThere) return true
  }
  return false
}
