/** Paths to which somebody has narrowed a folder: whether anything is there. */
import type { Tx } from '../../../ledger/contract.ts'
import { nameKey, ROOT_ID, sameSpelling } from '../trees.ts'
import type { FolderPairRow } from './contract.ts'

/** `near`: names beside the first that is not there. */
export type UnknownPath = { path: string; near: string[] }

const NEAR_MAX = 1_000

/** Those at which neither side has anything, as last seen. */
export async function unknownPaths(
  tx: Tx,
  { name, rootItemId }: Pick<FolderPairRow, 'name' | 'rootItemId'>,
  paths: readonly string[],
): Promise<UnknownPath[]> {
  const unknown: UnknownPath[] = []
  for (const path of paths) {
    const near = await namesNearby(tx, { pair: name, rootItemId }, path)
    if (near) unknown.push({ path, near })
  }
  return unknown
}

/** Undefined: something is there. */
async function namesNearby(
  tx: Tx,
  { pair, rootItemId }: { pair: string; rootItemId: string },
  path: string,
): Promise<string[] | undefined> {
  let [itemId, localId]: [string | undefined, number | undefined] = [rootItemId, ROOT_ID]
  for (const part of path.split('/').filter((one) => one !== '' && one !== '.')) {
    const key = nameKey(part)
    const there = await namesIn(tx, 'file_remote', { pair, parent: itemId, key })
    const here = await namesIn(tx, 'file_local', { pair, parent: localId, key })
    const [item, local] = [there, here].map((rows) => rows.find(({ name }) => sameSpelling(name, part)))
    if (!item && !local) {
      const beside = await namesIn(tx, 'file_remote', { pair, parent: itemId })
      const besideHere = await namesIn(tx, 'file_local', { pair, parent: localId })
      return [...new Set([...beside, ...besideHere].map(({ name }) => name))]
    }
    itemId = item && String(item.id)
    localId = local && Number(local.id)
  }
  return undefined
}

async function namesIn(
  tx: Tx,
  table: 'file_remote' | 'file_local',
  { pair, parent, key }: { pair: string; parent: string | number | undefined; key?: string },
): Promise<{ id: string | number; name: string }[]> {
  if (parent === undefined) return []
  const [id, isThere] = table === 'file_remote' ? ['item_id', 'is_deleted'] : ['id', 'is_missing']
  return tx.all<{ id: string | number; name: string }>(
    `SELECT ${id} AS id, name FROM ${table} WHERE drive = ? AND parent_id = ? AND ${isThere} = 0${
      key === undefined ? '' : ' AND name_key = ?'
    } LIMIT ${NEAR_MAX}`,
    [pair, parent, ...(key === undefined ? [] : [key])],
  )
}
