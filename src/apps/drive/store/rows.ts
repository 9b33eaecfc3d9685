/** Many rows in one statement, on both databases. */
import type { Tx } from '../../../ledger/contract.ts'

/** By column: how PostgreSQL is to read it out of JSON. SQLite takes it as it is. */
export type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** A table of what is in the JSON array that is the parameter: for `FROM`. */
export function rowsFrom(tx: Tx, columns: Columns): string {
  const names = Object.keys(columns)
  if (tx.dialect === 'postgres') {
    const typed = names.map((name) => `${name} ${columns[name]}`).join(', ')
    return `jsonb_to_recordset(?::jsonb) AS given(${typed})`
  }
  const read = names.map((name) => `json_extract(value, '$.${name}') AS ${name}`).join(', ')
  return `(SELECT ${read} FROM json_each(?)) AS given`
}

/** The texts of a JSON array that is the parameter: for `IN (…)`. */
export function textsFrom({ dialect }: Tx): string {
  return dialect === 'sqlite'
    ? `SELECT value FROM json_each(?)`
    : `SELECT jsonb_array_elements_text(?::jsonb)`
}
