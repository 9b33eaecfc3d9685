/**
 * How many bytes a second may be moved, per direction and together, over all processes on the ledger
 * and by the time of day. A transfer takes its bytes from its direction and from the combined budget.
 *
 * Invariants: no more than the rates of the timetable pass; a change of the timetable reaches transfers
 * that already wait; an aborted transfer leaves nothing taken; a rate of zero stops that direction.
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Lane } from '../../ledger/contract.ts'
import type { BudgetStore } from '../../ledger/contract-budgets.ts'
import { SharedBucket } from './shared-bucket.ts'
import { type OffsetMinutes, type Rates, Timetable, type TimetableEntry } from './timetable.ts'

export type Direction = 'upload' | 'download'

export type BandwidthSpec = Rates & { timetable?: readonly TimetableEntry[] }

export type BandwidthOptions = {
  name: string
  spec: BandwidthSpec
  member: string
  store: BudgetStore
  clock: Clock
  random: Random
  offsetMinutes: OffsetMinutes
  onError?: (error: unknown) => void
}

export type BandwidthSnapshot = Record<
  keyof Rates,
  { rate: number | null; waiting: number; movedBytes: number }
>

const KEYS = ['upload', 'download', 'combined'] as const
const BURST_MS = 250
/** Larger pieces would make a slow line stutter; smaller ones cost too many steps. */
export const PIECE_BYTES_MAX = 64 * 1024

export class Bandwidth {
  readonly #options: BandwidthOptions
  readonly #buckets: Record<keyof Rates, SharedBucket>
  readonly #moved: Record<keyof Rates, number> = { upload: 0, download: 0, combined: 0 }
  #timetable: Timetable
  #rates: Rates = {}
  #timer: CancelTimer | undefined

  constructor(options: BandwidthOptions) {
    this.#options = options
    this.#timetable = timetableOf(options)
    this.#rates = this.#timetable.ratesAt(options.clock.now())
    const bucket = (key: keyof Rates): SharedBucket =>
      new SharedBucket({ ...options, name: `${options.name}:${key}`, start: () => startOf(this.#rates[key]) })
    this.#buckets = { upload: bucket('upload'), download: bucket('download'), combined: bucket('combined') }
    this.#look()
  }

  /** Waits until `bytes` may be moved. Of both lanes interactive goes first, within the bounds of waiters.ts. */
  async take(direction: Direction, bytes: number, signal?: AbortSignal, lane: Lane = 'bulk'): Promise<void> {
    // Always in this order, so that two transfers never wait for each other.
    await this.#buckets[direction].take(bytes, { signal, lane })
    try {
      await this.#buckets.combined.take(bytes, { signal, lane })
    } catch (error) {
      this.#buckets[direction].refund(bytes)
      throw error
    }
    this.#moved[direction] += bytes
    this.#moved.combined += bytes
  }

  setSpec(spec: BandwidthSpec): void {
    this.#timetable = timetableOf({ ...this.#options, spec })
    this.#look()
  }

  snapshot(): BandwidthSnapshot {
    const of = (key: keyof Rates): BandwidthSnapshot['upload'] => ({
      rate: this.#rates[key] ?? null,
      waiting: this.#buckets[key].waiting,
      movedBytes: this.#moved[key],
    })
    return { upload: of('upload'), download: of('download'), combined: of('combined') }
  }

  async close(): Promise<void> {
    this.#timer?.()
    await Promise.all(KEYS.map((key) => this.#buckets[key].close()))
  }

  /** Puts the rates of this hour in force, and comes back when they may change. */
  #look(): void {
    const { clock, onError } = this.#options
    const nowMs = clock.now()
    this.#rates = this.#timetable.ratesAt(nowMs)
    for (const key of KEYS) {
      const rate = this.#rates[key]
      const bucket = this.#buckets[key]
      bucket.setUnlimited(typeof rate !== 'number')
      if (typeof rate === 'number') bucket.tune((view) => flowOf(rate, view.rate)).catch((e) => onError?.(e))
    }
    this.#timer?.()
    const nextMs = this.#timetable.nextLookMs(nowMs)
    if (Number.isFinite(nextMs)) this.#timer = clock.timer(nextMs - nowMs, () => this.#look())
  }
}

export type BodyOptions = { bandwidth: Bandwidth; direction: Direction; signal?: AbortSignal }

/** The same bytes, no faster than the bandwidth allows; large chunks are passed on in pieces. */
export async function* throttledBody(
  body: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>,
  options: BodyOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { bandwidth, direction, signal } = options
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES_MAX) {
      const piece = chunk.subarray(at, at + PIECE_BYTES_MAX)
      await bandwidth.take(direction, piece.byteLength, signal)
      yield piece
    }
  }
}

function timetableOf(options: Pick<BandwidthOptions, 'spec' | 'offsetMinutes'>): Timetable {
  const { timetable, ...otherwise } = options.spec
  return new Timetable(timetable ?? [], otherwise, options.offsetMinutes)
}

function startOf(rate: number | null | undefined): { rate: number; burst: number; controller: string } {
  return { rate: rate ?? 0, burst: ((rate ?? 0) * BURST_MS) / 1000, controller: '' }
}

function flowOf(
  rate: number,
  currentRate: number,
): { rate: number; burst: number; pausedUntilMs: number; controller: string } | undefined {
  return rate === currentRate ? undefined : { ...startOf(rate), pausedUntilMs: 0 }
}
