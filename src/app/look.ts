/** Streams as they may be shown: each app says it of its own, whose names begin with the app's. */
import type { StreamRow } from '../ledger/contract.ts'
import type { Need } from './need.ts'
import type { AppLook, ShownStream } from './runtime.ts'

/** In the order in which they came. */
export async function shownStreams<Row extends StreamRow>(
  looks: Iterable<readonly [name: string, look: AppLook]>,
  rows: readonly Row[],
): Promise<ShownStream<Row>[]> {
  const shown = new Map<number, ShownStream<Row>>(rows.map((row) => [row.id, row]))
  for (const [name, look] of looks) {
    const own = rows.filter((row) => row.name.startsWith(`${name}:`))
    if (own.length === 0 || !look.shownStreams) continue
    for (const { id } of own) shown.delete(id)
    for (const row of await look.shownStreams(own)) shown.set(row.id, row)
  }
  return rows.flatMap(({ id }) => shown.get(id) ?? [])
}

export async function needsOf(looks: Iterable<AppLook>): Promise<Need[]> {
  const needs: Need[] = []
  for (const look of looks) needs.push(...((await look.needs?.()) ?? []))
  return needs
}
