/** Doing something to many jobs, one short transaction each, so that a running engine hardly notices. */
import { UsageError } from '../../base/errors.ts'
import { formatCount, formatShare } from '../../base/format.ts'
import type { Output } from '../output/output.ts'

/** Refusals kept word by word; more of them say nothing new. */
const REFUSALS_KEPT_MAX = 20

/** Says now and then how far a long command is. */
export class Pace {
  readonly #note: (text: string) => void
  readonly #what: string
  readonly #total: number | undefined
  #done = 0

  constructor(output: Output, input: { what: string; total?: number }) {
    this.#note = output.pacedNotes()
    this.#what = input.what
    this.#total = input.total
  }

  add(n = 1): void {
    this.#done += n
    const share = this.#total
      ? ` of ${formatCount(this.#total)} (${formatShare(this.#done / this.#total)})`
      : ''
    this.#note(`${formatCount(this.#done)}${share} ${this.#what} …`)
  }
}

export type Refusal = { id: number; message: string; hint?: string }

/** What could not be done, and why. */
export class Refusals {
  readonly kept: Refusal[] = []
  count = 0

  /** Refusals for a reason of the job's own are kept, unless by now there is nothing left to do; the rest is thrown on. */
  async attempt(id: number, act: () => Promise<void>, isMoot?: () => Promise<boolean>): Promise<void> {
    try {
      await act()
    } catch (thrown) {
      if (!(thrown instanceof UsageError)) throw thrown
      if (await isMoot?.()) return
      const { message, hint } = thrown
      this.count += 1
      if (this.kept.length < REFUSALS_KEPT_MAX) this.kept.push({ id, message, ...(hint && { hint }) })
    }
  }

  print(output: Output): void {
    if (output.json) return
    for (const { message, hint } of this.kept) output.error(new UsageError(message, hint ? { hint } : {}))
    const more = this.count - this.kept.length
    if (more > 0) output.note(`And ${formatCount(more)} more were refused.`)
  }
}
