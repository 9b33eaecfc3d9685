/** Binary split: a batch that keeps failing becomes two, until the item at fault is alone. */
import type { ClaimedJob, NewJob } from '../ledger/contract.ts'
import type { AnyJobKind } from './kinds.ts'
import { payloadText } from './stored-json.ts'

export function halves(
  job: ClaimedJob,
  kind: AnyJobKind,
  payload: unknown,
  items: readonly string[],
): NewJob[] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)].map((part) => ({
    kind: job.kind,
    payload: payloadText(kind, kind.items!.only(payload, part)),
    streamId: job.streamId,
    segment: job.segmentId,
    parentId: job.id,
    lane: job.lane,
    priority: job.priority,
    size: job.size === null ? null : Math.ceil((job.size * part.length) / items.length),
    items: part.length,
  }))
}
