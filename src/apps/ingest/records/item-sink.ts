/** What a reader has found: counted, placed, and passed over where an earlier reading has had it. */
import { isUtf8 } from 'node:buffer'
import type { ReadItem } from '../contract.ts'

const EXCERPT_BYTES = 200
/** JSON that is nested deeper breaks programs that read it by recursion. */
export const DEPTH_MAX = 200
/** An integer that a number may not be able to hold. */
const LONG_INTEGER = /[\s:,[-]\d{16,}/

export class ItemSink {
  #items: ReadItem[] = []
  #at: number
  readonly #firstWanted: number

  /** `at` is the number of the next record, `firstWanted` of the first that is told. */
  constructor(at: number, firstWanted: number) {
    this.#at = at
    this.#firstWanted = firstWanted
  }

  /** Whether the next record is told at all: one that is passed over need not be read. */
  get isWanted(): boolean {
    return this.#at >= this.#firstWanted
  }

  /** How many of the next `count` are told. */
  wantedIn(count: number): number {
    return Math.max(0, Math.min(count, this.#at + count - this.#firstWanted))
  }

  pass(count = 1): void {
    this.#at += count
  }

  record(value: Readonly<Record<string, unknown>>, endByte: number | null, line: number | null): void {
    const at = this.#at++
    if (at >= this.#firstWanted) this.#items.push({ kind: 'record', at, place: { endByte, line }, value })
  }

  bad(
    fault: { code: string; reason: string },
    bytes: Uint8Array,
    endByte: number | null,
    line: number | null,
  ): void {
    const at = this.#at++
    if (at < this.#firstWanted) return
    const { code, reason } = fault
    // A copy: the piece that it was in is not kept because of it.
    const excerpt = new Uint8Array(bytes.subarray(0, EXCERPT_BYTES))
    this.#items.push({ kind: 'bad', at, place: { endByte, line }, code, reason, excerpt })
  }

  /** JSON that is to be one object. */
  json(text: string, bytes: Uint8Array, endByte: number | null, line: number | null): void {
    if (!this.isWanted) {
      this.#at += 1
      return
    }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      // What the platform says about it quotes the text; the excerpt does that better.
      this.bad({ code: 'bad-json', reason: 'it is not JSON' }, bytes, endByte, line)
      return
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.bad({ code: 'not-an-object', reason: 'it is JSON, but not an object' }, bytes, endByte, line)
    } else if (text.length > 2 * DEPTH_MAX && isDeeperThan(value, DEPTH_MAX)) {
      this.bad(TOO_DEEP, bytes, endByte, line)
    } else {
      const exact: unknown = LONG_INTEGER.test(text) ? JSON.parse(text, exactIntegers) : value
      this.record(exact as Record<string, unknown>, endByte, line)
    }
  }

  take(): ReadItem[] {
    const items = this.#items
    this.#items = []
    return items
  }
}

export const NOT_UTF8 = { code: 'not-utf8', reason: 'it is not text in UTF-8' }
export const TOO_DEEP = { code: 'too-deep', reason: `it is nested more than ${DEPTH_MAX} deep` }

export function tooLong(bytesMax: number): { code: string; reason: string } {
  return { code: 'too-long', reason: `it has more than ${bytesMax} bytes` }
}

/** The text, or undefined where the bytes are none. */
export function textOf(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString() : undefined
}

/** Identifiers of 64 bits come as numbers, and two that differ would become the same: these stay texts of their digits. */
function exactIntegers(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || context?.source === undefined) return value
  return /^-?\d+$/.test(context.source) ? context.source : value
}

function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax === 0) return true
  for (const key in value)
    if (isDeeperThan((value as Record<string, unknown>)[key], depthMax - 1)) return true
  return false
}
