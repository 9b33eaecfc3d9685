/** A record as a document of the index. */
import { chunkParts } from '../../search/chunk.ts'
import type { Grant, NewDocument } from '../../search/contract.ts'
import { cleanText } from '../../search/extract/clean-text.ts'
import type { MappedRecord } from './contract.ts'
import { keyOf, recordRef, SERVICE } from './pipeline.ts'

export type RecordOf = { pipeline: string; shard: string; uri: string; version: string }

/** Whoever the pipeline is of. */
export const RECORD_GRANT: Grant = { kind: 'owner', via: 'own', generation: 0, expiresAtMs: null }

/** Of one record: 40,000 words. */
const CHUNKS_MAX = 200

export function recordDocument(
  of: RecordOf,
  at: number,
  record: MappedRecord,
  line: number | null,
): NewDocument {
  const ref = recordRef(of.pipeline, of.shard, at)
  const text = cleanText([record.text, ...besides(record)].filter((line) => line !== '').join('\n'))
  const { chunks, isTruncated } = chunkParts(
    [
      {
        text,
        headings: [],
        place: line === null ? { kind: 'none' } : { kind: 'lines', first: line, last: line },
      },
    ],
    { chunksMax: CHUNKS_MAX },
  )
  return {
    source: SERVICE,
    ref,
    title: record.title === '' ? `${keyOf(of.uri)} #${at + 1}` : record.title,
    type: 'record',
    mimeType: 'application/json',
    owner: '',
    people: [],
    // Each is a folder of its own, so that it is a facet and can be asked for with `in:`.
    folders: [of.pipeline, ...record.facets.map(({ name, value }) => `${name}=${value}`)],
    url: '',
    createdAtMs: record.atMs,
    modifiedAtMs: record.atMs,
    sizeBytes: null,
    version: of.version,
    // Its own: a record that comes twice is two records.
    content: { key: `${SERVICE}:${ref}`, chunks, isTruncated },
  }
}

/** What has no place of its own in the index stands behind the text, and is found like it. */
function besides({ id, rescue }: MappedRecord): string[] {
  const rescued = Object.entries(rescue).map(
    ([field, value]) => `${field}: ${typeof value === 'string' ? value : (JSON.stringify(value) ?? '')}`,
  )
  return id === null ? rescued : [`id: ${id}`, ...rescued]
}
