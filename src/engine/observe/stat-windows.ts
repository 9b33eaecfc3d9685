/** Windows over the recent past: so many seconds, or so many items. Fixed memory, O(1) to add to. */

/** Per second, over the last full second, minute and five minutes (or since the start, if that is less). */
export type Rates = { perSecond1s: number; perSecond1m: number; perSecond5m: number }

const SECONDS = 300

/** Counts per second of the last five minutes, the current second besides. */
export class SecondsRing {
  readonly #slots = new Float64Array(SECONDS + 1)
  readonly #firstSecond: number
  #second: number

  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / 1_000)
    this.#firstSecond = this.#second
  }

  add(n: number, nowMs: number): void {
    const second = Math.floor(nowMs / 1_000)
    if (second > this.#second) this.#turn(second)
    this.#slots[this.#second % this.#slots.length]! += n
  }

  rates(nowMs: number): Rates {
    const second = Math.floor(nowMs / 1_000)
    if (second > this.#second) this.#turn(second)
    return { perSecond1s: this.#rate(1), perSecond1m: this.#rate(60), perSecond5m: this.#rate(SECONDS) }
  }

  /** Over full seconds only: the current one is not over. */
  #rate(seconds: number): number {
    const full = Math.min(seconds, this.#second - this.#firstSecond)
    let sum = 0
    for (let back = 1; back <= full; back++) sum += this.#slots[(this.#second - back) % this.#slots.length]!
    return full === 0 ? 0 : sum / full
  }

  #turn(second: number): void {
    const passed = Math.min(second - this.#second, this.#slots.length)
    for (let back = 0; back < passed; back++) this.#slots[(second - back) % this.#slots.length] = 0
    this.#second = second
  }
}

const BAD_ITEMS = 10_000
const BUCKET_ITEMS = 100
/** Full buckets for the whole window, the one that is being filled and one to spare. */
const BUCKETS = BAD_ITEMS / BUCKET_ITEMS + 2

/**
 * Bad items among about the last 10,000: a ring of buckets of at least 100 items each. A job with more items than
 * a bucket holds fills one alone, so the window may be longer than 10,000, but never shorter once it is full.
 */
export class BadWindow {
  readonly #items = new Float64Array(BUCKETS)
  readonly #bad = new Float64Array(BUCKETS)
  #head = 0
  #tail = 0
  #itemsSum = 0
  #badSum = 0

  processed(items: number): void {
    if (this.#items[this.#head]! >= BUCKET_ITEMS) this.#advance()
    this.#items[this.#head]! += items
    this.#itemsSum += items
    while (this.#tail !== this.#head && this.#itemsSum - this.#items[this.#tail]! >= BAD_ITEMS)
      this.#dropOldest()
  }

  isolated(items: number): void {
    this.#bad[this.#head]! += items
    this.#badSum += items
  }

  share(): { items: number; bad: number; share: number } {
    const share = this.#itemsSum > 0 ? Math.min(1, this.#badSum / this.#itemsSum) : 0
    return { items: this.#itemsSum, bad: this.#badSum, share }
  }

  #advance(): void {
    const next = (this.#head + 1) % BUCKETS
    if (next === this.#tail) this.#dropOldest()
    this.#head = next
  }

  #dropOldest(): void {
    this.#itemsSum -= this.#items[this.#tail]!
    this.#badSum -= this.#bad[this.#tail]!
    this.#items[this.#tail] = 0
    this.#bad[this.#tail] = 0
    this.#tail = (this.#tail + 1) % BUCKETS
  }
}
