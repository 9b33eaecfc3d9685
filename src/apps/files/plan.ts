/**
 * From open nodes to actions: decisions, the order in which they can be done, names that are in each other's way, and
 * the guard against big deletions. A pure function: what it must know around a node is passed in.
 *
 * Edges between the actions of one plan:
 * - a folder before what comes into it
 * - who gives up a name before who takes it; a circle of names is broken by a temporary one
 * - what is in a folder before the folder is deleted
 * What an action needs from a node outside of the plan, it waits for. An edge too few costs a second try, since every
 * action looks before it acts; so this is about getting there, and never about what is safe.
 */
import { type Case, type Decision, decide, isOverwrite, type Mode, replacesNewer } from './decide.ts'
import {
  type DeleteGuard,
  type Held,
  isAllowed,
  isHeld,
  judgeOverwrite,
  type OverwriteGuard,
  withReplaced,
} from './guard.ts'
import type { Reason } from './left-code.ts'
import { type Action, type ActionVerb, orderActions } from './plan-order.ts'
import { itemNode, type NodeKey, sameSpelling } from './trees.ts'

export type PlanNode = Case & {
  node: NodeKey
  /** Of its open row: an action closes the node only while this has not changed. */
  version: number
  /** For people, and for the order: relative to the root. */
  path: string
}

type Bookkeeping = Extract<Decision, { do: 'adopt' | 'forget' | 'detach' }>

export type Plan = {
  actions: Action[]
  /** Changes of rows alone, done with the plan's own commit. A node that they leave open is planned once more. */
  bookkeeping: { node: NodeKey; version: number; decision: Bookkeeping }[]
  /** Planned again when that node's action has ended. `was`: how that stood when the rows were read. */
  waiting: { node: NodeKey; version: number; waitsFor: NodeKey; because: string; was?: NodeState }[]
  /** Left alone, and said; looked at again when `until` has ended. */
  reported: (Reason & { node: NodeKey; version: number; until?: NodeKey; was?: NodeState })[]
  /** Deletions and replacements that were not planned because there are too many: people are asked. */
  heldDeletes: Held | undefined
}

export type PlanOptions = { mode: Mode; guard: DeleteGuard; overwrites?: OverwriteGuard | undefined }

const WAITS_MAX = 100

/** Where the folder, what is in it, or what else must come first has a reason of its own. */
const FOLDER_LEFT: Reason = { code: 'folder-left', because: 'its folder is left alone' }
const CONTENT_LEFT: Reason = { code: 'content-left', because: 'something in it is left alone' }
const OTHER_LEFT: Reason = { code: 'other-left', because: 'another that must be done first is left alone' }

const HELD_DELETE: Reason = { code: 'held-delete', because: 'its deletion waits for a yes' }
const HELD_OVERWRITE: Reason = { code: 'held-overwrite', because: 'another version of it waits for a yes' }
/** Of what keeps its name meanwhile: a conflict copy would be made of what only one side has changed. */
const HELD_NAME: Reason = {
  code: 'held-name',
  because: 'the deletion of what has its name on the other side waits for a yes',
}

export function plan(nodes: readonly PlanNode[], around: Surroundings, options: PlanOptions): Plan {
  const planner = new Planner(nodes, around, options)
  for (const node of nodes) planner.decide(node)
  planner.holdOverwrites()
  planner.turnBack()
  for (const node of nodes) planner.arrange(node)
  return planner.finish()
}

const DELETES: ReadonlySet<Decision['do']> = new Set(['delete-local', 'delete-remote'])
const BOOKKEEPING: ReadonlySet<Decision['do']> = new Set(['adopt', 'forget', 'detach'])

class Planner {
  readonly #nodes: ReadonlyMap<NodeKey, PlanNode>
  readonly #around: Surroundings
  readonly #options: PlanOptions
  readonly #decisions = new Map<NodeKey, Decision>()
  readonly #actions = new Map<NodeKey, Action>()
  /** Something new here, and the item of its name that it is looked at together with. */
  readonly #pairs = new Map<NodeKey, NodeKey>()
  /** Who waits for whom, by what this plan has found so far. */
  readonly #waits = new Map<NodeKey, NodeKey>()
  readonly #heldFolders = new Set<NodeKey>()
  readonly #begun = new Set<NodeKey>()
  readonly #held = new Set<'deletes' | 'overwrites'>()
  readonly #plan: Plan = { actions: [], bookkeeping: [], waiting: [], reported: [], heldDeletes: undefined }

  constructor(nodes: readonly PlanNode[], around: Surroundings, options: PlanOptions) {
    this.#nodes = new Map(nodes.map((node) => [node.node, node]))
    for (const { node, local } of nodes) {
      if (local?.itemId !== null || node === `l:${local.id}`) continue
      const first = this.#pairs.get(`l:${local.id}`)
      // OneDrive has one of a name at a time: of two that are known, one is gone, and that is found out soon.
      if (first === undefined) this.#pairs.set(`l:${local.id}`, node)
      else this.#pairs.set(node, first)
    }
    this.#around = around
    this.#options = options
  }

  /** What becomes of a folder depends on what is in it: that is decided first. */
  decide(node: PlanNode): void {
    if (this.#begun.has(node.node)) return
    this.#begun.add(node.node)
    const pair = this.#pairs.get(node.node)
    if (pair !== undefined) {
      this.#wait(node, pair, 'OneDrive has something of its name')
      return
    }
    const unknown = this.#unknownAbove(node.local?.parentId)
    if (unknown !== undefined && !isNowhere(node)) {
      this.#plan.reported.push({
        node: node.node,
        version: node.version,
        ...FOLDER_LEFT,
        until: unknown,
      })
      return
    }
    const survivors = this.#survivors(node)
    if (typeof survivors === 'boolean') {
      const decision = decide({ ...node, hasSurvivors: survivors }, this.#options.mode)
      this.#decisions.set(node.node, this.#guarded(decision, node))
    } else if ('waitsFor' in survivors) this.#wait(node, survivors.waitsFor, 'what is in it comes first')
    else {
      if (survivors.code === 'held-delete') this.#heldFolders.add(node.node)
      this.#plan.reported.push({ node: node.node, version: node.version, ...survivors })
    }
  }

  /**
   * A folder that was moved here into what OneDrive has inside of it, with nothing in between that leaves it there,
   * goes back to where OneDrive has it.
   */
  turnBack(): void {
    for (let changed = true; changed; ) {
      changed = false
      for (const { node, local, remote } of this.#nodes.values()) {
        const decision = this.#decisions.get(node)
        if (decision?.do !== 'move-remote' || local?.type !== 'folder') continue
        const parent = this.#around.localFolder(local.parentId ?? 0)
        const between = parent?.itemId == null ? undefined : this.#between(parent.itemId, remote!.itemId)
        if (!between || between.some((folder) => this.#decisions.get(folder)?.do === 'move-remote')) continue
        this.#decisions.set(node, this.#turnedBack(decision.row))
        changed = true
      }
    }
  }

  #turnedBack(row: string): Decision {
    if (this.#options.mode !== 'upload-only') return { do: 'move-local', row }
    return { do: 'report', row, because: 'in OneDrive it would be inside of itself, and only uploads are on' }
  }

  /** Folders of OneDrive from this one up to the other, without that; undefined where it is not inside of it. */
  #between(itemId: string, above: string): NodeKey[] | undefined {
    const ancestors = this.#around.remoteAncestors(itemId)
    const end = ancestors.indexOf(above)
    return end === -1 ? undefined : ancestors.slice(0, end).map(itemNode)
  }

  arrange(node: PlanNode): void {
    const decision = this.#decisions.get(node.node)
    if (!decision) return
    const { version } = node
    if (decision.do === 'report' || decision.do === 'nothing') {
      const { code, because } = decision
      // The end of that move may be seen by a look, and not by the move itself: then the look is who frees it.
      const until = code === 'in-exchange' ? { until: node.node } : {}
      this.#plan.reported.push({ node: node.node, version, code, because, ...until })
    } else if (BOOKKEEPING.has(decision.do)) {
      this.#plan.bookkeeping.push({ node: node.node, version, decision: decision as Bookkeeping })
    } else this.#act(node, decision as Decision & { do: ActionVerb })
  }

  finish(): Plan {
    const { actions, waiting } = orderActions([...this.#actions.values()])
    const left = new Set(this.#plan.reported.map(({ node }) => node))
    // In an order in which each comes after what it waits for.
    for (const { action, waitsFor } of waiting) {
      const { node, version } = action
      if (left.has(waitsFor)) {
        left.add(node)
        this.#plan.reported.push({ node, version, ...OTHER_LEFT, until: waitsFor })
      } else this.#plan.waiting.push({ node, version, waitsFor, because: 'another must be done first' })
    }
    return { ...this.#plan, actions }
  }

  #guarded(decision: Decision, { local }: PlanNode): Decision {
    const { guard } = this.#options
    if (!DELETES.has(decision.do)) return decision
    // Nobody saw it being deleted: it went missing while something else had its place, or nobody could look.
    const isDoubtful = local?.isMissing === true && local.unreadable !== null && !isAllowed(guard)
    if (!isDoubtful && !isHeld(guard)) return decision
    this.#hold('deletes')
    return { do: 'report', row: decision.row, ...HELD_DELETE }
  }

  /** Those that somebody is asked about, each kind with its whole number. */
  #hold(what: 'deletes' | 'overwrites'): void {
    const { guard, overwrites } = this.#options
    this.#held.add(what)
    const deletes = this.#held.has('deletes') ? guard.deletes : { local: 0, remote: 0 }
    const isReplaced = overwrites && this.#held.has('overwrites')
    this.#plan.heldDeletes = isReplaced ? withReplaced(deletes, overwrites.ahead) : deletes
  }

  /**
   * Many files that get other contents at once, or contents of before, wait for a yes. As long as it is not known how
   * many there are, because some of them are still being read, those that are known wait for that.
   */
  holdOverwrites(): void {
    const { overwrites: guard } = this.#options
    if (!guard) return
    let { reading } = guard
    for (const [node, decision] of this.#decisions) if (decision.do === 'check') reading = node
    for (const node of this.#nodes.values()) {
      const decision = this.#decisions.get(node.node)
      if (!decision || !isOverwrite(decision)) continue
      const isOlder = replacesNewer(node, decision) && !guard.chosen.has(node.node)
      const verdict = judgeOverwrite(guard, { isOlder })
      if (verdict === 'held') {
        this.#hold('overwrites')
        this.#decisions.set(node.node, { do: 'report', row: decision.row, ...HELD_OVERWRITE })
      } else if (verdict === 'unclear' && reading !== undefined) {
        this.#decisions.delete(node.node)
        this.#wait(node, reading, 'others are read first')
      }
    }
  }

  /** The nearest folder above that cannot be looked into: nothing is done in it. */
  #unknownAbove(folderId: number | null | undefined): NodeKey | undefined {
    if (folderId == null) return undefined
    for (const id of this.#around.localAncestors(folderId)) {
      const folder = this.#around.localFolder(id)
      if (folder?.isUnknown) return folder.node
    }
    return undefined
  }

  /** For a folder that one side has deleted: is there something in it that stays? Else what must be known first. */
  #survivors({
    node: own,
    base,
    local,
    remote,
  }: PlanNode): boolean | { waitsFor: NodeKey } | (Reason & { until: NodeKey }) {
    if (base?.type !== 'folder') return false
    const [isHere, isThere] = [
      local !== undefined && !local.isMissing,
      remote !== undefined && !remote.isDeleted,
    ]
    if (isHere === isThere) return false
    const children = isHere ? this.#around.localChildren(local!.id) : this.#around.remoteChildren(base.itemId)
    const leaving = isHere ? LEAVES_LOCALLY : LEAVES_REMOTELY
    let unknown: NodeKey | undefined
    let left: NodeKey | undefined
    let going: NodeKey | undefined
    let hasSurvivors = false
    let isGuarded = false
    for (const child of children) {
      const node = this.#nodes.get(child)
      if (node) this.decide(node)
      const decision = this.#decisions.get(child)
      const state = this.#around.stateOf(child)
      if (this.#isHeldDelete(child)) isGuarded = true
      if (decision ? GOES.has(decision.do) : state === 'in work') going = child
      if (decision?.do === 'check') unknown = child
      else if (decision?.do === 'report' || decision?.do === 'nothing') left = child
      else if (!decision && state === 'stuck' && !this.#isWaitingFor(child, own)) left = child
      else if (!decision && state !== 'in step' && !this.#isWaitingFor(child, own)) unknown = child
      else if (!decision || !leaving.has(decision.do)) hasSurvivors = true
    }
    // Once the folder here is a new one, what is in it looks moved, and would stay: so what goes is gone before.
    if (hasSurvivors) return isHere && going !== undefined ? { waitsFor: going } : true
    if (unknown !== undefined) return { waitsFor: unknown }
    if (left === undefined) return false
    return { ...(isGuarded ? HELD_DELETE : CONTENT_LEFT), until: left }
  }

  /** Waiting for each other would never end. What waits for its folder wants to be in it. */
  #isWaitingFor(node: NodeKey, other: NodeKey): boolean {
    let next: NodeKey | undefined = node
    for (let steps = 0; next !== undefined && steps < WAITS_MAX; steps++) {
      next = this.#around.waitsFor?.(next)
      if (next === other) return true
    }
    return false
  }

  #isUndecided(node: NodeKey): boolean {
    const state = this.#around.stateOf(node)
    return state === 'open' || state === 'in work'
  }

  #isLeft(node: NodeKey): boolean {
    const decision = this.#decisions.get(node)
    if (!decision) return this.#around.stateOf(node) === 'stuck'
    return decision.do === 'report' || decision.do === 'nothing'
  }

  #act(node: PlanNode, decision: Decision & { do: ActionVerb }): void {
    const wish = this.#wishOf(node, decision.do)
    const found: Found = wish ? this.#place(node, wish) : { after: this.#leaving(node, decision.do) }
    if ('waitsFor' in found) {
      this.#wait(node, found.waitsFor, found.because)
      return
    }
    if ('because' in found) {
      this.#plan.reported.push({ node: node.node, version: node.version, ...found })
      return
    }
    const bytes = decision.do === 'upload' ? (node.local?.size ?? 0) : (node.remote?.size ?? 0)
    this.#actions.set(node.node, {
      node: node.node,
      version: node.version,
      row: decision.row,
      path: node.path,
      after: found.after,
      verb: found.verb ?? decision.do,
      bytes: decision.do === 'upload' || decision.do === 'download' ? bytes : 0,
    })
  }

  /** The name that an action takes, and on which side. */
  #wishOf({ base, local, remote }: PlanNode, verb: ActionVerb): Wish | undefined {
    const isNew = !base || local === undefined || local.isMissing
    if (verb === 'mkdir-local' || verb === 'move-local' || (verb === 'download' && isNew)) {
      return { side: 'local', parentId: remote!.parentId ?? '', name: remote!.name, verb }
    }
    if (verb === 'mkdir-remote' || verb === 'move-remote' || (verb === 'upload' && !base)) {
      return { side: 'remote', parentLocalId: local!.parentId ?? 0, name: local!.name, verb }
    }
    return undefined
  }

  #place(node: PlanNode, wish: Wish): Found {
    return wish.side === 'local' ? this.#placeLocally(node, wish) : this.#placeRemotely(node, wish)
  }

  #placeLocally(node: PlanNode, { parentId, name, verb }: Wish & { side: 'local' }): Found {
    const parent = this.#around.localFolderOf(parentId)
    const parentNode = itemNode(parentId)
    const way = parent?.isHere && verb !== 'move-local' ? 'root' : this.#around.wayUp(parentId)
    if (way !== 'root') return { because: LOST[way], until: parentNode }
    if (!parent?.isHere) {
      const decision = this.#decisions.get(parentNode)
      if (decision?.do === 'mkdir-local') return { after: [parentNode] }
      if (this.#isLeft(parentNode)) return { ...FOLDER_LEFT, until: parentNode }
      return { waitsFor: parentNode, because: 'its folder is not here yet' }
    }
    const { localId } = parent
    const unknown = this.#unknownAbove(localId)
    if (unknown !== undefined) return { ...FOLDER_LEFT, until: unknown }
    if (verb === 'move-local') {
      const inside = this.#insideItself(node.local!.id, localId)
      if (inside) return inside
    }
    const occupant = this.#around.localOccupant(localId, name)
    if (occupant === undefined || occupant === node.node || this.#isPair(node, occupant)) return { after: [] }
    if (this.#leavesName(occupant, LEAVES_LOCALLY)) return { after: [occupant] }
    const pending = this.#pending(occupant, node.node)
    if (pending) return pending
    if (this.#isUndecided(occupant) && !this.#isLeft(occupant)) {
      return { waitsFor: occupant, because: 'its name is taken' }
    }
    return { because: 'something that is not synced has its name here', until: occupant }
  }

  #placeRemotely(node: PlanNode, { parentLocalId, name, verb }: Wish & { side: 'remote' }): Found {
    const parent = this.#around.localFolder(parentLocalId)
    if (!parent) return { because: 'its folder is not known' }
    const decision = this.#decisions.get(parent.node)
    if (parent.itemId === null) {
      if (decision?.do === 'mkdir-remote') return { after: [parent.node] }
      if (this.#isLeft(parent.node)) return { ...FOLDER_LEFT, until: parent.node }
      return { waitsFor: parent.node, because: 'its folder is not in OneDrive yet' }
    }
    const between = verb === 'move-remote' && this.#between(parent.itemId, node.remote!.itemId)
    if (between) return { after: between.filter((one) => this.#decisions.get(one)?.do === 'move-remote') }
    const occupant = this.#around.remoteOccupant(parent.itemId, name)
    if (occupant === undefined || occupant.node === node.node) return { after: [] }
    if (this.#leavesName(occupant.node, LEAVES_REMOTELY)) return { after: [occupant.node] }
    const pending = this.#pending(occupant.node, node.node)
    if (pending) return pending
    if (!this.#decisions.has(occupant.node) && this.#isUndecided(occupant.node)) {
      return { waitsFor: occupant.node, because: 'its name is taken' }
    }
    const isBothHere =
      !sameSpelling(occupant.name, name) &&
      this.#around.localOccupant(parentLocalId, occupant.name) === occupant.node
    if (isBothHere) {
      const because = `OneDrive takes ${occupant.name} and ${name} for the same name`
      return { because, until: occupant.node }
    }
    // OneDrive keeps the name: the local one gets another. Where only uploads are on, nothing is renamed here.
    if (this.#options.mode === 'upload-only') {
      return {
        because: 'OneDrive has something else of its name, and only uploads are on',
        until: occupant.node,
      }
    }
    return { after: [], verb: 'conflict' }
  }

  /**
   * Who has the name may give it up, but not by this plan: its deletion waits for a yes, or it waits for somebody who
   * does, or who is at work. Then so does who wants the name.
   */
  #pending(occupant: NodeKey, own: NodeKey): Found | undefined {
    let next: NodeKey | undefined = occupant
    for (let steps = 0; next !== undefined && next !== own && steps < WAITS_MAX; steps++) {
      const decision = this.#decisions.get(next)
      if (this.#isHeldDelete(next)) return { ...HELD_NAME, until: next }
      const before: NodeKey | undefined = decision
        ? undefined
        : (this.#waits.get(next) ?? this.#around.waitsFor?.(next))
      const isGoingOn = decision ? !this.#isLeft(next) : before === undefined && this.#isUndecided(next)
      if (isGoingOn && next !== occupant) return { waitsFor: occupant, because: 'its name is taken' }
      if (before === next) return undefined
      next = before
    }
    return undefined
  }

  /** By this plan, or since an earlier one. */
  #isHeldDelete(node: NodeKey): boolean {
    const decision = this.#decisions.get(node)
    if (decision) return decision.do === 'report' && decision.code === 'held-delete'
    return this.#heldFolders.has(node) || this.#around.isHeldDelete?.(node) === true
  }

  /** A new folder that is inside of what is to be moved into it must leave it first. */
  #insideItself(localId: number, newFolderId: number): Found | undefined {
    const ancestors = this.#around.localAncestors(newFolderId)
    const end = ancestors.indexOf(localId)
    if (end === -1) return undefined
    const between = ancestors.slice(0, end).flatMap((id) => this.#around.localFolder(id)?.node ?? [])
    const leaving = between.filter((one) => this.#decisions.get(one)?.do === 'move-local')
    if (leaving.length > 0) return { after: leaving }
    const waitsFor = between.find((one) => this.#isUndecided(one)) ?? between[0]!
    return { waitsFor, because: 'its new folder is inside of it' }
  }

  #leavesName(occupant: NodeKey, leaving: ReadonlySet<Decision['do']>): boolean {
    const decision = this.#decisions.get(occupant)
    return decision !== undefined && leaving.has(decision.do)
  }

  /** The local row with that name is the other side of this very node. */
  #isPair({ local }: PlanNode, occupant: NodeKey): boolean {
    return local !== undefined && occupant === `l:${local.id}`
  }

  /** A folder is deleted after everything in it has left. */
  #leaving({ node, base, local }: PlanNode, verb: ActionVerb): NodeKey[] {
    if (base?.type !== 'folder' || !DELETES.has(verb)) return []
    const children =
      verb === 'delete-local'
        ? this.#around.localChildren(local!.id)
        : this.#around.remoteChildren(base.itemId)
    return children.filter((child) => child !== node && this.#decisions.has(child))
  }

  #wait({ node, version }: PlanNode, waitsFor: NodeKey, because: string): void {
    this.#waits.set(node, waitsFor)
    this.#plan.waiting.push({ node, version, waitsFor, because })
  }
}

/** Gone on both sides. */
function isNowhere({ local, remote }: PlanNode): boolean {
  return (!local || local.isMissing) && (!remote || remote.isDeleted)
}

/** Deleted here, or perhaps: that shows when its content is known. */
const GOES: ReadonlySet<Decision['do']> = new Set(['delete-local', 'check'])
const LEAVES_LOCALLY: ReadonlySet<Decision['do']> = new Set(['delete-local', 'move-local', 'conflict'])
const LEAVES_REMOTELY: ReadonlySet<Decision['do']> = new Set(['delete-remote', 'move-remote'])

type Wish =
  | { side: 'local'; parentId: string; name: string; verb: ActionVerb }
  | { side: 'remote'; parentLocalId: number; name: string; verb: ActionVerb }

type Found =
  | { after: readonly NodeKey[]; verb?: ActionVerb }
  | { waitsFor: NodeKey; because: string }
  | (Reason & { until?: NodeKey })

export type NodeState = 'in step' | 'open' | 'in work' | 'stuck'

/** `circle`: folders that are inside of each other. `nowhere`: to one that OneDrive has not told of, or has deleted. */
export type WayUp = 'root' | 'circle' | 'nowhere'

/** After all changes were heard: whatever it is, waiting for it might never end. */
export const LOST: Record<Exclude<WayUp, 'root'>, string> = {
  circle: 'OneDrive has its folders inside of each other, in a circle',
  nowhere: 'OneDrive does not say where its folder is',
}

export type LocalFolder = {
  node: NodeKey
  itemId: string | null
  /** It is here, as far as anybody knows, and what is in it cannot be looked at. */
  isUnknown?: boolean
}

/** What is around the nodes of a plan, on either side. Undefined: nothing is there, or nobody knows of it. */
export type Surroundings = {
  /** The local side of a folder of OneDrive. */
  localFolderOf(itemId: string): { localId: number; isHere: boolean } | undefined
  /** A local folder, and its item where it has one that OneDrive still has. */
  localFolder(localId: number): LocalFolder | undefined
  /** Who has this name in that folder now, whatever its case; here the very same spelling comes first. */
  remoteOccupant(parentId: string, name: string): { node: NodeKey; name: string } | undefined
  localOccupant(parentLocalId: number, name: string): NodeKey | undefined
  /** Nodes right below it that are there on that side. */
  remoteChildren(itemId: string): readonly NodeKey[]
  localChildren(localId: number): readonly NodeKey[]
  /** Folders above it on that side, nearest first, itself included. */
  remoteAncestors(itemId: string): readonly string[]
  localAncestors(localId: number): readonly number[]
  /** Where the folders of OneDrive lead from this one up. */
  wayUp(itemId: string): WayUp
  stateOf(node: NodeKey): NodeState
  /** Of a node that is open and waits, or is left alone until another one has ended: for which one. */
  waitsFor?(node: NodeKey): NodeKey | undefined
  /** Its deletion waits for a yes since an earlier plan. */
  isHeldDelete?(node: NodeKey): boolean
}
