/** What the plan asks about the trees around its nodes. The store answers it (store/plan-view.ts), and so do tests. */
import type { NodeKey } from './trees.ts'

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
