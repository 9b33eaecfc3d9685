/**
 * Lanes: workers are divided so that neither lane can starve the other.
 *
 * Each lane has reserved workers (max(2, total/8)), the rest are shared with interactive first. A lane with
 * nothing to do lends its reserved workers, all but one: a lent worker comes back only when its job ends, and
 * a ten-minute upload must not make the first interactive job wait. See docs/adr/0004-lanes.md.
 */
import type { Lane } from '../ledger/contract.ts'

export const RESERVED_MIN = 2
const RESERVED_SHARE = 8

export function reservedWorkers(total: number): number {
  const wanted = Math.max(RESERVED_MIN, Math.floor(total / RESERVED_SHARE))
  // A handful of workers cannot be reserved twice over; one stays shared.
  return Math.max(0, Math.min(wanted, Math.floor((total - 1) / 2)))
}

export type LaneLoad = { running: Readonly<Record<Lane, number>>; waiting: Readonly<Record<Lane, number>> }

export const otherLane = (lane: Lane): Lane => (lane === 'interactive' ? 'bulk' : 'interactive')

/** How many jobs the lane may run at once, given what the other lane needs kept free. */
export function laneCapacity(lane: Lane, total: number, load: LaneLoad): number {
  const other = otherLane(lane)
  const reserved = reservedWorkers(total)
  const keep = load.waiting[other] > 0 ? reserved : Math.min(reserved, 1)
  return total - Math.max(keep, load.running[other])
}

export function mayStart(lane: Lane, total: number, load: LaneLoad): boolean {
  return load.running[lane] < laneCapacity(lane, total, load)
}
