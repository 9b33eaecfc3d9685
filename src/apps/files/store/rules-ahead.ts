/** The file that says what takes part, where it is open: on its way here, or away. */
import type { Tx } from '../../../ledger/contract.ts'
import { IGNORE_FILE } from '../filter.ts'
import { itemNode, type NodeKey } from '../trees.ts'
import type { FolderPairRow } from './contract.ts'
import { ROOT_ID } from './file-store.ts'
import { localAtName } from './local-tree.ts'
import { loadView, type PlanView } from './plan-view.ts'
import { remoteAtName } from './remote-tree.ts'

export type RulesAhead = { node: NodeKey; version: number; isPlanned: boolean }

/** What waits for somebody, or is left alone, is not on its way. */
export async function rulesAhead(
  tx: Tx,
  { name: pair, rootItemId }: Pick<FolderPairRow, 'name' | 'rootItemId'>,
): Promise<RulesAhead[]> {
  const there = await remoteAtName(tx, pair, { parentId: rootItemId, name: IGNORE_FILE })
  const here = await localAtName(tx, pair, ROOT_ID, IGNORE_FILE)
  const found: RulesAhead[] = []
  for (const itemId of new Set([there?.itemId, here?.itemId])) {
    if (itemId == null) continue
    const node = itemNode(itemId)
    const open = await tx.get<{ version: number; planned: number | null }>(
      `SELECT version, planned FROM file_open
       WHERE drive = ? AND node = ? AND waits_for IS NULL AND because IS NULL`,
      [pair, node],
    )
    if (open) found.push({ node, version: Number(open.version), isPlanned: open.planned !== null })
  }
  return found
}

export function viewOfRules(tx: Tx, pair: string, rules: readonly RulesAhead[]): Promise<PlanView> {
  return loadView(tx, pair, new Map(rules.map(({ node, version }) => [node, version])))
}
