/** The SQS queues of one cloud by their names: what the service answers from, and where objects are announced. */
import { UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import { type QueueSettings, SimQueue } from '../queues/queue.ts'
import { type Kernel, randomFor } from '../service.ts'

export const HELD_MS_MAX = 43_200_000
const DAY_MS = 86_400_000
const QUEUES_MAX = 10_000

const worlds = new WeakMap<Kernel, SqsQueues>()

/** One for each cloud: other services send to its queues. */
export function sqsQueues(kernel: Kernel): SqsQueues {
  const known = worlds.get(kernel) ?? new SqsQueues(kernel)
  worlds.set(kernel, known)
  return known
}

export class SqsQueues {
  readonly all = new Map<string, SimQueue>()
  readonly #kernel: Kernel
  readonly #random: Random

  constructor(kernel: Kernel) {
    this.#kernel = kernel
    this.#random = randomFor(kernel, 0x5a5)
  }

  /** The queue of that name, made if there is none. `.fifo` at the end makes it an ordered one. */
  create(name: string, settings: Partial<QueueSettings> = {}): SimQueue {
    const known = this.all.get(name)
    if (known) return Object.assign(known, { settings: Object.assign(known.settings, settings) })
    if (!/^[\w-]{1,75}(?:\.fifo)?$/.test(name)) throw new UsageError(`"${name}" is no name of a queue.`)
    if (this.all.size >= QUEUES_MAX) throw new UsageError(`There can be ${QUEUES_MAX} queues at most.`)
    const queue = new SimQueue(name, {
      clock: this.#kernel.clock,
      newId: () => uuidOf(this.#random),
      settings: {
        visibilityMs: 30_000,
        delayMs: 0,
        retentionMs: 4 * DAY_MS,
        isOrdered: name.endsWith('.fifo'),
        isByContent: false,
        heldMsMax: HELD_MS_MAX,
        deadLetter: null,
        ...settings,
      },
    })
    this.all.set(name, queue)
    return queue
  }

  /** For tests, which know that it is there. */
  queue(name: string): SimQueue {
    const queue = this.all.get(name)
    if (queue) return queue
    throw new UsageError(`There is no queue ${name}.`, { code: 'sim-not-found' })
  }
}

export function uuidOf(random: Random): string {
  const hex = Array.from({ length: 4 }, () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('')
  const version = `4${hex.slice(13, 16)}`
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
