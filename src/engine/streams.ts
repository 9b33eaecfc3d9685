/** Names and ids of streams, known to this process; streams are few and never renamed. */
import { UsageError } from '../base/errors.ts'
import type { StreamRow, Tx } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'

export class Streams {
  readonly #ledger: Ledger
  readonly #idOf = new Map<string, number>()
  readonly #nameOf = new Map<number, string>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async load(): Promise<void> {
    for (const stream of await this.#ledger.streamNames()) this.#learn(stream)
  }

  /** The stream of this name; on first use it is created, and its first segment starts at `origin`. */
  async open(name: string, options: { origin?: number; within?: Tx } = {}): Promise<StreamRow> {
    if (options.within) return this.#ledger.streamWithin(options.within, name)
    const stream = await this.#ledger.stream(name, options.origin)
    this.#learn(stream)
    return stream
  }

  known(name: string): number | undefined {
    return this.#idOf.get(name)
  }

  id(name: string): number {
    const id = this.#idOf.get(name)
    if (id !== undefined) return id
    throw new UsageError(`The stream ${name} is not open yet.`, {
      hint: 'Open it with engine.streams.open(name) first.',
    })
  }

  name(id: number): string | null {
    return this.#nameOf.get(id) ?? null
  }

  #learn(stream: { id: number; name: string }): void {
    this.#idOf.set(stream.name, stream.id)
    this.#nameOf.set(stream.id, stream.name)
  }
}
