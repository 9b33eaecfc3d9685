/**
 * The arithmetic of a shared budget, as pure functions over its row, so that every store counts alike.
 *
 * Tokens flow into the members' own shares, each of at most burst / members. What flows towards a full
 * share goes to the others, and when all are full, to `spare`, from which anyone may draw. So members
 * that want all they can get are served evenly whoever draws more often, and a slow one's share is lent.
 */
import { grantSlots, isHolder } from './budget-slots.ts'
import type { BudgetMember, BudgetRow, BudgetView, Draw, Drawn, Tuned, Tuning } from './contract-budgets.ts'

/** A member that neither drew nor reported for this long may be gone; its share of the tokens is lent again. */
export const MEMBER_MS = 3_000
/** A stored time further ahead than this comes from a clock that was set back since. */
const CLOCK_AHEAD_MS_MAX = 10_000
const WAIT_MS_MAX = 60_000
const ROUNDING = 1e-9

/** `gone`: owners whose lease has ended, of those that `suspects` named. */
export function drawFromRow(
  before: BudgetRow | undefined,
  draw: Draw,
  nowMs: number,
  gone: ReadonlySet<number> = new Set(),
): { row: BudgetRow; drawn: Drawn } {
  const row = before ? copyOf(before) : newRow(draw, nowMs)
  flow(row, nowMs)
  drop(row, (other) => other.id !== draw.member && gone.has(other.owner ?? 0))
  const member = memberOf(row, draw)
  row.spare = Math.min(row.burst - heldBy(row.members), row.spare + Math.max(0, draw.giveBack))
  share(row, 0)
  const paused = row.updatedMs < row.pausedUntilMs
  const granted = paused ? 0 : Math.max(0, Math.min(draw.want, member.tokens + row.spare))
  const fromOwn = Math.min(granted, member.tokens)
  member.tokens -= fromOwn
  row.spare -= granted - fromOwn
  const waitMs = waitFor(row, draw.want - granted)
  const slots = grantSlots(row, member, draw, (one) => isHeard(row, one))
  if (draw.leave) drop(row, (other) => other === member)
  row.version += 1
  return { row, drawn: { ...budgetView(row), granted, waitMs, slots } }
}

/** Owners of slots to ask the ledger about before this draw: somebody wants theirs, or they are silent. */
export function suspects(row: BudgetRow, draw: Draw, nowMs: number): number[] {
  const wantsMore = draw.workersWanted > draw.slots
  return row.members
    .filter((one) => one.id !== draw.member && isHolder(one))
    .filter((one) => wantsMore || Math.abs(nowMs - one.seenMs) > MEMBER_MS)
    .map((one) => one.owner!)
}

export function tuneRow(
  before: BudgetRow | undefined,
  tuning: Tuning,
  nowMs: number,
): { row: BudgetRow; tuned: Tuned } {
  const row = before
    ? copyOf(before)
    : newRow({ name: tuning.name, start: { ...tuning } }, nowMs, tuning.version)
  flow(row, nowMs)
  const tuned = row.tunings === tuning.version
  if (tuned) {
    row.rate = tuning.rate
    row.burst = tuning.burst
    row.pausedUntilMs = tuning.pausedUntilMs
    row.controller = tuning.controller
    row.tunings += 1
    share(row, 0)
  }
  row.version += 1
  return { row, tuned: { ...budgetView(row), tuned } }
}

export function budgetView(row: BudgetRow): BudgetView {
  return {
    nowMs: row.updatedMs,
    rate: row.rate,
    burst: row.burst,
    pausedUntilMs: row.pausedUntilMs,
    version: row.tunings,
    controller: row.controller,
    members: sharing(row).length,
    tokens: row.spare + heldBy(row.members),
  }
}

/** The row as the table `budgets` holds it. */
export type BudgetColumns = {
  name: string
  tokens: number
  updated_at: number
  controller: string
  version: number
}

export function budgetColumns(row: BudgetRow): BudgetColumns {
  const { name, spare, updatedMs, version, ...rest } = row
  return { name, tokens: spare, updated_at: updatedMs, controller: JSON.stringify(rest), version }
}

/** Databases return whole numbers as number, bigint or text. */
export function budgetRow(columns: {
  name: string
  tokens: number | string
  updated_at: number | bigint | string
  controller: string
  version: number | bigint | string
}): BudgetRow {
  const rest = JSON.parse(columns.controller) as Omit<BudgetRow, 'name' | 'spare' | 'updatedMs' | 'version'>
  return {
    ...rest,
    name: columns.name,
    spare: Number(columns.tokens),
    updatedMs: Number(columns.updated_at),
    version: Number(columns.version),
  }
}

function newRow(first: Pick<Draw, 'name' | 'start'>, nowMs: number, tunings = 0): BudgetRow {
  const { rate, burst, controller } = first.start
  const updatedMs = Math.floor(nowMs)
  return {
    name: first.name,
    rate,
    burst,
    spare: burst,
    updatedMs,
    version: 0,
    tunings,
    pausedUntilMs: 0,
    members: [],
    controller,
  }
}

function copyOf(row: BudgetRow): BudgetRow {
  return { ...row, members: row.members.map((member) => ({ ...member })) }
}

function isHeard(row: BudgetRow, member: BudgetMember): boolean {
  return Math.abs(row.updatedMs - member.seenMs) <= MEMBER_MS
}

/** Those who share the tokens. */
function sharing(row: BudgetRow): BudgetMember[] {
  return row.members.filter((member) => isHeard(row, member))
}

/** Lets time pass: tokens flow in, members that are gone are dropped. */
function flow(row: BudgetRow, nowMs: number): void {
  // Whole milliseconds, as the column holds; the rest flows in the next time.
  const wholeMs = Math.floor(nowMs)
  const setBack = row.updatedMs - wholeMs > CLOCK_AHEAD_MS_MAX
  // What is left of a pause is left of it still.
  if (setBack) row.pausedUntilMs -= row.updatedMs - wholeMs
  const elapsedMs = Math.max(0, wholeMs - row.updatedMs)
  row.updatedMs = setBack ? wholeMs : Math.max(row.updatedMs, wholeMs)
  drop(row, (member) => !isHeard(row, member) && !isHolder(member))
  for (const member of row.members) {
    if (isHeard(row, member)) continue
    row.spare += member.tokens
    member.tokens = 0
  }
  share(row, (row.rate * elapsedMs) / 1000)
}

function drop(row: BudgetRow, isGone: (member: BudgetMember) => boolean): void {
  row.spare += heldBy(row.members.filter(isGone))
  row.members = row.members.filter((member) => !isGone(member))
}

function memberOf(row: BudgetRow, draw: Draw): BudgetMember {
  let member = row.members.find((other) => other.id === draw.member)
  if (!member) {
    member = { id: draw.member, tokens: 0, seenMs: row.updatedMs, running: 0 }
    row.members.push(member)
  }
  member.seenMs = row.updatedMs
  member.running = draw.running
  member.owner = draw.owner
  return member
}

/** Fills the members' shares evenly with what is spare and `units` more; nothing beyond the burst is kept. */
function share(row: BudgetRow, units: number): void {
  const members = sharing(row)
  const full = members.length > 0 ? row.burst / members.length : 0
  let left = row.spare + units
  for (const member of members) {
    left += Math.max(0, member.tokens - full)
    member.tokens = Math.min(member.tokens, full)
  }
  // Each round fills at least one member or hands out all that is left.
  for (let round = 0; round < members.length && left > ROUNDING; round++) {
    const hungry = members.filter((member) => full - member.tokens > ROUNDING)
    if (hungry.length === 0) break
    const portion = left / hungry.length
    for (const member of hungry) {
      const given = Math.min(portion, full - member.tokens)
      member.tokens += given
      left -= given
    }
  }
  row.spare = Math.max(0, Math.min(left, row.burst - heldBy(members)))
}

function waitFor(row: BudgetRow, missing: number): number {
  if (missing <= ROUNDING) return 0
  const pauseMs = row.pausedUntilMs - row.updatedMs
  if (pauseMs > 0) return pauseMs
  const members = sharing(row).length
  // Half a share: who comes only when it is full has lost what flowed in on the way.
  const worth = Math.min(missing, row.burst / members / 2)
  return row.rate > 0 ? Math.min(WAIT_MS_MAX, Math.ceil((worth * members * 1000) / row.rate)) : WAIT_MS_MAX
}

function heldBy(members: readonly BudgetMember[]): number {
  return members.reduce((sum, member) => sum + member.tokens, 0)
}
