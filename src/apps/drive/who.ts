/** Who can find a file, and through what: what each account's own listing shows. */
import type { Grant } from '../../search/contract.ts'
import { UNLISTED } from './sharing.ts'
import { grantsOf } from './store/access.ts'
import type { DriveTables } from './store/tables.ts'

export type WhoSees = {
  id: string
  name: string
  people: { account: string; kind: Grant['kind']; via: string; expiresAtMs: number | null }[]
}

export async function whoSees(tables: DriveTables, id: string): Promise<WhoSees | undefined> {
  const file = await tables.file(id)
  if (!file) return undefined
  const grants = await tables.ledger.driver.read((tx) => grantsOf(tx, [id]))
  const confirmed = [...(grants.get(id) ?? [])].filter(
    ([, { expiresAtMs }]) => expiresAtMs === null || expiresAtMs > UNLISTED,
  )
  return {
    id,
    name: file.name,
    people: confirmed.map(([account, { kind, via, expiresAtMs }]) => ({ account, kind, via, expiresAtMs })),
  }
}
