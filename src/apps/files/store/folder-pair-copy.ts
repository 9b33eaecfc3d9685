/**
 * A copy of all that is known about one folder pair, in another database: there a dry run can look and plan to its heart's
 * content, and nothing of it is ever written here.
 */
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'

const PAGE = 2_000

type Table = { name: string; column: string; key: string }

const TABLES: readonly Table[] = [
  { name: 'file_drives', column: 'name', key: 'name' },
  { name: 'file_remote', column: 'drive', key: 'item_id' },
  { name: 'file_base', column: 'drive', key: 'item_id' },
  { name: 'file_local', column: 'drive', key: 'id' },
  { name: 'file_open', column: 'drive', key: 'node' },
  { name: 'file_conflicts', column: 'drive', key: 'id' },
  { name: 'file_deletes', column: 'drive', key: 'at' },
  { name: 'file_overwrites', column: 'drive', key: 'item_id' },
]

/** Read at one moment. Both databases have the tables of the file sync. */
export async function copyFolderPair(from: Ledger, to: Ledger, pair: string): Promise<void> {
  await from.driver.read(async (source) => {
    for (const table of TABLES) await copyTable(source, to, { table, pair })
  })
}

async function copyTable(
  source: Tx,
  to: Ledger,
  { table: { name, column, key }, pair }: { table: Table; pair: string },
): Promise<void> {
  let after: Value | undefined
  for (;;) {
    const rows = await source.all(
      `SELECT * FROM ${name} WHERE ${column} = ?${after === undefined ? '' : ` AND ${key} > ?`}
       ORDER BY ${key} LIMIT ${PAGE}`,
      after === undefined ? [pair] : [pair, after],
    )
    const last = rows.at(-1)
    if (!last) return
    const columns = Object.keys(last)
    const marks = columns.map(() => '?').join(', ')
    await to.transaction(async (tx) => {
      for (const row of rows) {
        await tx.run(
          `INSERT INTO ${name}(${columns.join(', ')}) VALUES (${marks})`,
          columns.map((one) => row[one] ?? null),
        )
      }
    })
    after = last[key]
  }
}
