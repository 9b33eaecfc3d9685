/** Puts the actions of a plan into an order in which each comes after those it depends on, and breaks circles. */
import type { Action } from './plan.ts'
import type { NodeKey } from './trees.ts'

type Ordered = { actions: Action[]; waiting: { action: Action; waitsFor: NodeKey }[] }

/**
 * Edges to nodes without an action in this plan mean waiting. A circle is one of names: one of its moves goes to a
 * temporary name first, which frees its own name and takes none; where there is no move in it, one of it waits.
 */
export function orderActions(all: readonly Action[]): Ordered {
  const left = new Map(all.map((action) => [action.node, action]))
  const ordered: Ordered = { actions: [], waiting: [] }
  const done = new Set<NodeKey>()
  dropHopeless(left, ordered)
  while (left.size > 0) {
    const ready = [...left.values()].filter(({ after }) => after.every((node) => done.has(node)))
    if (ready.length === 0) breakCircle(left, ordered)
    for (const action of ready) {
      ordered.actions.push(action)
      done.add(action.node)
      left.delete(action.node)
    }
    dropHopeless(left, ordered, done)
  }
  return ordered
}

/** What depends on something that is not done in this plan waits for it, and so does what depends on that. */
function dropHopeless(
  left: Map<NodeKey, Action>,
  ordered: Ordered,
  done: ReadonlySet<NodeKey> = new Set(),
): void {
  for (let changed = true; changed; ) {
    changed = false
    for (const action of left.values()) {
      const missing = action.after.find((node) => !left.has(node) && !done.has(node))
      if (missing === undefined) continue
      ordered.waiting.push({ action, waitsFor: missing })
      left.delete(action.node)
      changed = true
    }
  }
}

function breakCircle(left: Map<NodeKey, Action>, ordered: Ordered): void {
  const circle = findCircle(left)
  const move = circle.find(({ verb }) => verb === 'move-local' || verb === 'move-remote')
  if (move) {
    left.set(move.node, { ...move, after: [], isTemporary: true })
    return
  }
  const first = circle[0]!
  ordered.waiting.push({ action: first, waitsFor: first.after.find((node) => left.has(node))! })
  left.delete(first.node)
}

/** Every action that is left depends on another one that is left: following them leads into a circle. */
function findCircle(left: ReadonlyMap<NodeKey, Action>): Action[] {
  const way: Action[] = []
  const places = new Map<NodeKey, number>()
  let action = left.values().next().value!
  while (!places.has(action.node)) {
    places.set(action.node, way.length)
    way.push(action)
    action = left.get(action.after.find((node) => left.has(node))!)!
  }
  return way.slice(places.get(action.node))
}
