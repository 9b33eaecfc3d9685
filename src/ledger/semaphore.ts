/** As many at a time as there are permits; the others wait in the order in which they came. */
export class Semaphore {
  #free: number
  #waiting: { resolve: () => void; reject: (error: unknown) => void }[] = []

  constructor(permits: number) {
    this.#free = permits
  }

  async acquire(): Promise<void> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  release(): void {
    const next = this.#waiting.shift()
    if (next) next.resolve()
    else this.#free += 1
  }

  /** Those who wait now get no permit. */
  refuseWaiting(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }
}
