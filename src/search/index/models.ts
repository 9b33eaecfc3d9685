/** What is embedded by which model: how much of it is done, and giving back what another model left. */
import type { Tx } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { SEARCH_APP } from './tables.ts'

/** Contents with text, those of them that have vectors of a model, and how many have vectors of others. */
export type EmbeddedShare = { contents: number; embedded: number; others: number }

/** Undefined where there is no index yet: nothing makes one only to look. */
export async function embeddedShare(ledger: Ledger, model: string): Promise<EmbeddedShare | undefined> {
  return ledger.driver.read(async (tx) => {
    const made = await tx.get(`SELECT 1 AS made FROM app_schemas WHERE app = ? AND version > 0`, [SEARCH_APP])
    if (!made) return undefined
    const count = async (sql: string, params: readonly string[]): Promise<number> =>
      Number((await tx.get<{ n: number }>(sql, params))?.n ?? 0)
    const ofModel = `SELECT count(*) AS n FROM search_embedded e JOIN search_models m ON m.id = e.model_id WHERE m.name`
    return {
      contents: await count(
        `SELECT count(*) AS n FROM search_contents WHERE chunk_count > 0 AND is_embedded = 1`,
        [],
      ),
      embedded: await count(`${ofModel} = ?`, [model]),
      others: await count(`${ofModel} <> ?`, [model]),
    }
  })
}

/** Of the vectors of other models, those of so many contents; answers how many went. */
export async function dropOtherModels(tx: Tx, model: string, limit: number): Promise<number> {
  const rows = await tx.all<{ model_id: number; content_id: number }>(
    `SELECT e.model_id, e.content_id FROM search_embedded e JOIN search_models m ON m.id = e.model_id
     WHERE m.name <> ? LIMIT ?`,
    [model, limit],
  )
  for (const { model_id, content_id } of rows) {
    for (const table of ['search_codes', 'search_vectors', 'search_embedded']) {
      await tx.run(`DELETE FROM ${table} WHERE model_id = ? AND content_id = ?`, [model_id, content_id])
    }
  }
  return rows.length
}
