/** What a service accepted over the last minute, in slots that live within the controller's state. */
type Slots = { slots: number[]; slotMs: number }

export const WINDOW_MS = 60_000
const SLOTS = 30
const SLOT_MS = WINDOW_MS / SLOTS

/** Units a second over the last minute; the oldest slot counts as far as it lies within. */
export function acceptedRate(state: Slots, nowMs: number): number {
  const oldest = state.slots.length > SLOTS ? state.slots[0]! : 0
  const beyond = Math.min(1, Math.max(0, (nowMs - state.slotMs) / SLOT_MS))
  const total = state.slots.reduce((units, slot) => units + slot, 0) - oldest * beyond
  return (total * 1000) / WINDOW_MS
}

export function turnSlots(state: Slots, nowMs: number): void {
  const turns = Math.floor((nowMs - state.slotMs) / SLOT_MS)
  if (turns <= 0) return
  for (let i = 0; i < Math.min(turns, SLOTS + 1); i++) state.slots.push(0)
  state.slots = state.slots.slice(-SLOTS - 1)
  state.slotMs += turns * SLOT_MS
}

export function addToSlot(state: Slots, units: number): void {
  state.slots[state.slots.length - 1] = (state.slots.at(-1) ?? 0) + units
}
