/**
 * What calls cost and how much of it a user has per minute.
 *
 * States of a call: charged (its price is taken) or refused (nothing is taken). Two models:
 * - window: what was charged within the last 60 s, in slots of 100 ms, is never above the limit
 * - bucket: fills evenly up to `burstSeconds` of the rate, and is never below zero
 * Another client of the same user may eat a share of the rate from any moment on; it is served first.
 */
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { type Random, seededRandom } from '../base/random.ts'
import { given } from './control.ts'

export type QuotaModel = 'window' | 'bucket'
/** In which shape a refusal comes; `mixed` draws one. */
export type QuotaShape = 'user403' | 'rate403' | 'exhausted429' | 'mixed'

export type QuotaSettings = {
  /** Null: nothing is ever refused; units are counted all the same. */
  unitsPerMinute: number | null
  prices: Readonly<Record<string, number>>
  model: QuotaModel
  burstSeconds: number
  shape: QuotaShape
  /** Null: refusals do not say when to come back. */
  retryAfterSeconds: number | null
  /** The share of the rate that another client of every user eats, 0 to 1. */
  otherShare: number
  /** Requests of one user at the same time; null: any number. */
  concurrencyMax: number | null
}

export type MethodUsage = { calls: number; units: number; refused: number }
export type QuotaUsage = {
  unitsUsed: number
  unitsRefused: number
  calls: number
  callsRefused: number
  /** Of the other client. */
  unitsOther: number
  methods: Record<string, MethodUsage>
}

export type QuotaRefusal = {
  shape: Exclude<QuotaShape, 'mixed'>
  retryAfterSeconds: number | null
  retryAtMs: number
}

const MINUTE_MS = 60_000
const SLOT_MS = 100
const SLOTS = MINUTE_MS / SLOT_MS
const SHAPES = ['user403', 'rate403', 'exhausted429'] as const

type Meter = {
  /** Charged per slot of 100 ms, as a ring; `sum` is that of all of them. */
  slots: Float64Array
  sum: number
  slot: number
  tokens: number
  filledAtMs: number
  inFlight: number
  usage: QuotaUsage
}

export class Quota {
  readonly #clock: Clock
  readonly #random: Random
  readonly #meters = new Map<string, Meter>()
  #settings: QuotaSettings

  constructor(options: Partial<QuotaSettings> & { clock?: Clock; seed?: number } = {}) {
    const { clock, seed, ...settings } = options
    this.#clock = clock ?? systemClock
    this.#random = seededRandom((seed ?? 1) ^ 0x51a7e)
    this.#settings = {
      unitsPerMinute: 6_000,
      model: 'window',
      burstSeconds: 10,
      shape: 'mixed',
      retryAfterSeconds: null,
      otherShare: 0,
      concurrencyMax: null,
      ...given(settings),
      prices: { ...settings.prices },
    }
  }

  get settings(): Readonly<QuotaSettings> {
    return this.#settings
  }

  /** What is left out stays; prices are laid over those that hold. */
  set(change: Partial<QuotaSettings>): void {
    // What was eaten so far was eaten at the old rate.
    for (const address of this.#meters.keys()) this.#advance(this.#meter(address))
    const { prices, ...rest } = change
    const next = { ...this.#settings, ...given(rest), prices: { ...this.#settings.prices, ...prices } }
    if (!(next.otherShare >= 0 && next.otherShare <= 1))
      throw new UsageError('otherShare must be from 0 to 1.')
    if (next.unitsPerMinute !== null && !(next.unitsPerMinute > 0)) {
      throw new UsageError('unitsPerMinute must be a positive number, or null for no limit.')
    }
    this.#settings = next
  }

  priceOf(method: string): number {
    return this.#settings.prices[method] ?? this.#settings.prices['*'] ?? 0
  }

  /** Takes the price of the call, or says in which form it is refused. */
  charge(address: string, method: string): QuotaRefusal | undefined {
    const meter = this.#meter(address)
    const units = this.priceOf(method)
    this.#advance(meter)
    const tally = methodUsage(meter.usage, method)
    if (!this.#fits(meter, units)) {
      meter.usage.callsRefused += 1
      meter.usage.unitsRefused += units
      tally.refused += 1
      return this.#refusal()
    }
    meter.slots[meter.slot % SLOTS]! += units
    meter.sum += units
    meter.tokens -= units
    meter.usage.calls += 1
    meter.usage.unitsUsed += units
    tally.calls += 1
    tally.units += units
    return undefined
  }

  /** False when too many requests of the user are under way; otherwise `leave` must follow. */
  enter(address: string): boolean {
    const meter = this.#meter(address)
    const { concurrencyMax } = this.#settings
    if (concurrencyMax !== null && meter.inFlight >= concurrencyMax) {
      meter.usage.callsRefused += 1
      return false
    }
    meter.inFlight += 1
    return true
  }

  leave(address: string): void {
    this.#meter(address).inFlight -= 1
  }

  usage(address: string): QuotaUsage {
    const meter = this.#meter(address)
    this.#advance(meter)
    return structuredClone(meter.usage)
  }

  resetUsage(): void {
    for (const meter of this.#meters.values()) meter.usage = emptyUsage()
  }

  #fits(meter: Meter, units: number): boolean {
    const { unitsPerMinute, model } = this.#settings
    if (unitsPerMinute === null) return true
    return model === 'window' ? meter.sum + units <= unitsPerMinute : meter.tokens >= units
  }

  /** Brings a meter to now: old slots fall out, the bucket fills, the other client eats. */
  #advance(meter: Meter): void {
    const { unitsPerMinute, otherShare, burstSeconds } = this.#settings
    const nowMs = this.#clock.monotonicMs()
    const slot = Math.floor(nowMs / SLOT_MS)
    const rate = (unitsPerMinute ?? 0) / MINUTE_MS
    const otherPerSlot = rate * otherShare * SLOT_MS
    const passed = Math.max(0, slot - meter.slot)
    for (let step = Math.max(0, passed - SLOTS); step < passed; step++) {
      const at = (meter.slot + step + 1) % SLOTS
      meter.sum += otherPerSlot - meter.slots[at]!
      meter.slots[at] = otherPerSlot
    }
    // Sums of shares drift in the last digits; an empty window must be exactly empty.
    if (meter.sum < 1e-6) meter.sum = 0
    meter.usage.unitsOther += otherPerSlot * passed
    meter.slot = Math.max(meter.slot, slot)
    const capacity = rate * 1000 * burstSeconds
    const elapsedMs = Math.max(0, nowMs - meter.filledAtMs)
    meter.tokens = Math.min(capacity, meter.tokens + elapsedMs * rate * (1 - otherShare))
    meter.filledAtMs = nowMs
  }

  #refusal(): QuotaRefusal {
    const { shape, retryAfterSeconds } = this.#settings
    const drawn = shape === 'mixed' ? SHAPES[Math.floor(this.#random() * SHAPES.length)]! : shape
    return {
      shape: drawn,
      retryAfterSeconds,
      retryAtMs: this.#clock.now() + (retryAfterSeconds ?? 1) * 1000,
    }
  }

  #meter(address: string): Meter {
    const known = this.#meters.get(address)
    if (known) return known
    const nowMs = this.#clock.monotonicMs()
    const { unitsPerMinute, burstSeconds } = this.#settings
    const meter: Meter = {
      slots: new Float64Array(SLOTS),
      sum: 0,
      slot: Math.floor(nowMs / SLOT_MS),
      tokens: ((unitsPerMinute ?? 0) / 60) * burstSeconds,
      filledAtMs: nowMs,
      inFlight: 0,
      usage: emptyUsage(),
    }
    this.#meters.set(address, meter)
    return meter
  }
}

function emptyUsage(): QuotaUsage {
  return { unitsUsed: 0, unitsRefused: 0, calls: 0, callsRefused: 0, unitsOther: 0, methods: {} }
}

function methodUsage(usage: QuotaUsage, method: string): MethodUsage {
  usage.methods[method] ??= { calls: 0, units: 0, refused: 0 }
  return usage.methods[method]
}
