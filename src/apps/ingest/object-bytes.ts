/** Where the bytes of an object version are: in the message that brought it, in its store, or where they were put. */
import { TidemarkError } from '../../base/errors.ts'
import type { ObjectBody } from '../../cloud/object-store.ts'
import type { IngestKinds } from './kinds.ts'
import { versionOf } from './plan.ts'
import type { ShardRow } from './store/rows.ts'

export type OpenBytes = (fromByte: number) => Promise<ObjectBody>

/** `disposed_to` of an object that was deleted: on which machine a copy of it is kept. */
const KEPT = 'kept:'
export const keptOn = (host: string): string => `${KEPT}${host}`
export const hostOf = (to: string | null): string | undefined =>
  to?.startsWith(KEPT) ? to.slice(KEPT.length) : undefined

/** `isInStore`: it is known that no message carried it. */
export async function openBytes(
  { tables, pipelines, kept }: Pick<IngestKinds, 'tables' | 'pipelines' | 'kept'>,
  row: ShardRow,
  signal: AbortSignal,
  { isInStore = false }: { isInStore?: boolean } = {},
): Promise<OpenBytes> {
  const data = isInStore ? null : await tables.data(row.pipeline, row.id)
  if (data) return async (fromByte) => inlineBody(data, fromByte, row.version)
  const { disposed_to: to, disposed_version: id } = row
  const host = hostOf(to)
  if (host !== undefined) {
    const as = { pipeline: row.pipeline, shard: row.id }
    if (host !== kept.host && !kept.has(as)) throw elsewhere(row, host)
    return async (fromByte) => bodyOf(row.version, row.size, kept.read(as, fromByte))
  }
  const uri = to ?? row.uri
  const version = to === null ? versionOf(row) : { id: id! }
  const store = await pipelines.store(row.pipeline, uri)
  return (fromByte) => store.read(uri, { version, fromByte, signal })
}

/** What a message carried itself. */
export function inlineBody(data: Uint8Array, fromByte: number, version: string): ObjectBody {
  return bodyOf(version, data.length, one(data.subarray(fromByte)))
}

function bodyOf(id: string, sizeBytes: number | null, bytes: AsyncIterable<Uint8Array>): ObjectBody {
  return { version: { id }, sizeBytes, modifiedAtMs: null, contentType: null, contentEncoding: null, bytes }
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes
}

function elsewhere({ uri }: ShardRow, host: string): TidemarkError {
  return new TidemarkError(`The copy of ${uri} is kept on another machine: ${host}.`, {
    kind: 'permanent',
    code: 'kept-elsewhere',
    hint: 'Ask there.',
  })
}
