/**
 * Live events for pages. Numbered; the last ones are kept, so that a page that comes back says which it saw last and
 * gets the rest. A client that does not read is dropped, not waited for.
 *
 * Events whose type begins with `snapshot` tell how things are, not what happened: of each such type only the last
 * is kept, since it says all that those before it said. So what is kept stays small however large snapshots are.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'

export type LiveEvent = {
  /** Grows by one; starts anew with the process, which `epoch` tells. */
  id: number
  /** `snapshot`, `mark`, `bad`, `alert`, `pause`, `budget`, `job` … */
  type: string
  data: unknown
}

export type EventHub = {
  /** Changes with every start of the process: an id of another epoch means nothing. */
  readonly epoch: string
  /** The id of the last event, 0 before the first. */
  readonly lastId: number
  readonly listeners: number
  emit(type: string, data: unknown): void
  /** Events after that id, if all of them are still there; null where the client must load everything anew. */
  since(lastEventId: string | null): readonly LiveEvent[] | null
  subscribe(fn: (event: LiveEvent) => void): () => void
  /** Called whenever somebody subscribes; for who makes events only while somebody listens. */
  onListener(fn: () => void): () => void
}

const KEPT = 1_000

export function isState(type: string): boolean {
  return type.startsWith('snapshot')
}

/** `<epoch>-<n>`, as clients see it. */
export function eventIdOf(hub: Pick<EventHub, 'epoch'>, id: number): string {
  return `${hub.epoch}-${id}`
}

export function createEventHub({ clock, keep = KEPT }: { clock: Clock; keep?: number }): EventHub {
  const epoch = clock.now().toString(36) + randomBytes(4).toString('hex')
  const listeners = new Set<(event: LiveEvent) => void>()
  const watchers = new Set<() => void>()
  let kept: LiveEvent[] = []
  const states = new Map<string, LiveEvent>()
  let lastId = 0
  let droppedId = 0

  const keepEvent = (event: LiveEvent): void => {
    if (isState(event.type)) {
      states.set(event.type, event)
      return
    }
    kept.push(event)
    if (kept.length <= keep * 2) return
    // Now and then many at once: moving the rest for every event would cost more than keeping twice as many.
    droppedId = kept[kept.length - keep - 1]!.id
    kept = kept.slice(-keep)
  }

  return {
    epoch,
    get lastId() {
      return lastId
    },
    get listeners() {
      return listeners.size
    },
    emit(type, data) {
      const event = { id: ++lastId, type, data }
      keepEvent(event)
      for (const fn of listeners) fn(event)
    },
    since(lastEventId) {
      const seen = idIn(epoch, lastEventId)
      if (seen === undefined || seen > lastId) return null
      if (seen < droppedId) return null
      return [...kept, ...states.values()].filter(({ id }) => id > seen).sort((a, b) => a.id - b.id)
    },
    subscribe(fn) {
      // A function of its own for each, so that one that subscribes twice is called twice.
      const listener = (event: LiveEvent): void => fn(event)
      listeners.add(listener)
      for (const watcher of watchers) watcher()
      return () => listeners.delete(listener)
    },
    onListener(fn) {
      watchers.add(fn)
      return () => watchers.delete(fn)
    },
  }
}

function idIn(epoch: string, lastEventId: string | null): number | undefined {
  const [, theirs, n] = /^([a-z0-9]{1,40})-(\d{1,15})$/.exec(lastEventId ?? '') ?? []
  return theirs === epoch ? Number(n) : undefined
}
