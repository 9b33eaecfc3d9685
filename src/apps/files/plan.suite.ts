/** Three trees drawn by hand, and the plan for what is open in them: no store, no disk, no OneDrive. */
import type { Mode } from './decide.ts'
import type { DeleteGuard } from './guard.ts'
import type { NodeState, Surroundings } from './plan.ts'
import { type Plan, type PlanNode, plan } from './plan.ts'
import { bestPair } from './store/ends.ts'
import {
  type BaseRow,
  itemNode,
  type LocalRow,
  localNode,
  type NodeKey,
  nameKey,
  type RemoteRow,
} from './trees.ts'

const ROOT = 'root'
const ROOT_ID = 1

type Drawn = {
  type?: 'file' | 'folder'
  /** Item id, or for local things also the local id, of its folder. */
  in?: string | number
  hash?: string
  name?: string
}

export class Sketch {
  readonly #base = new Map<string, BaseRow>()
  readonly #local = new Map<number, LocalRow>()
  readonly #remote = new Map<string, RemoteRow>()
  readonly #localIds = new Map<string, number>([[ROOT, ROOT_ID]])
  readonly #open = new Map<NodeKey, Partial<PlanNode>>()
  readonly #states = new Map<NodeKey, NodeState>()
  readonly #heldDeletes = new Set<NodeKey>()
  readonly #waits = new Map<NodeKey, NodeKey>()
  #named: { here: Map<string, LocalRow[]>; there: Map<string, RemoteRow[]> } = {
    here: new Map(),
    there: new Map(),
  }
  #nextId = 100
  /** How often the plan has asked what is around its nodes, and how many answers it got. */
  asked = 0

  constructor() {
    this.#local.set(
      ROOT_ID,
      this.#localRow(ROOT_ID, '', { type: 'folder' }, { parentId: null, itemId: ROOT }),
    )
    this.#remote.set(ROOT, { ...this.#remoteRow(ROOT, '', { type: 'folder' }), parentId: null })
  }

  /** On both sides, and agreed on. */
  synced(itemId: string, name: string, drawn: Drawn = {}): this {
    const remote = this.#remoteRow(itemId, name, drawn)
    const { parentId, type, hash } = remote
    const tags = { eTag: remote.eTag, cTag: remote.cTag }
    this.#remote.set(itemId, remote)
    this.#base.set(itemId, {
      itemId,
      parentId: parentId!,
      name,
      type: type as 'file',
      hash,
      sha256: hash,
      size: 1,
      remoteHash: hash,
      remoteSize: 1,
      ...tags,
    })
    const id = this.#nextId++
    this.#localIds.set(itemId, id)
    this.#local.set(id, this.#localRow(id, name, drawn, { itemId }))
    return this
  }

  newHere(id: number, name: string, drawn: Drawn = {}): this {
    this.#local.set(id, this.#localRow(id, name, drawn, { itemId: null }))
    this.#open.set(`l:${id}`, {})
    return this
  }

  newThere(itemId: string, name: string, drawn: Drawn = {}): this {
    this.#remote.set(itemId, this.#remoteRow(itemId, name, drawn))
    this.#open.set(itemNode(itemId), {})
    return this
  }

  movedHere(itemId: string, { in: folder, name }: Drawn): this {
    const row = this.#toLocalRow(itemId)!
    const parentId = folder === undefined ? row.parentId : this.#localIdOf(folder)
    this.#local.set(row.id, { ...row, parentId, name: name ?? row.name })
    return this.#opened(itemId)
  }

  movedThere(itemId: string, { in: folder, name }: Drawn): this {
    const row = this.#remote.get(itemId)!
    const parentId = folder === undefined ? row.parentId : String(folder)
    this.#remote.set(itemId, { ...row, parentId, name: name ?? row.name })
    return this.#opened(itemId)
  }

  /** `hash` null: nobody has looked yet. */
  editedHere(itemId: string, hash: string | null = 'edited here'): this {
    const row = this.#toLocalRow(itemId)!
    this.#local.set(row.id, { ...row, hash })
    return this.#opened(itemId)
  }

  editedThere(itemId: string): this {
    this.#remote.set(itemId, { ...this.#remote.get(itemId)!, hash: 'edited there', cTag: 'edited there' })
    return this.#opened(itemId)
  }

  /** With all that is in it. */
  deletedHere(itemId: string): this {
    for (const row of this.#branchHere(this.#toLocalRow(itemId)!.id)) {
      this.#local.set(row.id, { ...row, isMissing: true })
      this.#open.set(localNode(row), {})
    }
    return this
  }

  unreadable(itemId: string, reason: string): this {
    const row = this.#toLocalRow(itemId)!
    this.#local.set(row.id, { ...row, unreadable: reason })
    return this.#opened(itemId)
  }

  deletedThere(itemId: string): this {
    for (const row of this.#branchThere(itemId)) {
      this.#remote.set(row.itemId, { ...row, isDeleted: true })
      this.#open.set(itemNode(row.itemId), {})
    }
    return this
  }

  /** What the filter or the rules for names say of it. */
  judged(node: NodeKey, judgement: Pick<PlanNode, 'hold' | 'illegalName' | 'unsafeName'>): this {
    this.#open.set(node, judgement)
    return this
  }

  /** Open, and no part of this plan. */
  elsewhere(node: NodeKey, state: NodeState): this {
    this.#open.delete(node)
    this.#states.set(node, state)
    return this
  }

  /** Its deletion waits for a yes since an earlier plan. */
  held(node: NodeKey, { isHeld = true }: { isHeld?: boolean } = {}): this {
    if (isHeld) this.#heldDeletes.add(node)
    else this.#heldDeletes.delete(node)
    return this
  }

  /** Since an earlier plan. */
  waitsFor(node: NodeKey, other: NodeKey): this {
    this.#waits.set(node, other)
    return this
  }

  /** By folder and name, so that a big sketch is answered as fast as a store would. */
  #index(): void {
    const here = [...this.#local.values()].filter((row) => !row.isMissing)
    const there = [...this.#remote.values()].filter((row) => !row.isDeleted)
    this.#named = {
      here: Map.groupBy(here, (row) => `${row.parentId}/${nameKey(row.name)}`),
      there: Map.groupBy(there, (row) => `${row.parentId}/${nameKey(row.name)}`),
    }
  }

  plan({ mode = 'two-way', guard = {} }: { mode?: Mode; guard?: Partial<DeleteGuard> } = {}): Plan {
    this.asked = 0
    this.#index()
    const nodes = [...this.#open].map(([node, judgement]) => this.#planNode(node, judgement))
    const none = { baseItems: 0, baseFiles: 0, deletes: { local: 0, remote: 0 }, deletedFiles: 0, forced: 0 }
    const whole = { ...none, ...guard }
    return plan(nodes, this.#around(), { mode, guard: whole })
  }

  #opened(itemId: string): this {
    this.#open.set(itemNode(itemId), this.#open.get(itemNode(itemId)) ?? {})
    return this
  }

  #planNode(node: NodeKey, judgement: Partial<PlanNode>): PlanNode {
    const itemId = node.startsWith('i:') ? node.slice(2) : undefined
    const remote = itemId === undefined ? undefined : this.#remote.get(itemId)
    const base = itemId === undefined ? undefined : this.#base.get(itemId)
    const own = itemId === undefined ? this.#local.get(Number(node.slice(2))) : this.#toLocalRow(itemId)
    const local = own ?? (remote && !base && !remote.isDeleted ? this.#findPartner(remote) : undefined)
    const parent = local?.parentId == null ? undefined : this.#local.get(local.parentId)
    return {
      node,
      version: 1,
      base,
      local,
      remote,
      localParentId: parent?.itemId ?? undefined,
      path: (local ?? remote)?.name ?? node,
      ...judgement,
    }
  }

  #findPartner(remote: RemoteRow): LocalRow | undefined {
    const folder = this.#toLocalRow(remote.parentId!)
    const rows = this.#localAt(folder?.id ?? 0, remote.name)
    return bestPair(rows, remote)
  }

  #localAt(parentId: number, name: string): LocalRow[] {
    return this.#named.here.get(`${parentId}/${nameKey(name)}`) ?? []
  }

  #around(): Surroundings {
    const answer = <T>(found: T): T => {
      this.asked += Array.isArray(found) ? 1 + found.length : 1
      return found
    }
    return {
      localFolderOf: (itemId) => {
        const row = this.#toLocalRow(itemId)
        return answer(row && { localId: row.id, isHere: !row.isMissing })
      },
      localFolder: (id) => {
        const row = this.#local.get(id)
        const remote = row?.itemId == null ? undefined : this.#remote.get(row.itemId)
        const isUnknown = row !== undefined && !row.isMissing && row.unreadable !== null
        const itemId = remote && !remote.isDeleted ? row!.itemId : null
        return answer(row && { node: localNode(row), itemId, isUnknown })
      },
      remoteOccupant: (parentId, name) => {
        const found = this.#named.there.get(`${parentId}/${nameKey(name)}`)?.[0]
        return answer(found && { node: itemNode(found.itemId), name: found.name })
      },
      localOccupant: (parentId, name) => {
        const found = this.#localAt(parentId, name)
        const row = found.find((one) => one.name === name) ?? found[0]
        return answer(row && localNode(row))
      },
      remoteChildren: (itemId) => answer(this.#thereIn(itemId).map((row) => itemNode(row.itemId))),
      localChildren: (id) => answer(this.#hereIn(id).map(localNode)),
      remoteAncestors: (itemId) => answer(this.#above(itemId, (id) => this.#remote.get(id)?.parentId)),
      localAncestors: (id) => answer(this.#above(id, (one) => this.#local.get(one)?.parentId)),
      wayUp: (itemId) => {
        const above = this.#above(itemId, (id) => this.#remote.get(id)?.parentId)
        const isCircle = this.#remote.get(above.at(-1)!)?.parentId != null
        const isThere = above.at(-1) === ROOT && !above.some((id) => this.#remote.get(id)?.isDeleted)
        return answer(isThere ? 'root' : isCircle ? 'circle' : 'nowhere')
      },
      stateOf: (node) => answer(this.#open.has(node) ? 'open' : (this.#states.get(node) ?? 'in step')),
      waitsFor: (node) => answer(this.#waits.get(node)),
      isHeldDelete: (node) => answer(this.#heldDeletes.has(node)),
    }
  }

  #above<Id>(from: Id, parentOf: (id: Id) => Id | null | undefined): Id[] {
    const above: Id[] = []
    for (let id: Id | null | undefined = from; id != null && !above.includes(id); id = parentOf(id))
      above.push(id)
    return above
  }

  #hereIn(parentId: number): LocalRow[] {
    return [...this.#local.values()].filter((row) => row.parentId === parentId && !row.isMissing)
  }

  #thereIn(parentId: string): RemoteRow[] {
    return [...this.#remote.values()].filter((row) => row.parentId === parentId && !row.isDeleted)
  }

  #branchHere(id: number): LocalRow[] {
    const branch = [this.#local.get(id)!]
    for (const one of branch) branch.push(...this.#hereIn(one.id))
    return branch
  }

  #branchThere(itemId: string): RemoteRow[] {
    const branch = [this.#remote.get(itemId)!]
    for (const one of branch) branch.push(...this.#thereIn(one.itemId))
    return branch
  }

  #toLocalRow(itemId: string): LocalRow | undefined {
    const id = this.#localIds.get(itemId)
    return id === undefined ? undefined : this.#local.get(id)
  }

  #localIdOf(folder: string | number): number {
    return typeof folder === 'number' ? folder : (this.#toLocalRow(folder)?.id ?? 0)
  }

  #localRow(id: number, name: string, drawn: Drawn, row: Partial<LocalRow>): LocalRow {
    const type = drawn.type ?? 'file'
    return {
      id,
      parentId: drawn.in === undefined ? ROOT_ID : this.#localIdOf(drawn.in),
      name,
      type,
      size: 1,
      hash: type === 'file' ? (drawn.hash ?? 'h') : null,
      sha256: type === 'file' ? (drawn.hash ?? 'h') : null,
      itemId: null,
      isMissing: false,
      unreadable: null,
      dev: '1',
      ino: String(id),
      birthNs: '1',
      mtimeNs: '1',
      ctimeNs: '1',
      ...row,
    }
  }

  #remoteRow(itemId: string, name: string, drawn: Drawn): RemoteRow {
    const type = drawn.type ?? 'file'
    return {
      itemId,
      parentId: String(drawn.in ?? ROOT),
      name,
      type,
      size: 1,
      eTag: 'e',
      cTag: 'c',
      hash: type === 'file' ? (drawn.hash ?? 'h') : null,
      modifiedMs: 0,
      isDeleted: false,
    }
  }
}

/** `verb node`, with `(temporary)` and `after …` where there is something to it. */
export function told({ actions }: Plan): string[] {
  return actions.map(({ node, verb, after, isTemporary }) =>
    [
      verb,
      node,
      ...(isTemporary ? ['(temporary)'] : []),
      ...(after.length > 0 ? [`after ${after.join(' ')}`] : []),
    ].join(' '),
  )
}
