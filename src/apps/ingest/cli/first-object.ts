/** The object by which a mapping is proposed, and the proposal as flags. */
import { UsageError } from '../../../base/errors.ts'
import type { Mapping } from '../contract.ts'
import type { IngestRuntime } from '../runtime.ts'

export async function firstListed(
  { ingest }: IngestRuntime,
  name: string,
  location: string | null,
): Promise<string> {
  const page =
    location === null
      ? undefined
      : await (await ingest.pipelines.store(name, location)).list({
          prefix: location,
          after: null,
          max: 1,
          signal: new AbortController().signal,
        })
  const first = page?.objects[0]
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
