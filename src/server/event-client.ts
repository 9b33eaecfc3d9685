/**
 * One client of the live events: what it has not read yet waits here, and only so much of it.
 *
 * States: open → ended. Ended by the client that leaves, by the server that closes (the rest is still sent), or
 * because it does not read: more waits than `QUEUE_BYTES_MAX`, or nothing was taken for `STALLED_MS`.
 * A state that waits is replaced by its successor, so a slow client misses only what was overtaken.
 */
import type { Clock } from '../base/clock.ts'
import { eventIdOf, isState, type LiveEvent } from './event-hub.ts'

export const QUEUE_BYTES_MAX = 1_000_000
export const STALLED_MS = 30_000

type Queued = { text: string; type: string | null }

export type EventClientOptions = {
  epoch: string
  clock: Clock
  /** It does not read: its connection must go, since nothing that is written would reach it. */
  onStalled: () => void
  onEnd: () => void
}

export class EventClient {
  readonly body: ReadableStream<Uint8Array>
  readonly #options: EventClientOptions
  readonly #encoder = new TextEncoder()
  #queue: Queued[] = []
  #queuedBytes = 0
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #wake: (() => void) | undefined
  #takenMs: number
  #state: 'open' | 'closing' | 'ended' = 'open'

  constructor(options: EventClientOptions) {
    this.#options = options
    this.#takenMs = options.clock.monotonicMs()
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#pull(),
        cancel: () => this.#end(),
      },
      // Nothing is taken ahead of who reads, so that all that waits is counted here.
      { highWaterMark: 0 },
    )
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  send(event: LiveEvent): void {
    const text = frameOf(this.#options.epoch, event)
    if (isState(event.type)) this.#dropOvertaken(event.type)
    this.#add({ text, type: event.type })
  }

  /** A comment, which clients ignore: it keeps the connection open, and shows whether anybody reads. */
  ping(): void {
    const { clock } = this.#options
    if (this.#queue.length === 0) this.#add({ text: ': ping\n\n', type: null })
    else if (clock.monotonicMs() - this.#takenMs > STALLED_MS) this.#stalled()
  }

  write(text: string): void {
    this.#add({ text, type: null })
  }

  /** Sends what waits, then ends. */
  close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#wake?.()
    if (this.#queue.length === 0) this.leave()
  }

  /** At once: nobody is there any more to read what waits. */
  leave(): void {
    if (this.#state === 'ended') return
    this.#end()
    this.#controller?.close()
  }

  #add(one: Queued): void {
    if (this.#state !== 'open') return
    if (this.#queuedBytes > QUEUE_BYTES_MAX) {
      this.#stalled()
      return
    }
    // Who reads as fast as we write never waits, however long ago the last event was.
    if (this.#queue.length === 0) this.#takenMs = this.#options.clock.monotonicMs()
    this.#queue.push(one)
    this.#queuedBytes += one.text.length
    this.#wake?.()
  }

  #dropOvertaken(type: string): void {
    const at = this.#queue.findIndex((one) => one.type === type)
    if (at < 0) return
    const [old] = this.#queue.splice(at, 1)
    this.#queuedBytes -= old!.text.length
  }

  async #pull(): Promise<void> {
    if (this.#queue.length === 0 && this.#state === 'open') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
    if (this.#queue.length > 0 && this.#state !== 'ended') {
      const text = this.#queue.map((one) => one.text).join('')
      this.#queue = []
      this.#queuedBytes = 0
      this.#takenMs = this.#options.clock.monotonicMs()
      this.#controller?.enqueue(this.#encoder.encode(text))
    }
    if (this.#state === 'closing') this.leave()
  }

  #stalled(): void {
    if (this.#state === 'ended') return
    this.#end()
    this.#options.onStalled()
    this.#controller?.close()
  }

  #end(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#queue = []
    this.#queuedBytes = 0
    this.#wake?.()
    this.#options.onEnd()
  }
}

/** The same text for all clients: made once. */
const frames = new WeakMap<LiveEvent, string>()

export function frameOf(epoch: string, event: LiveEvent): string {
  const made = frames.get(event)
  if (made !== undefined) return made
  const data = JSON.stringify(event.data) ?? 'null'
  const frame = `id: ${eventIdOf({ epoch }, event.id)}\nevent: ${event.type}\ndata: ${data}\n\n`
  frames.set(event, frame)
  return frame
}
