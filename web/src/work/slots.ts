/**
 * Places for what comes and goes: who is there keeps its place until it leaves, and who comes takes the first that is
 * free. Nothing that is being read moves because something above it ended.
 */
import { useRef } from 'preact/hooks'

export type Slots = readonly (number | undefined)[]

/** Free places at the end are given up only by nobody being left: the list does not shrink and grow all the time. */
export function placed(slots: Slots, ids: readonly number[], slotsMax: number): Slots {
  if (ids.length === 0) return []
  const present = new Set(ids)
  const next = slots.map((id) => (id !== undefined && present.has(id) ? id : undefined))
  const seated = new Set(next)
  for (const id of ids) {
    if (seated.has(id)) continue
    const free = next.indexOf(undefined)
    if (free >= 0) next[free] = id
    else if (next.length < slotsMax) next.push(id)
    else break
  }
  return next
}

/** The items by place; undefined where a place is free. */
export function useSlots<Item extends { id: number }>(
  items: readonly Item[],
  slotsMax: number,
): (Item | undefined)[] {
  const slots = useRef<Slots>([])
  const byId = new Map(items.map((item) => [item.id, item]))
  slots.current = placed(slots.current, [...byId.keys()], slotsMax)
  return slots.current.map((id) => (id === undefined ? undefined : byId.get(id)))
}
