/**
 * The actions of a plan, and an order for them in which each comes after those it depends on; circles are broken. Each
 * action and each edge is looked at once: a plan may have a chain as long as it is.
 */
import type { Decision } from './decide.ts'
import type { NodeKey } from './trees.ts'

export type Action = {
  node: NodeKey
  version: number
  verb: ActionVerb
  row: string
  path: string
  bytes: number
  /** Nodes of the same plan whose actions must be done before. */
  after: readonly NodeKey[]
  /** To a name of our own first: `a` becomes `b` while `b` becomes `a`. `isWhole`: with all that is in the folder. */
  isTemporary?: true
  isWhole?: true
}

export type ActionVerb = Exclude<Decision['do'], 'nothing' | 'report' | 'adopt' | 'forget' | 'detach'>

type Ordered = { actions: Action[]; waiting: { action: Action; waitsFor: NodeKey }[] }

/**
 * Edges to nodes without an action in this plan mean waiting. A circle is one of names: one of its moves goes to a
 * temporary name first, which frees its own name and takes none; where there is no move in it, one of it waits.
 */
export function orderActions(all: readonly Action[]): Ordered {
  const order = new Order(all)
  order.dropHopeless()
  for (;;) {
    order.takeReady()
    if (order.left.size === 0) return order.ordered
    order.breakCircle()
  }
}

class Order {
  readonly left: Map<NodeKey, Action>
  readonly ordered: Ordered = { actions: [], waiting: [] }
  /** Who comes after a node. */
  readonly #followers = new Map<NodeKey, NodeKey[]>()
  /** How many of those before it are not done yet. */
  readonly #missing = new Map<NodeKey, number>()
  #ready: NodeKey[] = []

  constructor(all: readonly Action[]) {
    this.left = new Map(all.map((action) => [action.node, { ...action, after: [...new Set(action.after)] }]))
    for (const { node, after } of this.left.values()) {
      this.#missing.set(node, after.length)
      if (after.length === 0) this.#ready.push(node)
      for (const before of after) {
        const followers = this.#followers.get(before)
        if (followers) followers.push(node)
        else this.#followers.set(before, [node])
      }
    }
  }

  /** What depends on something that is not done in this plan waits for it, and so does what depends on that. */
  dropHopeless(): void {
    for (const action of [...this.left.values()]) {
      const missing = action.after.find((node) => !this.#missing.has(node))
      if (missing !== undefined) this.#drop(action, missing)
    }
  }

  #drop(first: Action, waitsFor: NodeKey): void {
    const dropped = [{ action: first, waitsFor }]
    for (const one of dropped) {
      const { node } = one.action
      if (!this.left.delete(node)) continue
      this.ordered.waiting.push(one)
      for (const follower of this.#followers.get(node) ?? []) {
        const action = this.left.get(follower)
        if (action) dropped.push({ action, waitsFor: node })
      }
    }
  }

  takeReady(): void {
    const ready = this.#ready
    this.#ready = []
    for (const node of ready) {
      const action = this.left.get(node)
      if (!action) continue
      this.ordered.actions.push(action)
      this.left.delete(node)
      for (const follower of this.#followers.get(node) ?? []) {
        const missing = this.#missing.get(follower)! - 1
        this.#missing.set(follower, missing)
        if (missing === 0) ready.push(follower)
      }
    }
  }

  breakCircle(): void {
    const circle = this.#findCircle()
    const move = circle.find(({ verb }) => verb === 'move-local' || verb === 'move-remote')
    if (move) {
      this.left.set(move.node, { ...move, after: [], isTemporary: true })
      this.#missing.set(move.node, Number.POSITIVE_INFINITY)
      this.#ready.push(move.node)
    } else this.#drop(circle[0]!, this.#before(circle[0]!))
  }

  /** Every action that is left depends on another one that is left: following them leads into a circle. */
  #findCircle(): Action[] {
    const way: Action[] = []
    const places = new Map<NodeKey, number>()
    let action = this.left.values().next().value!
    while (!places.has(action.node)) {
      places.set(action.node, way.length)
      way.push(action)
      action = this.left.get(this.#before(action))!
    }
    return way.slice(places.get(action.node))
  }

  #before({ after }: Action): NodeKey {
    return after.find((node) => this.left.has(node))!
  }
}
