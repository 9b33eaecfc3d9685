/** Loads the open nodes that a plan is about, and what is around them, in a few statements for all of them together. */
import type { Tx } from '../../../ledger/contract.ts'
import type { LeftCode } from '../left-code.ts'
import { IGNORE_FILE } from '../names.ts'
import type { NodeState, PlanNode, Surroundings, WayUp } from '../plan.ts'
import {
  type BaseRow,
  itemNode,
  type LocalRow,
  localNode,
  type NodeKey,
  nameKey,
  type RemoteRow,
  ROOT_ID,
  sameSpelling,
} from '../trees.ts'
import type { FolderPairRow } from './contract.ts'
import { bestPair } from './ends.ts'
import { localAtName, localRows } from './local-tree.ts'
import { remoteAtName, remoteRows } from './remote-tree.ts'
import {
  BASE_COLUMNS,
  LOCAL_COLUMNS,
  listParameter,
  numberListParameter,
  REMOTE_COLUMNS,
  toBaseRow,
  toLocalRow,
  toRemoteRow,
} from './rows.ts'

/** What a filter, a conflict or a name adds to a case is the caller's. */
export type PlanView = {
  nodes: Omit<PlanNode, 'path'>[]
  around: Surroundings
  pathOf(node: NodeKey): string
  /** Where OneDrive has it. */
  remotePathOf(node: NodeKey): string | undefined
}

export async function loadUnplanned(tx: Tx, pair: string, limit: number): Promise<PlanView> {
  const rows = await tx.all<{ node: NodeKey; version: number }>(
    `SELECT node, version FROM file_open
     WHERE drive = ? AND node > '' AND planned IS NULL AND waits_for IS NULL AND because IS NULL
     ORDER BY node LIMIT ?`,
    [pair, limit],
  )
  return loadView(tx, pair, new Map(rows.map(({ node, version }) => [node, Number(version)])))
}

/** With those who have names that these may take, so that both are decided together. */
export async function loadView(
  tx: Tx,
  pair: string,
  versions: ReadonlyMap<NodeKey, number>,
): Promise<PlanView> {
  const view = new View(tx, pair)
  await view.load(versions)
  const others = view.unplannedNamesakes(versions)
  if (others.size === 0) return view
  const wider = new View(tx, pair)
  await wider.load(new Map([...versions, ...others]))
  return wider
}

/** Whoever waits longer is looked at when one of those between has ended. */
const WAITS_STEPS = 20

type OpenRow = {
  node: NodeKey
  version: number
  planned: number | null
  waits_for: NodeKey | null
  because: string | null
  code: LeftCode | null
}

class View implements PlanView {
  readonly #tx: Tx
  readonly #pair: string
  nodes: Omit<PlanNode, 'path'>[] = []
  readonly #remote = new Map<string, RemoteRow>()
  readonly #base = new Map<string, BaseRow>()
  readonly #local = new Map<number, LocalRow>()
  readonly #localOfItem = new Map<string, LocalRow>()
  readonly #remoteByName = new Map<string, RemoteRow>()
  readonly #localByName = new Map<string, LocalRow[]>()
  readonly #remoteChildren = new Map<string, NodeKey[]>()
  readonly #localChildren = new Map<number, NodeKey[]>()
  readonly #states = new Map<NodeKey, NodeState>()
  readonly #waits = new Map<NodeKey, NodeKey>()
  readonly #heldDeletes = new Set<NodeKey>()
  readonly #unplanned = new Map<NodeKey, number>()

  constructor(tx: Tx, pair: string) {
    this.#tx = tx
    this.#pair = pair
  }

  async load(versions: ReadonlyMap<NodeKey, number>): Promise<void> {
    const items = [...versions.keys()].filter((node) => node.startsWith('i:')).map((node) => node.slice(2))
    const locals = [...versions.keys()]
      .filter((node) => node.startsWith('l:'))
      .map((node) => Number(node.slice(2)))
    await this.#addItems(items)
    for (const row of (await localRows(this.#tx, this.#pair, locals)).values()) this.#addLocal(row)
    await this.#addAbove()
    await this.#addNamesakes()
    await this.#addBelow()
    await this.#addStates()
    for (const [node, version] of versions) this.nodes.push(this.#caseOf(node, version))
  }

  unplannedNamesakes(known: ReadonlyMap<NodeKey, number>): Map<NodeKey, number> {
    const rows = [...this.#localByName.values()].flat().map(localNode)
    const nodes = [...rows, ...[...this.#remoteByName.values()].map(({ itemId }) => itemNode(itemId))]
    const found = nodes.filter((node) => !known.has(node) && this.#unplanned.has(node))
    return new Map(found.map((node) => [node, this.#unplanned.get(node)!]))
  }

  pathOf = (node: NodeKey): string => {
    const item = node.startsWith('i:') ? node.slice(2) : undefined
    const local = item === undefined ? this.#local.get(Number(node.slice(2))) : this.#localOfItem.get(item)
    return (
      (local && !local.isMissing ? this.#localPath(local) : undefined) ??
      this.#remotePathOf(item) ??
      local?.name ??
      node
    )
  }

  remotePathOf = (node: NodeKey): string | undefined =>
    node.startsWith('i:') ? this.#remotePathOf(node.slice(2)) : undefined

  #localPath(row: LocalRow): string {
    const above = this.#ancestors(row.id).map((id) => this.#local.get(id)!)
    return above
      .filter(({ parentId }) => parentId !== null)
      .map(({ name }) => name)
      .reverse()
      .join('/')
  }

  #remotePathOf(itemId: string | undefined): string | undefined {
    const row = itemId === undefined ? undefined : this.#remote.get(itemId)
    if (!row) return undefined
    const above = this.#remoteAbove(row.itemId).map((id) => this.#remote.get(id)!)
    return above
      .filter(({ parentId }) => parentId !== null)
      .map(({ name }) => name)
      .reverse()
      .join('/')
  }

  get around(): Surroundings {
    return {
      localFolderOf: (itemId) => {
        const row = this.#localOfItem.get(itemId)
        return row && { localId: row.id, isHere: !row.isMissing }
      },
      localFolder: (localId) => {
        const row = this.#local.get(localId)
        if (!row) return undefined
        const remote = row.itemId === null ? undefined : this.#remote.get(row.itemId)
        const isUnknown = !row.isMissing && row.unreadable !== null
        return { node: localNode(row), itemId: remote && !remote.isDeleted ? row.itemId : null, isUnknown }
      },
      remoteOccupant: (parentId, name) => {
        const row = this.#remoteByName.get(`${parentId}/${nameKey(name)}`)
        return row && { node: itemNode(row.itemId), name: row.name }
      },
      localOccupant: (parentId, name) => {
        const rows = this.#localByName.get(`${parentId}/${nameKey(name)}`) ?? []
        const row = rows.find((one) => sameSpelling(one.name, name)) ?? rows[0]
        return row && localNode(row)
      },
      remoteChildren: (itemId) => this.#remoteChildren.get(itemId) ?? [],
      localChildren: (localId) => this.#localChildren.get(localId) ?? [],
      remoteAncestors: (itemId) => this.#remoteAbove(itemId),
      localAncestors: (localId) => this.#ancestors(localId),
      wayUp: (itemId) => this.#wayUp(itemId),
      stateOf: (node) => this.#states.get(node) ?? 'in step',
      waitsFor: (node) => this.#waits.get(node),
      isHeldDelete: (node) => this.#heldDeletes.has(node),
    }
  }

  #caseOf(node: NodeKey, version: number): Omit<PlanNode, 'path'> {
    const item = node.startsWith('i:') ? node.slice(2) : undefined
    const remote = item === undefined ? undefined : this.#remote.get(item)
    const base = item === undefined ? undefined : this.#base.get(item)
    let local = item === undefined ? this.#local.get(Number(node.slice(2))) : this.#localOfItem.get(item)
    local ??= remote && !base ? this.#findPartner(remote) : undefined
    const parent = local?.parentId == null ? undefined : this.#local.get(local.parentId)
    const localParentId = parent?.itemId ?? undefined
    return { node, version, base, local, remote, localParentId }
  }

  /** Something new here at the very place where an item has nothing here: they are one node. */
  #findPartner(remote: RemoteRow): LocalRow | undefined {
    const folder = remote.parentId === null ? undefined : this.#localOfItem.get(remote.parentId)
    if (!folder || remote.isDeleted) return undefined
    return bestPair(this.#localByName.get(`${folder.id}/${nameKey(remote.name)}`) ?? [], remote)
  }

  #addLocal(row: LocalRow): void {
    this.#local.set(row.id, row)
    if (row.itemId !== null) this.#localOfItem.set(row.itemId, row)
  }

  async #addItems(items: readonly string[]): Promise<void> {
    const wanted = items.filter((item) => !this.#remote.has(item))
    if (wanted.length === 0) return
    const list = JSON.stringify(wanted)
    for (const [id, row] of await remoteRows(this.#tx, this.#pair, wanted)) this.#remote.set(id, row)
    const bases = await this.#tx.all(
      `SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id IN (${listParameter(this.#tx)})`,
      [this.#pair, list],
    )
    for (const row of bases.map(toBaseRow)) this.#base.set(row.itemId, row)
    const locals = await this.#tx.all(
      `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND item_id IN (${listParameter(this.#tx)})`,
      [this.#pair, list],
    )
    for (const row of locals.map(toLocalRow)) this.#addLocal(row)
  }

  /** Folders above, on both sides, level by level: as many statements as the tree is deep. */
  async #addAbove(): Promise<void> {
    for (;;) {
      const items = [...this.#remote.values()].flatMap(({ parentId }) => parentId ?? [])
      const ofLocals = [...this.#local.values()].flatMap(({ itemId }) => itemId ?? [])
      const missingItems = [...new Set([...items, ...ofLocals])].filter((id) => !this.#asked.has(id))
      const folders = [...this.#local.values()].flatMap(({ parentId }) => parentId ?? [])
      const missingFolders = [...new Set(folders)].filter(
        (id) => !this.#local.has(id) && !this.#asked.has(id),
      )
      if (missingItems.length + missingFolders.length === 0) return
      for (const id of [...missingItems, ...missingFolders]) this.#asked.add(id)
      await this.#addItems(missingItems)
      for (const row of (await localRows(this.#tx, this.#pair, missingFolders)).values()) this.#addLocal(row)
    }
  }

  /** What is not in the tables is not asked for twice. */
  readonly #asked = new Set<string | number>()

  /** Whoever has a name that a node may take, on either side. */
  async #addNamesakes(): Promise<void> {
    const remoteNames = new Set([...this.#local.values()].map(({ name }) => nameKey(name)))
    const localNames = new Set([...this.#remote.values()].map(({ name }) => nameKey(name)))
    const folders = new Set([...this.#local.values()].flatMap(({ parentId }) => parentId ?? []))
    const items = new Set([...this.#remote.values()].flatMap(({ parentId }) => parentId ?? []))
    for (const item of items) {
      const folder = this.#localOfItem.get(item)
      if (folder) folders.add(folder.id)
    }
    for (const folder of [...folders]) {
      const item = this.#local.get(folder)?.itemId
      if (item != null) items.add(item)
    }
    const remote = await this.#tx.all(
      `SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ? AND is_deleted = 0
       AND parent_id IN (${listParameter(this.#tx)}) AND name_key IN (${listParameter(this.#tx)})`,
      [this.#pair, JSON.stringify([...items]), JSON.stringify([...remoteNames, ...localNames])],
    )
    for (const row of remote.map(toRemoteRow))
      this.#remoteByName.set(`${row.parentId}/${nameKey(row.name)}`, row)
    const local = await this.#tx.all(
      `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND is_missing = 0
       AND parent_id IN (${numberListParameter(this.#tx)}) AND name_key IN (${listParameter(this.#tx)})`,
      [this.#pair, JSON.stringify([...folders]), JSON.stringify([...remoteNames, ...localNames])],
    )
    for (const row of local.map(toLocalRow)) {
      const key = `${row.parentId}/${nameKey(row.name)}`
      this.#localByName.set(key, [...(this.#localByName.get(key) ?? []), row])
    }
  }

  /** What is in folders that one side has deleted. */
  async #addBelow(): Promise<void> {
    const folders = [...this.#base.values()].filter(({ type }) => type === 'folder')
    const here = folders.flatMap(({ itemId }) => {
      const [row, remote] = [this.#localOfItem.get(itemId), this.#remote.get(itemId)]
      return row && !row.isMissing && (!remote || remote.isDeleted) ? [row.id] : []
    })
    const there = folders.flatMap(({ itemId }) => {
      const [row, remote] = [this.#localOfItem.get(itemId), this.#remote.get(itemId)]
      return (!row || row.isMissing) && remote && !remote.isDeleted ? [itemId] : []
    })
    if (here.length + there.length === 0) return
    const local = await this.#tx.all<{ parent_id: number; id: number; item_id: string | null }>(
      `SELECT parent_id, id, item_id FROM file_local WHERE drive = ? AND is_missing = 0 AND parent_id IN (${numberListParameter(this.#tx)})`,
      [this.#pair, JSON.stringify(here)],
    )
    for (const row of local) {
      push(this.#localChildren, Number(row.parent_id), localNode({ id: Number(row.id), itemId: row.item_id }))
    }
    const remote = await this.#tx.all<{ parent_id: string; item_id: string }>(
      `SELECT parent_id, item_id FROM file_remote WHERE drive = ? AND is_deleted = 0 AND parent_id IN (${listParameter(this.#tx)})`,
      [this.#pair, JSON.stringify(there)],
    )
    for (const row of remote) push(this.#remoteChildren, row.parent_id, itemNode(row.item_id))
  }

  async #addStates(): Promise<void> {
    const nodes = new Set<NodeKey>([...this.#remote.keys()].map(itemNode))
    for (const row of [...this.#local.values(), ...[...this.#localByName.values()].flat()]) {
      nodes.add(localNode(row))
    }
    for (const row of this.#remoteByName.values()) nodes.add(itemNode(row.itemId))
    for (const below of [...this.#localChildren.values(), ...this.#remoteChildren.values()].flat())
      nodes.add(below)
    await this.#addOpen(nodes)
    for (let next = this.#waitedFor(nodes), steps = 0; next.size > 0 && steps < WAITS_STEPS; steps++) {
      await this.#addOpen(next)
      for (const node of next) nodes.add(node)
      next = this.#waitedFor(nodes)
    }
  }

  /** Who has the name that another one wants may wait for somebody who is nowhere near: one statement a step. */
  #waitedFor(known: ReadonlySet<NodeKey>): Set<NodeKey> {
    return new Set([...this.#waits.values()].filter((node) => !known.has(node)))
  }

  async #addOpen(nodes: ReadonlySet<NodeKey>): Promise<void> {
    const rows = await this.#tx.all<OpenRow>(
      `SELECT node, version, planned, waits_for, because, code FROM file_open WHERE drive = ? AND node IN (${listParameter(this.#tx)})`,
      [this.#pair, JSON.stringify([...nodes])],
    )
    for (const { node, version, planned, waits_for: waitsFor, because, code } of rows) {
      this.#states.set(node, planned !== null ? 'in work' : because !== null ? 'stuck' : 'open')
      if (planned === null && waitsFor !== null) this.#waits.set(node, waitsFor)
      if (planned === null && code === 'held-delete') this.#heldDeletes.add(node)
      // Those that wait, too: two that want each other's names would wait for each other. Not those that wait for
      // the next look at the folder, which is said by waiting for oneself.
      const canBePlanned = planned === null && because === null && waitsFor !== node
      if (canBePlanned) this.#unplanned.set(node, Number(version))
    }
  }

  #remoteAbove(itemId: string): string[] {
    const above: string[] = []
    for (
      let id: string | null | undefined = itemId;
      id != null && this.#remote.has(id) && !above.includes(id);
    ) {
      above.push(id)
      id = this.#remote.get(id)?.parentId
    }
    return above
  }

  #wayUp(itemId: string): WayUp {
    const above = this.#remoteAbove(itemId)
    const top = above.length === 0 ? undefined : this.#remote.get(above.at(-1)!)
    if (top?.parentId === null)
      return above.some((id) => this.#remote.get(id)!.isDeleted) ? 'nowhere' : 'root'
    return top !== undefined && above.includes(top.parentId) ? 'circle' : 'nowhere'
  }

  #ancestors(localId: number): number[] {
    const above: number[] = []
    for (
      let id: number | null | undefined = localId;
      id != null && this.#local.has(id) && !above.includes(id);
    ) {
      above.push(id)
      id = this.#local.get(id)?.parentId
    }
    return above
  }
}

function push<K>(lists: Map<K, NodeKey[]>, key: K, node: NodeKey): void {
  const list = lists.get(key)
  if (list) list.push(node)
  else lists.set(key, [node])
}

/** The file that says what takes part, where it is open: on its way here, or away. */
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
