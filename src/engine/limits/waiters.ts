/**
 * Who waits for units, in the order of arrival within a lane. While both lanes wait, interactive goes
 * first but gets at most three units for each one of bulk, so that neither starves.
 */
import type { Lane } from '../../ledger/contract.ts'

export type Waiter = { units: number; lane: Lane; resolve: () => void; reject: (reason: unknown) => void }

const INTERACTIVE_SHARE = 3

type Line = { waiters: (Waiter | undefined)[]; first: number }

export class Waiters {
  readonly #lines: Record<Lane, Line> = {
    interactive: { waiters: [], first: 0 },
    bulk: { waiters: [], first: 0 },
  }
  /** Units that interactive waiters got while one of bulk was waiting. */
  #overtook = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  add(waiter: Waiter): void {
    this.#lines[waiter.lane].waiters.push(waiter)
    this.#count += 1
  }

  /** Whose turn it is. */
  head(): Waiter | undefined {
    const interactive = headOf(this.#lines.interactive)
    const bulk = headOf(this.#lines.bulk)
    if (!interactive || !bulk) return interactive ?? bulk
    return this.#overtook >= INTERACTIVE_SHARE * bulk.units ? bulk : interactive
  }

  /** Takes the head off after it got its units. */
  shift(): Waiter | undefined {
    const head = this.head()
    if (!head) return undefined
    if (head.lane === 'bulk') this.#overtook = 0
    else if (headOf(this.#lines.bulk)) this.#overtook += head.units
    this.remove(head)
    return head
  }

  remove(waiter: Waiter): boolean {
    const line = this.#lines[waiter.lane]
    const at = line.waiters[line.first] === waiter ? line.first : line.waiters.indexOf(waiter, line.first)
    if (at < 0) return false
    line.waiters[at] = undefined
    this.#count -= 1
    return true
  }

  drain(): Waiter[] {
    const all: Waiter[] = []
    for (let next = this.shift(); next; next = this.shift()) all.push(next)
    return all
  }
}

function headOf(line: Line): Waiter | undefined {
  while (line.first < line.waiters.length && !line.waiters[line.first]) line.first += 1
  // Dropped in bulk, so that taking the first costs O(1) on average however long the line is.
  if (line.first > 1024 && line.first * 2 > line.waiters.length) {
    line.waiters.splice(0, line.first)
    line.first = 0
  }
  return line.waiters[line.first]
}
