/**
 * The tables of the workload. They are written only in the effects of outcomes, and in a way that shows if
 * anything is applied twice: every row counts how often it was written.
 */
import type { Tx, Value } from '../../src/ledger/contract.ts'

export const APP = 'crash'

export function schema(dialect: Tx['dialect']): string[][] {
  const id = dialect === 'sqlite' ? 'INTEGER PRIMARY KEY' : 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
  const counted = (name: string): string =>
    `CREATE TABLE ${name} (name TEXT PRIMARY KEY, value TEXT NOT NULL, times INTEGER NOT NULL)`
  return [
    [
      'CREATE TABLE seeded (one INTEGER PRIMARY KEY)',
      // What was stored, by item, and once more as a list to which every application adds a line.
      counted('applied'),
      `CREATE TABLE ledger_entries (id ${id}, name TEXT NOT NULL)`,
      // What handlers said of items that they did not store.
      counted('told'),
      // Pages listed, parts uploaded, steps taken, digests made, versions published.
      ...['pages', 'parts', 'steps', 'digests', 'published'].map(counted),
      // What an effect found to be wrong at the moment it ran.
      `CREATE TABLE violations (id ${id}, what TEXT NOT NULL)`,
    ],
  ]
}

export type Counted = 'applied' | 'told' | 'pages' | 'parts' | 'steps' | 'digests' | 'published'
export type Entry = { name: string; value?: string }

export async function apply(tx: Tx, table: Counted, entries: readonly Entry[]): Promise<void> {
  if (entries.length === 0) return
  const rows = entries.map(() => '(?, ?, 1)').join(', ')
  await tx.run(
    `INSERT INTO ${table}(name, value, times) VALUES ${rows} ON CONFLICT (name) DO UPDATE SET times = ${table}.times + 1`,
    entries.flatMap(({ name, value }): Value[] => [name, value ?? '']),
  )
}

export async function addToList(tx: Tx, names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  await tx.run(`INSERT INTO ledger_entries(name) VALUES ${names.map(() => '(?)').join(', ')}`, names)
}

/** How many of these rows are there, as this transaction sees it. */
export async function rowCount(tx: Tx, table: Counted, names: readonly string[]): Promise<number> {
  if (names.length === 0) return 0
  const marks = names.map(() => '?').join(', ')
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM ${table} WHERE name IN (${marks})`,
    names,
  )
  return Number(row!.n)
}

export async function countBad(tx: Tx, items: readonly string[]): Promise<number> {
  const marks = items.map(() => '?').join(', ')
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM bad_items WHERE item IN (${marks})`,
    items,
  )
  return Number(row!.n)
}

export async function report(tx: Tx, violation: string): Promise<void> {
  await tx.run('INSERT INTO violations(what) VALUES (?)', [violation])
}

/** False if another process, or an earlier life, has been here. */
export async function claimSeed(tx: Tx): Promise<boolean> {
  return (await tx.run('INSERT INTO seeded(one) VALUES (1) ON CONFLICT (one) DO NOTHING')) === 1
}

export async function latestVersion(tx: Tx, stream: string): Promise<number> {
  const row = await tx.get<{ v: number | null }>(
    'SELECT max(CAST(value AS INTEGER)) AS v FROM published WHERE name LIKE ?',
    [`${stream} %`],
  )
  return Number(row?.v ?? 0)
}
