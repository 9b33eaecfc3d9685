/** How the effects of a kind send their statements; see effects.ts. */
export type Manner = 'at once' | 'step by step'

/** What is known of kinds, whatever the connection. */
export class Manners {
  readonly #of = new Map<string, Manner>()

  of(kind: string): Manner | undefined {
    return this.#of.get(kind)
  }

  /** Once step by step, always so: an effect may have its second step only now and then. */
  learn(kind: string, manner: Manner): void {
    if (this.#of.get(kind) !== 'step by step') this.#of.set(kind, manner)
  }
}
