/**
 * Keeps live pages up to date: about once a second, while somebody listens, looks at how things are and emits what
 * changed. Nobody listening costs nothing. Looking never takes more than a share of the time, so that a slow
 * database is not made slower by those who watch it.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'
import { fingerprint } from './etag.ts'
import type { EventHub } from './event-hub.ts'

const EVERY_MS = 1_000
/** After somebody came, so that many who come at once share a look. */
const SOON_MS = 100
/** The pause after a look is at least this many times as long as the look. */
const REST_FACTOR = 4
const REST_MS_MAX = 15_000

/** `type` begins with `snapshot`: see event-hub.ts. */
export type SnapshotSource = { type: string; read: () => Promise<unknown> }

export type SnapshotLoopOptions = {
  hub: EventHub
  clock: Clock
  sources: readonly SnapshotSource[]
  everyMs?: number
  onError?: (thrown: unknown) => void
}

export type SnapshotLoop = { close(): Promise<void> }

export function startSnapshotLoop(options: SnapshotLoopOptions): SnapshotLoop {
  const { hub, clock, sources, everyMs = EVERY_MS, onError = () => {} } = options
  const last = new Map<string, string>()
  /** Told of once, and not every second until the database is back. */
  const failing = new Set<string>()
  let cancel: CancelTimer | undefined
  let looking: Promise<void> | undefined
  let isNew = false
  /** The next look is for who has just come. */
  let isSoon = false
  let closed = false

  const lookAt = async ({ type, read }: SnapshotSource): Promise<void> => {
    try {
      const value = await read()
      failing.delete(type)
      const print = fingerprint(value)
      if (closed || last.get(type) === print) return
      last.set(type, print)
      hub.emit(type, value)
    } catch (thrown) {
      if (!failing.has(type)) onError(thrown)
      failing.add(type)
    }
  }

  const look = async (): Promise<void> => {
    // Whoever has just come knows nothing yet, changed or not.
    if (isNew) last.clear()
    isNew = false
    const fromMs = clock.monotonicMs()
    for (const source of sources) await lookAt(source)
    const restMs = Math.min(REST_MS_MAX, (clock.monotonicMs() - fromMs) * REST_FACTOR)
    looking = undefined
    lookIn(isNew ? SOON_MS : Math.max(everyMs, restMs))
  }

  const lookIn = (ms: number): void => {
    cancel?.()
    cancel = undefined
    isSoon = false
    if (closed || hub.listeners === 0) return
    isSoon = ms === SOON_MS
    cancel = clock.timer(ms, () => {
      cancel = undefined
      isSoon = false
      if (!closed && hub.listeners > 0) looking = look()
    })
  }

  // Who comes while a look is near shares it. Who left before it has put nothing to sleep.
  const unwatch = hub.onListener(() => {
    isNew = true
    if (!looking && !isSoon) lookIn(SOON_MS)
  })

  return {
    async close() {
      closed = true
      unwatch()
      cancel?.()
      await looking
    },
  }
}
