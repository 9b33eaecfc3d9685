/**
 * What waits to be written. Messages go to the thread of their year, in groups that become one transaction per shard:
 * whatever waits is grouped, across requests, up to GROUP_MESSAGES_MAX or GROUP_BYTES_MAX.
 *
 * Invariants:
 * - a request is answered when all of its messages are on disk, and refused when one of them cannot be
 * - at most GROUPS_IN_FLIGHT groups are with a thread: one being written, one ready for it
 * - `queuedBytes` are those of all messages that are not answered; `room` waits until they are few
 */

import type { ThreadClient } from '../../../ledger/thread-client.ts'
import { type PackedError, unpackError } from '../../../ledger/thread-service.ts'
import type { FetchedMessage, StoreOutcome } from '../message.ts'
import { yearOf } from './shard-router.ts'

const GROUP_MESSAGES_MAX = 100
const GROUP_BYTES_MAX = 8 * 1_048_576
const GROUPS_IN_FLIGHT = 2
const QUEUED_BYTES_MAX = 8 * 1_048_576
/** After a thread died, requests go alone for a while: one that kills it takes no others with it. */
const CAREFUL_GROUPS = 32

/** A message as it goes to a thread: its bytes are in the group's one buffer. */
export type SentMessage = Omit<FetchedMessage, 'raw'> & { start: number; end: number }
export type StoreArgs = { messages: readonly SentMessage[]; buffer: ArrayBuffer; nowMs: number }
export type SentAnswer = { outcome: StoreOutcome } | { error: PackedError }

type Request = {
  outcomes: StoreOutcome[]
  left: number
  isOver: boolean
  resolve: (outcomes: StoreOutcome[]) => void
  reject: (error: unknown) => void
}

/** `bytes`: noted, because whoever asked may let go of a message's memory once it is answered. */
type Item = { message: FetchedMessage; bytes: number; index: number; request: Request }

type Lane = { thread: ThreadClient; items: Item[]; inFlight: number; careful: number; deaths: number }

export class WriteQueue {
  readonly #lanes: readonly Lane[]
  readonly #now: () => number
  #queuedBytes = 0
  #waitingForRoom = new Set<() => void>()
  #waitingForEnd = new Set<() => void>()

  constructor(threads: readonly ThreadClient[], now: () => number) {
    this.#lanes = threads.map((thread) => ({ thread, items: [], inFlight: 0, careful: 0, deaths: 0 }))
    this.#now = now
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  store(messages: readonly FetchedMessage[]): Promise<StoreOutcome[]> {
    if (messages.length === 0) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const request: Request = { outcomes: [], left: messages.length, isOver: false, resolve, reject }
      messages.forEach((message, index) => {
        const bytes = message.raw.byteLength
        this.#queuedBytes += bytes
        this.#laneOf(message).items.push({ message, bytes, index, request })
      })
      for (const lane of this.#lanes) this.#pump(lane)
    })
  }

  async room(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#queuedBytes < QUEUED_BYTES_MAX) return
    await new Promise<void>((resolve, reject) => {
      const done = (): void => {
        this.#waitingForRoom.delete(done)
        signal?.removeEventListener('abort', stop)
        resolve()
      }
      const stop = (): void => {
        this.#waitingForRoom.delete(done)
        reject(signal?.reason)
      }
      this.#waitingForRoom.add(done)
      signal?.addEventListener('abort', stop, { once: true })
    })
  }

  /** Resolves when nothing waits and nothing is being written. */
  async drained(): Promise<void> {
    if (this.#isIdle()) return
    await new Promise<void>((resolve) => this.#waitingForEnd.add(resolve))
  }

  #laneOf(message: FetchedMessage): Lane {
    return this.#lanes[yearOf(message.internalMs) % this.#lanes.length]!
  }

  #pump(lane: Lane): void {
    const flights = lane.careful > 0 ? 1 : GROUPS_IN_FLIGHT
    while (lane.inFlight < flights && lane.items.length > 0) {
      const group = this.#nextGroup(lane)
      if (group.length === 0) continue
      lane.inFlight += 1
      void this.#send(lane, group)
    }
    if (this.#isIdle()) {
      for (const resolve of this.#waitingForEnd) resolve()
      this.#waitingForEnd.clear()
    }
  }

  #nextGroup(lane: Lane): Item[] {
    const group: Item[] = []
    let bytes = 0
    let taken = 0
    for (const item of lane.items) {
      const isFull =
        group.length >= GROUP_MESSAGES_MAX || bytes + item.message.raw.byteLength > GROUP_BYTES_MAX
      if (group.length > 0 && isFull) break
      if (group.length > 0 && lane.careful > 0 && item.request !== group[0]!.request) break
      taken += 1
      if (item.request.isOver) this.#leave(item)
      else {
        group.push(item)
        bytes += item.message.raw.byteLength
      }
    }
    lane.items.splice(0, taken)
    return group
  }

  async #send(lane: Lane, group: readonly Item[]): Promise<void> {
    const args = packed(group, this.#now())
    try {
      const answers = await lane.thread.ask<SentAnswer[]>('store', args, [args.buffer])
      answers.forEach((answer, n) => {
        const item = group[n]!
        if ('error' in answer) refuse(item.request, unpackError(answer.error))
        else accept(item, answer.outcome)
      })
    } catch (thrown) {
      for (const { request } of group) refuse(request, thrown)
    }
    if (lane.thread.deaths > lane.deaths) {
      lane.deaths = lane.thread.deaths
      lane.careful = CAREFUL_GROUPS
    } else if (lane.careful > 0) lane.careful -= 1
    lane.inFlight -= 1
    for (const item of group) this.#leave(item)
    this.#pump(lane)
  }

  #leave(item: Item): void {
    this.#queuedBytes -= item.bytes
    if (this.#queuedBytes < QUEUED_BYTES_MAX) for (const done of this.#waitingForRoom) done()
  }

  #isIdle(): boolean {
    return this.#lanes.every(({ items, inFlight }) => items.length === 0 && inFlight === 0)
  }
}

/** One buffer that changes hands: the caller keeps its bytes, and a view into a large buffer is not copied whole. */
function packed(group: readonly Item[], nowMs: number): StoreArgs {
  const total = group.reduce((sum, { message }) => sum + message.raw.byteLength, 0)
  const bytes = new Uint8Array(total)
  let start = 0
  const messages = group.map(({ message }) => {
    const { raw, ...rest } = message
    const end = start + raw.byteLength
    bytes.set(raw, start)
    const sent = { ...rest, labelIds: [...message.labelIds], start, end }
    start = end
    return sent
  })
  return { messages, buffer: bytes.buffer, nowMs }
}

function accept({ request, index }: Item, outcome: StoreOutcome): void {
  request.outcomes[index] = outcome
  request.left -= 1
  if (request.left > 0 || request.isOver) return
  request.isOver = true
  request.resolve(request.outcomes)
}

function refuse(request: Request, error: unknown): void {
  if (request.isOver) return
  request.isOver = true
  request.reject(error)
}
