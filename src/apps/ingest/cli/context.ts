/** What ingest commands work with. */
import type { AppInput } from '../../../app/cli/with-app.ts'
import { withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { ingestApp } from '../app.ts'
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

const NAMED_MAX = 20

/** By its address, its id, or how that begins; the newest version where there are several. */
export async function findShard(
  { ingest }: IngestRuntime,
  pipeline: string,
  text: string,
): Promise<ShardRow> {
  await ingest.pipelines.get(pipeline)
  const found = await ingest.tables.named(pipeline, text, NAMED_MAX)
  const uris = new Set(found.map(({ uri }) => uri))
  if (found.length > 0 && uris.size === 1) return found[0]!
  if (found.length === 0) {
    throw new UsageError(`The pipeline ${pipeline} knows of no object ${text}.`, {
      code: 'shard-unknown',
      hint: `See what it knows with: tidemark ingest shards ${pipeline}`,
    })
  }
  throw new UsageError(`Several objects of ${pipeline} are meant by ${text}.`, {
    code: 'shard-ambiguous',
    hint: `Name one of: ${[...uris].join(', ')}.`,
  })
}
