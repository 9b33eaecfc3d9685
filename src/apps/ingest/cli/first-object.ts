/** The object by which a mapping is proposed, and the proposal as flags. */
import { UsageError } from '../../../base/errors.ts'
import type { Mapping } from '../contract.ts'
import type { PipelineConfig } from '../pipeline.ts'
import { isLeftOut } from '../reach.ts'
import type { IngestRuntime } from '../runtime.ts'

const LOOKED_AT_MAX = 100

export async function firstListed(
  { ingest }: IngestRuntime,
  name: string,
  config: PipelineConfig,
): Promise<string> {
  const { location } = config
  const page =
    location === null
      ? undefined
      : await (await ingest.pipelines.store(name, location)).list({
          prefix: location,
          after: null,
          max: LOOKED_AT_MAX,
          signal: new AbortController().signal,
        })
  // Not what consoles make to show folders, nor what is never read.
  const first = page?.objects.find(({ uri, sizeBytes }) => sizeBytes !== 0 && !isLeftOut(config, uri))
  if (first) return first.uri
  throw new UsageError(`Nothing is listed for ${name}: say which object is meant.`, { code: 'no-object' })
}

export function flagsOf({ text, title, time, id, facets }: Mapping): string {
  return [
    ...text.map((path) => `--text ${path}`),
    ...(title === undefined ? [] : [`--title ${title}`]),
    ...(time === undefined ? [] : [`--time ${time}`]),
    ...(id === undefined ? [] : [`--id ${id}`]),
    ...facets.map((path) => `--facet ${path}`),
  ].join(' ')
}
