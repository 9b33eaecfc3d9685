/**
 * The living messages: by id, in order of time, and by thread.
 * Invariants: the three views hold the same messages; `sorted` is ordered by compareByTime; a thread
 * without messages does not exist.
 */
import { compareByTime, type StoredMessage } from './mailbox-message.ts'

/** From here on one pass over everything is cheaper than one splice per message. */
const SPLICES_MAX = 16

export class MessageIndex {
  readonly byId = new Map<string, StoredMessage>()
  readonly sorted: StoredMessage[] = []
  /** In order of arrival; a thread of one message is that message, which saves an array for most. */
  readonly #threads = new Map<string, StoredMessage | StoredMessage[]>()

  get threadCount(): number {
    return this.#threads.size
  }

  add(message: StoredMessage): void {
    this.sorted.splice(this.positionOf(message), 0, message)
    this.#register(message)
  }

  /** Many at once: sorted once. */
  addAll(messages: readonly StoredMessage[]): void {
    for (const message of messages) {
      this.sorted.push(message)
      this.#register(message)
    }
    this.sorted.sort(compareByTime)
  }

  removeAll(messages: readonly StoredMessage[]): void {
    const leaving = new Set(messages.filter((message) => this.byId.delete(message.id)))
    if (leaving.size === 0) return
    for (const message of leaving) this.#leaveThread(message)
    if (leaving.size <= SPLICES_MAX) {
      for (const message of leaving) this.sorted.splice(this.positionOf(message), 1)
      return
    }
    let kept = 0
    for (const message of this.sorted) {
      if (!leaving.has(message)) this.sorted[kept++] = message
    }
    this.sorted.length = kept
  }

  /** Oldest first. */
  thread(threadId: string): StoredMessage[] {
    const found = this.#threads.get(threadId)
    if (!found) return []
    return Array.isArray(found) ? found.toSorted(compareByTime) : [found]
  }

  hasThread(threadId: string): boolean {
    return this.#threads.has(threadId)
  }

  /** The first position at or after this moment. */
  positionAt(ms: number): number {
    return this.#lowerBound((message) => message.internalMs < ms)
  }

  /** The first position that is not before this message. */
  positionOf(key: { internalMs: number; id: string }): number {
    return this.#lowerBound((message) => compareByTime(message, key) < 0)
  }

  #lowerBound(isBefore: (message: StoredMessage) => boolean): number {
    let low = 0
    let high = this.sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(this.sorted[middle]!)) low = middle + 1
      else high = middle
    }
    return low
  }

  #register(message: StoredMessage): void {
    this.byId.set(message.id, message)
    const found = this.#threads.get(message.threadId)
    if (!found) this.#threads.set(message.threadId, message)
    else if (Array.isArray(found)) found.push(message)
    else this.#threads.set(message.threadId, [found, message])
  }

  #leaveThread(message: StoredMessage): void {
    const found = this.#threads.get(message.threadId)
    const rest = Array.isArray(found) ? found.filter((one) => one !== message) : []
    if (rest.length === 0) this.#threads.delete(message.threadId)
    else this.#threads.set(message.threadId, rest.length === 1 ? rest[0]! : rest)
  }
}
