/** What a pipeline would make of an object, from its first bytes: before anything is stored. */
import { TidemarkError } from '../../base/errors.ts'
import type { ObjectBody, ObjectStore, ObjectVersion } from '../../cloud/object-store.ts'
import type { MappedRecord, Mapping, ReadItem, ReadLimits, ReadOptions, ReadShape } from './contract.ts'
import { mapRecord, type RecordValue } from './mapping.ts'
import { type MappingProposal, proposeMapping } from './proposal.ts'
import { openRecords } from './records/open-records.ts'

export type PreviewOptions = {
  read: ReadOptions
  /** Without one, the proposal's. */
  mapping?: Mapping
  recordsMax: number
  limits: ReadLimits
  signal: AbortSignal
}

export type Preview = {
  uri: string
  version: ObjectVersion
  sizeBytes: number | null
  shape: ReadShape
  /** The schema is part of it. */
  proposal: MappingProposal
  records: readonly { at: number; record: MappedRecord }[]
  bad: readonly (ReadItem & { kind: 'bad' })[]
  /** Why it did not come to the end of what was asked for. */
  stopped: { code: string; reason: string } | null
  fetchedBytes: number
}

/** Of one object, whatever it holds. A row group of Parquet is read as a whole or not at all. */
export const PREVIEW_BYTES_MAX = 32 * 1024 * 1024
/** A proposal looks at more records than are shown. */
const PROPOSAL_RECORDS = 200
const BAD_MAX = 100

export async function previewObject(
  store: ObjectStore,
  uri: string,
  options: PreviewOptions,
): Promise<Preview> {
  const fetched = new Fetched(store, uri, options.signal)
  const { shape, items } = await openRecords({
    open: (fromByte) => fetched.open(fromByte),
    name: uri,
    options: options.read,
    shape: null,
    from: { records: 0, byte: null, line: null },
    limits: options.limits,
    signal: options.signal,
  })
  const values: { at: number; value: RecordValue }[] = []
  const bad: (ReadItem & { kind: 'bad' })[] = []
  let stopped: Preview['stopped'] = null
  try {
    for await (const item of items) {
      if (item.kind === 'bad') bad.push(item)
      else values.push(item)
      if (values.length >= Math.max(PROPOSAL_RECORDS, options.recordsMax) || bad.length >= BAD_MAX) break
    }
  } catch (thrown) {
    // What was read so far is what is shown, with why there is no more of it.
    if (!(thrown instanceof TidemarkError) || thrown.kind !== 'permanent') throw thrown
    stopped = { code: thrown.code ?? 'unreadable', reason: thrown.message }
  }
  const proposal = proposeMapping(values.slice(0, PROPOSAL_RECORDS).map(({ value }) => value))
  const mapping = options.mapping ?? proposal.mapping
  const shown = values.slice(0, options.recordsMax)
  return {
    uri,
    version: fetched.head!.version,
    sizeBytes: fetched.head!.sizeBytes,
    shape,
    proposal,
    records: shown.map(({ at, value }) => ({ at, record: mapRecord(value, mapping) })),
    bad,
    stopped,
    fetchedBytes: fetched.bytes,
  }
}

/** Counts what comes, and ends it where it is enough. The same version is read throughout. */
class Fetched {
  readonly #store: ObjectStore
  readonly #uri: string
  readonly #signal: AbortSignal
  head: ObjectBody | undefined
  bytes = 0

  constructor(store: ObjectStore, uri: string, signal: AbortSignal) {
    this.#store = store
    this.#uri = uri
    this.#signal = signal
  }

  async open(fromByte: number): Promise<ObjectBody> {
    const version = this.head?.version ?? null
    const body = await this.#store.read(this.#uri, { version, fromByte, signal: this.#signal })
    this.head ??= body
    return { ...body, bytes: this.#counted(body.bytes) }
  }

  async *#counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.bytes += chunk.length
      if (this.bytes > PREVIEW_BYTES_MAX) {
        throw new TidemarkError(`a preview reads no more than ${PREVIEW_BYTES_MAX} bytes of an object`, {
          kind: 'permanent',
          code: 'preview-limit',
        })
      }
      yield chunk
    }
  }
}
