/** What was called and how it was answered: counts for ever, the calls themselves only for a while. */
import type { ServedCall } from './server.ts'

const LOG_MAX = 1_000

export type CallCounts = Record<string, Record<string, number>>
/** Bytes of bodies: `received` from callers, `sent` to them, also where the exchange broke off. */
export type ByteCounts = { received: number; sent: number }

export class CallLog {
  readonly #ring: ServedCall[] = []
  #next = 0
  #requests: CallCounts = {}
  #parts: CallCounts = {}
  #faults: Record<string, number> = {}
  #bytes: Record<string, ByteCounts> = {}

  /** Requests so far. */
  get served(): number {
    return this.#next
  }

  note(served: ServedCall): void {
    this.#ring[this.#next % LOG_MAX] = served
    this.#next += 1
    count(this.#requests, served.operation, served.status)
    if (served.fault !== undefined) this.#faults[served.fault] = (this.#faults[served.fault] ?? 0) + 1
  }

  notePart(name: string, status: number): void {
    count(this.#parts, name, status)
  }

  noteBytes(operation: string, { received = 0, sent = 0 }: { received?: number; sent?: number }): void {
    this.#bytes[operation] ??= { received: 0, sent: 0 }
    const bytes = this.#bytes[operation]
    bytes.received += received
    bytes.sent += sent
  }

  bytesOf(operation: string): ByteCounts {
    return { ...(this.#bytes[operation] ?? { received: 0, sent: 0 }) }
  }

  /** Requests and parts of batches by operation and status; 0 is an answer that never came. */
  counts(): {
    requests: CallCounts
    parts: CallCounts
    faults: Record<string, number>
    bytes: Record<string, ByteCounts>
  } {
    return structuredClone({
      requests: this.#requests,
      parts: this.#parts,
      faults: this.#faults,
      bytes: this.#bytes,
    })
  }

  /** The last calls, the oldest first. */
  last(limit = LOG_MAX): ServedCall[] {
    const from = Math.max(0, this.#next - Math.min(limit, LOG_MAX))
    return Array.from({ length: this.#next - from }, (_, at) => this.#ring[(from + at) % LOG_MAX]!)
  }

  reset(): void {
    this.#ring.length = 0
    this.#next = 0
    this.#requests = {}
    this.#parts = {}
    this.#faults = {}
    this.#bytes = {}
  }
}

function count(counts: CallCounts, name: string, status: number): void {
  counts[name] ??= {}
  counts[name][status] = (counts[name][status] ?? 0) + 1
}
