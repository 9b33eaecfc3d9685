/**
 * The workers of a budget, as slots that its row grants, so that all processes together stay within the number.
 *
 * Slots are dealt one by one to the members that want some, in the order of the row. Where there are fewer than are
 * wanted, a member that had more than the least share for a while goes to the end of that order: they take turns.
 * Slots go with the lease of their holder: it keeps them, however silent it is (a blocked event loop), until it gives
 * them back or is declared gone, and then they are free at once.
 *
 * Invariants:
 * - a grant never makes the sum of what all members hold (slots, or workers running if more) exceed the number
 * - only a member's own draw changes its slots, so that what it believes to have is never more than the row says
 * - where members know different numbers (settings that differ), the least of those who use the budget holds
 */
import type { BudgetMember, BudgetRow, Draw } from './contract-budgets.ts'

/** Long enough that handing over costs little, short enough that nobody waits for long. */
const TURN_MS = 5_000

/**
 * What the member keeps from the others. One without a lease runs no jobs: its calls wait for no slot, so that it would
 * never give one back. What another version of the program left has neither.
 */
export function heldSlots({ slots = 0, owner, running }: BudgetMember): number {
  return owner === 0 ? slots : Math.max(slots, running)
}

/** Who holds slots by a lease, so that only the end of that lease frees them. */
export function isHolder(member: BudgetMember): boolean {
  return (member.owner ?? 0) !== 0 && heldSlots(member) > 0
}

/** Grants the member its slots; `isLive` tells those who are heard of from those who are only at work still. */
export function grantSlots(
  row: BudgetRow,
  member: BudgetMember,
  draw: Draw,
  isLive: (member: BudgetMember) => boolean,
): number {
  const wantedBy = (one: BudgetMember): number =>
    isLive(one) ? Math.max(one.owner === 0 ? 0 : one.running, one.wanted ?? 0) : heldSlots(one)
  member.wanted = draw.workersWanted
  member.workersMax = draw.workersMax
  const max = row.members
    .filter((one) => isLive(one) && wantedBy(one) > 0)
    .reduce((least, { workersMax = least }) => Math.min(least, workersMax), draw.workersMax)
  takeTurns(row, member, max, wantedBy)
  const others = row.members.filter((other) => other !== member)
  const left = max - sum(others, wantedBy)
  const fair = Math.max(left, dealtTo(row.members, member, max, wantedBy))
  const free = max - sum(others, heldSlots)
  const granted = Math.max(0, Math.min(fair, free, Math.max(draw.slots, draw.workersWanted)))
  // What is less than before takes effect once the member has heard of it and says so.
  member.slots = Math.max(draw.slots, granted)
  return granted
}

type Count = (member: BudgetMember) => number

function takeTurns(row: BudgetRow, member: BudgetMember, max: number, wantedBy: Count): void {
  const wanting = row.members.filter((one) => wantedBy(one) > 0).length
  const least = Math.floor(max / Math.max(1, wanting))
  if (heldSlots(member) <= least) {
    member.turnMs = 0
    return
  }
  member.turnMs ||= row.updatedMs
  if (sum(row.members, wantedBy) <= max || Math.abs(row.updatedMs - member.turnMs) < TURN_MS) return
  row.members = [...row.members.filter((other) => other !== member), member]
  member.turnMs = row.updatedMs
}

function dealtTo(members: readonly BudgetMember[], to: BudgetMember, max: number, wantedBy: Count): number {
  const wanted = members.map(wantedBy)
  const mine = members.indexOf(to)
  let left = max
  for (let dealt = 0; ; dealt++) {
    for (let i = 0; i < members.length; i++) {
      if (wanted[i]! <= dealt) {
        if (i === mine) return dealt
        continue
      }
      if (left <= 0) return i <= mine ? dealt : dealt + 1
      left -= 1
    }
  }
}

function sum(members: readonly BudgetMember[], count: Count): number {
  return members.reduce((total, member) => total + count(member), 0)
}
