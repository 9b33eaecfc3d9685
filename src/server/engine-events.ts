/**
 * What the engine says, for live pages. A sync makes thousands of events a second, and nobody reads them one by one:
 * of each type at most so many a second are passed on. Pages take the truth from snapshots; what was left out is told
 * as a number, in an event `skipped`.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'
import type { EventStream, NumberedEvent } from '../engine/observe/events.ts'
import type { EventHub } from './event-hub.ts'

const SECOND_MS = 1_000

const PER_SECOND_MAX: Partial<Record<NumberedEvent['type'], number>> = {
  mark: 20,
  bad: 20,
  alert: 50,
  pause: 50,
  budget: 10,
  job: 20,
}

export function forwardEngineEvents({
  events,
  hub,
  clock,
}: {
  events: EventStream
  hub: EventHub
  clock: Clock
}): () => void {
  const sent = new Map<string, number>()
  const skipped = new Map<string, number>()
  let cancel: CancelTimer | undefined

  const turn = (): void => {
    cancel = undefined
    sent.clear()
    if (skipped.size > 0) hub.emit('skipped', Object.fromEntries(skipped))
    skipped.clear()
  }

  const stop = events.on(
    (event) => {
      const max = PER_SECOND_MAX[event.type]
      if (max === undefined) return
      cancel ??= clock.timer(SECOND_MS, turn)
      const n = (sent.get(event.type) ?? 0) + 1
      if (n > max) {
        skipped.set(event.type, (skipped.get(event.type) ?? 0) + 1)
        return
      }
      sent.set(event.type, n)
      const { type, seq: _, ...data } = event
      hub.emit(type, data)
    },
    { jobs: 'troubled' },
  )
  return () => {
    stop()
    cancel?.()
  }
}
