/** What ingest commands work with. */
import { resolve } from 'node:path'
import type { AppInput } from '../../../app/cli/with-app.ts'
import { withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { ingestApp } from '../app.ts'
import type { PipelineConfig } from '../pipeline.ts'
import { type IngestRuntime, ingestRuntime } from '../runtime.ts'
import type { ShardRow } from '../store/rows.ts'

/** Opens everything, and starts nothing. */
export function withIngest<T>(
  context: CliContext,
  use: (opened: IngestRuntime) => Promise<T>,
  input: AppInput = {},
): Promise<T> {
  return withApp(context, ingestApp, input, (runtime) => use(ingestRuntime(runtime)))
}

/** Of addresses that are told where several are meant. */
const CANDIDATES_MAX = 10
const VERSIONS_MAX = 1_000

/**
 * As people name an object: by its address, with or without its version; by a path below what is listed, or as the
 * machine has it; by the last parts of its address; by its id, or how that begins. The newest version where only the
 * object is named.
 */
export async function findShard(
  { ingest: { pipelines, tables } }: IngestRuntime,
  pipeline: string,
  text: string,
): Promise<ShardRow> {
  const { config } = await pipelines.get(pipeline)
  const byId = /^[0-9a-f]{4,32}$/.test(text) ? await tables.beginning(pipeline, text, CANDIDATES_MAX + 1) : []
  const [uri, version] = splitVersion(text)
  const named = await tables.addressed(pipeline, addressesOf(text, config), VERSIONS_MAX)
  const versions = await tables.addressed(pipeline, addressesOf(uri, config), VERSIONS_MAX)
  const found = [...named, ...versions.filter((row) => row.version === version)]
  const uris = [...new Set(found.map((row) => row.uri))]
  if (uris.length === 0 && byId.length === 0) {
    uris.push(...(await tables.endingWith(pipeline, text.replace(/^\.?\/+/, ''), CANDIDATES_MAX + 1)))
  }
  if (uris.length + byId.length !== 1) {
    throw notOne(pipeline, text, [...byId.map((row) => `${row.id}  ${row.uri}`), ...uris])
  }
  return byId[0] ?? found[0] ?? (await tables.addressed(pipeline, uris, 1))[0]!
}

/** `s3://bucket/key@etag`, as bad objects are called. */
function splitVersion(text: string): [uri: string, version: string] {
  const at = text.lastIndexOf('@')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** All that the text may stand for, as an address; the likeliest last. */
export function addressesOf(text: string, { location, queue }: PipelineConfig): string[] {
  if (/^[a-z0-9]+:\/\//.test(text)) return [text]
  const all: string[] = []
  const root = queue.kind === 'folder' ? `file://${queue.path}/` : location
  if (root !== null && !text.startsWith('/')) {
    // With the name of the bucket, below the bucket, and below what is listed.
    const bucket = /^((?:s3|gs):\/\/)[^/]+\//.exec(root)
    if (bucket) all.push(`${bucket[1]}${text}`, `${bucket[0]}${text}`)
    all.push(`${root.replace(/[^/]*$/, '')}${text.replace(/^(?:\.\/)+/, '')}`)
  }
  if (root?.startsWith('file://')) all.unshift(`file://${resolve(text)}`)
  return all.length > 0 ? all : [text]
}

function notOne(pipeline: string, text: string, candidates: readonly string[]): UsageError {
  if (candidates.length === 0) {
    return new UsageError(`The pipeline ${pipeline} knows of no object ${text}.`, {
      code: 'shard-unknown',
      hint: `See what it knows with: tidemark ingest shards ${pipeline}`,
    })
  }
  const shown = candidates.slice(0, CANDIDATES_MAX).map((one) => `  ${one}`)
  const more = candidates.length > CANDIDATES_MAX ? ['  …'] : []
  return new UsageError(`Several objects of ${pipeline} are meant by ${text}.`, {
    code: 'shard-ambiguous',
    hint: ['Name one of these:', ...shown, ...more].join('\n'),
  })
}
