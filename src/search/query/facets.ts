/** What was found, counted by what it is. Copies that are one hit count once for each value that one of them has. */
import type { Tx } from '../../ledger/contract.ts'
import type { Facet, SearchAnswer } from '../contract.ts'
import type { IndexDialect } from '../index/dialect.ts'
import type { Ranked } from './look.ts'

const VALUES_MAX = 50

export async function countFacets(
  tx: Tx,
  dialect: IndexDialect,
  groups: readonly (readonly Ranked[])[],
): Promise<SearchAnswer['facets']> {
  const folders = await foldersOf(
    tx,
    dialect,
    groups.flatMap((group) => group.map(({ id }) => id)),
  )
  const values: Record<Facet, (one: Ranked) => readonly string[]> = {
    source: ({ source }) => [source],
    type: ({ type }) => [type],
    owner: ({ owner }) => (owner === '' ? [] : [owner]),
    folder: ({ id }) => folders.get(id) ?? [],
    year: ({ at }) => (at === null ? [] : [String(new Date(at).getUTCFullYear())]),
  }
  const facets: Partial<Record<Facet, { value: string; count: number }[]>> = {}
  for (const [facet, valuesOf] of Object.entries(values) as [Facet, (one: Ranked) => readonly string[]][]) {
    const counts = new Map<string, number>()
    for (const group of groups) {
      const own = group.length === 1 ? valuesOf(group[0]!) : new Set(group.flatMap(valuesOf))
      for (const value of own) counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    facets[facet] = [...counts]
      .map(([value, count]) => ({ value, count }))
      .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
      .slice(0, VALUES_MAX)
  }
  return facets
}

async function foldersOf(
  tx: Tx,
  dialect: IndexDialect,
  docIds: readonly number[],
): Promise<Map<number, string[]>> {
  const list = dialect.oneOf('doc_id', docIds)
  const rows = await tx.all<{ doc_id: number; name: string }>(
    `SELECT doc_id, name FROM search_folders WHERE ${list.sql}`,
    list.params,
  )
  const folders = new Map<number, string[]>()
  for (const { doc_id, name } of rows) {
    const of = folders.get(doc_id)
    if (of) of.push(name)
    else folders.set(doc_id, [name])
  }
  return folders
}
