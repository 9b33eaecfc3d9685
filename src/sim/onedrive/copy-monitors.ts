/** Copies under way: the address that answers 202 until one is done, and then says how it ended. */
import type { Random } from '../../base/random.ts'
import { DriveFault } from './drive-fault.ts'
import type { Item } from './item.ts'

export type CopyState = {
  status: 'inProgress' | 'completed' | 'failed'
  item?: Item
  code?: string
  message?: string
}

const MONITORS_MAX = 10_000

export class CopyMonitors {
  readonly #random: Random
  readonly #states = new Map<string, { state: CopyState; isSeen: boolean }>()

  constructor(random: Random) {
    this.#random = random
  }

  begin(copy: () => Item): string {
    const id = Math.floor(this.#random() * 2 ** 48).toString(36)
    this.#states.set(id, { state: outcomeOf(copy), isSeen: false })
    const [oldest] = this.#states.keys()
    if (this.#states.size > MONITORS_MAX && oldest !== undefined) this.#states.delete(oldest)
    return id
  }

  /** Who asks first is told to ask again. */
  look(id: string): CopyState | undefined {
    const entry = this.#states.get(id)
    if (!entry) return undefined
    if (entry.isSeen) return entry.state
    entry.isSeen = true
    return { status: 'inProgress' }
  }
}

function outcomeOf(copy: () => Item): CopyState {
  try {
    return { status: 'completed', item: copy() }
  } catch (thrown) {
    if (!(thrown instanceof DriveFault)) throw thrown
    return { status: 'failed', code: thrown.code, message: thrown.message }
  }
}
