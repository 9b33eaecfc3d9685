/** Many values in one statement, on both databases. */
import type { Tx } from '../../../ledger/contract.ts'

/** The texts of a JSON array that is the parameter: for `IN (…)`, or as a column of that name. */
export function textsFrom({ dialect }: Pick<Tx, 'dialect'>, column = 'value'): string {
  return dialect === 'sqlite'
    ? `SELECT value AS ${column} FROM json_each(?)`
    : `SELECT jsonb_array_elements_text(?::jsonb) AS ${column}`
}

/** A table of the objects in the JSON array that is the parameter: for `FROM`. */
export function rowsFrom(
  { dialect }: Pick<Tx, 'dialect'>,
  columns: Readonly<Record<string, 'text'>>,
): string {
  const names = Object.keys(columns)
  if (dialect === 'postgres') {
    const typed = names.map((name) => `"${name}" ${columns[name]}`).join(', ')
    return `jsonb_to_recordset(?::jsonb) AS given(${typed})`
  }
  const read = names.map((name) => `json_extract(value, '$.${name}') AS "${name}"`).join(', ')
  return `(SELECT ${read} FROM json_each(?)) AS given`
}
