/** What the work of every app in a running process consists of: rounds over its sources, and their schedules. */
import type { CancelTimer } from '../base/clock.ts'
import type { AnyJobKind } from '../engine/job-kind.ts'
import type { Runtime, WorkOptions } from './runtime.ts'

/** How soon a process works for a source that another one has added. */
const FOLLOW_MS = 10_000

/** Looks again and again, so that what happens to sources elsewhere is seen here. Returns how to end it. */
export function followSources(
  { clock, onError, everyMs = FOLLOW_MS }: WorkOptions,
  look: () => Promise<void>,
): () => Promise<void> {
  let isStopped = false
  let cancel: CancelTimer = () => {}
  let round: Promise<void> = Promise.resolve()
  const arm = (): void => {
    cancel = clock.timer(everyMs, () => {
      round = look()
        .catch(onError)
        .finally(() => {
          if (!isStopped) arm()
        })
    })
  }
  arm()
  return () => {
    isStopped = true
    cancel()
    return round
  }
}

/** Named by its kind and what it is about: `mail.history ann@example.com`. */
export function scheduleName(kind: string, about: string): string {
  return `${kind} ${about}`
}

export type WantedSchedule = {
  kind: AnyJobKind
  about: string
  spec: string
  payload: unknown
  stream: string
}

/**
 * Puts the schedules that are wanted and not there, and drops those of these kinds that nobody wants; a round that
 * changes nothing writes nothing. `elsewhere`: names of those that are others' to put. Returns what was dropped.
 */
export async function keepSchedules(
  { engine, ledger }: Pick<Runtime, 'engine' | 'ledger'>,
  wanted: readonly WantedSchedule[],
  { kinds, elsewhere = [] }: { kinds: readonly string[]; elsewhere?: readonly string[] },
): Promise<string[]> {
  const there = new Map((await ledger.schedules()).map(({ name, spec }) => [name, spec]))
  const kept = new Set(elsewhere)
  for (const { kind, about, spec, payload, stream } of wanted) {
    const name = scheduleName(kind.kind, about)
    kept.add(name)
    if (there.get(name) !== spec) await engine.schedule(name, spec, kind, payload, { stream })
  }
  const isOurs = (name: string): boolean => kinds.some((kind) => name.startsWith(scheduleName(kind, '')))
  const dropped = [...there.keys()].filter((name) => isOurs(name) && !kept.has(name))
  for (const name of dropped) await ledger.dropSchedule(name)
  return dropped
}
