/** `tidemark ingest preview`: the first records of an object, and which fields may be what. */
import type { CliContext } from '../../../app/command.ts'
import { isoTime } from '../../../base/moment.ts'
import { pipelineSchema } from '../pipeline.ts'
import { type Preview, previewObject } from '../preview.ts'
import { mappingFrom, type ReadFlags, readFrom } from './add.ts'
import { withIngest } from './context.ts'
import { firstListed, flagsOf } from './first-object.ts'

type Input = { name: string; address: string | undefined; options: ReadFlags & { limit: number } }

export async function showPreview(context: CliContext, input: Input): Promise<void> {
  const { name, options } = input
  await withIngest(context, async (opened) => {
    const { config } = await opened.ingest.pipelines.get(name)
    const uri = input.address ?? (await firstListed(opened, name, config.location))
    const store = await opened.ingest.pipelines.store(name, uri)
    const asked = mappingFrom(options)
    const own = { ...config.mapping, ...asked }
    const isMapped = own.text.length > 0 || own.title !== undefined || Object.keys(asked).length > 0
    const read = pipelineSchema.shape.read.parse({ ...config.read, ...readFrom(options) })
    const preview = await previewObject(store, uri, {
      read,
      ...(isMapped ? { mapping: pipelineSchema.shape.mapping.parse(own) } : {}),
      recordsMax: options.limit,
      limits: opened.ingest.settings.limits,
      signal: new AbortController().signal,
    })
    print(context, preview)
  })
}

function print({ output }: CliContext, preview: Preview): void {
  const { shape, proposal, records, bad } = preview
  if (output.json) {
    output.value({ ...preview, bad: bad.map(({ at, code, reason }) => ({ at, code, reason })) })
    return
  }
  output.line(`${preview.uri}: ${shape.format}, compression ${shape.compression}`)
  output.line(`Proposed: ${flagsOf(proposal.mapping)}`)
  for (const { at, record } of records) {
    const when = record.atMs === null ? '' : ` (${isoTime(record.atMs)})`
    const by = record.facets.map(({ name, value }) => `${name}=${value}`).join(' ')
    output.line(`  ${at}  ${record.title}${when} ${by}`)
  }
  for (const { at, reason } of bad) output.line(`  ${at}  cannot be read: ${reason}`)
}
