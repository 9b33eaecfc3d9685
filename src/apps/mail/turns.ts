/** One after another, by name: what reads and then writes on what it read takes its turn. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async take<T>(name: string, fn: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const turn = before.then(fn, fn)
    this.#last.set(name, turn)
    try {
      return await turn
    } finally {
      if (this.#last.get(name) === turn) this.#last.delete(name)
    }
  }
}
