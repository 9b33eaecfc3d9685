/** `tidemark ingest preview`: the first records of an object, and which fields may be what. */
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { isoTime } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import { FileStore, fileUri } from '../../../cloud/local-files/client.ts'
import type { ObjectStore } from '../../../cloud/object-store.ts'
import type { ReadLimits } from '../contract.ts'
import { PIPELINE_NAME, type PipelineConfig, pipelineSchema } from '../pipeline.ts'
import { type Preview, previewObject } from '../preview.ts'
import type { IngestRuntime } from '../runtime.ts'
import { ingestSettingsOf } from '../settings.ts'
import { mappingFrom, type ReadFlags, readFrom } from './add.ts'
import { addressesOf, withIngest } from './context.ts'
import { firstListed, flagsOf } from './first-object.ts'

const FILE = 'file://'
const FIELDS_SHOWN_MAX = 40

/** `what`: a pipeline, or an object without one. */
type Input = { what: string; address: string | undefined; options: ReadFlags & { limit: number } }

export async function showPreview(context: CliContext, { what, address, options }: Input): Promise<void> {
  const path = what.startsWith(FILE) ? what.slice(FILE.length) : resolve(what)
  // A file needs no pipeline, and no ledger, unless a pipeline is called like it.
  if (address === undefined && (await isFile(path)) && !(await isPipeline(context, what))) {
    const { values } = await context.loadConfig()
    const file = { store: new FileStore({ root: dirname(path) }), uri: fileUri(path), config: undefined }
    return preview(context, file, { options, limits: ingestSettingsOf(values).limits })
  }
  await withIngest(context, async (opened) => {
    const source = await sourceOf(opened, what, address)
    await preview(context, source, { options, limits: opened.ingest.settings.limits })
  })
}

type Previewed = { store: ObjectStore; uri: string; config: PipelineConfig | undefined }

async function preview(
  context: CliContext,
  { store, uri, config }: Previewed,
  { options, limits }: { options: Input['options']; limits: ReadLimits },
): Promise<void> {
  const asked = mappingFrom(options)
  const own = { ...config?.mapping, ...asked }
  const isMapped = (own.text ?? []).length > 0 || own.title !== undefined || Object.keys(asked).length > 0
  const read = pipelineSchema.shape.read.parse({ ...config?.read, ...readFrom(options) })
  const mapping = isMapped ? { mapping: pipelineSchema.shape.mapping.parse(own) } : {}
  const { signal } = new AbortController()
  print(
    context,
    await previewObject(store, uri, { read, ...mapping, recordsMax: options.limit, limits, signal }),
  )
}

async function sourceOf(
  opened: IngestRuntime,
  what: string,
  address: string | undefined,
): Promise<Previewed> {
  const { pipelines } = opened.ingest
  const isAddress = address === undefined && what.includes('://')
  const name = isAddress ? await whoMayRead(opened, what) : what
  const { config } = await pipelines.get(name)
  const asked = isAddress ? what : address
  const uri =
    asked === undefined ? await firstListed(opened, name, config) : addressesOf(asked, config).at(-1)!
  return { store: await pipelines.store(name, uri), uri, config }
}

async function isPipeline(context: CliContext, what: string): Promise<boolean> {
  if (!PIPELINE_NAME.test(what)) return false
  try {
    return await withIngest(context, async ({ ingest }) => ingest.pipelines.names().includes(what))
  } catch (thrown) {
    if (thrown instanceof UsageError && thrown.code === 'no-pipeline') return false
    throw thrown
  }
}

async function isFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.isFile() === true
}

/** The pipeline whose place it is in: its keys are used. */
async function whoMayRead({ ingest: { pipelines } }: IngestRuntime, uri: string): Promise<string> {
  const names: string[] = []
  for (const name of pipelines.names()) {
    const { location, allow } = (await pipelines.get(name)).config
    if ([location, ...allow].some((place) => place !== null && uri.startsWith(place))) names.push(name)
  }
  if (names.length === 1) return names[0]!
  if (names.length > 1) {
    const hint = `Say whose keys are used: tidemark ingest preview ${names[0]} ${uri}`
    throw new UsageError(`Several pipelines may read ${uri}: ${names.join(', ')}.`, {
      code: 'ambiguous',
      hint,
    })
  }
  throw new UsageError(`No pipeline may read ${uri}.`, {
    code: 'no-pipeline',
    hint: 'Make one that lists its bucket with tidemark ingest add, or name a file of this machine.',
  })
}

function print({ output }: CliContext, preview: Preview): void {
  const { shape, proposal, records, bad, stopped } = preview
  if (output.json) {
    output.value({ ...preview, bad: bad.map(({ at, code, reason }) => ({ at, code, reason })) })
    return
  }
  output.line(`${preview.uri}: ${shape.format}, compression ${shape.compression}`)
  output.line('Fields:')
  for (const { path, types, share, examples } of proposal.schema.slice(0, FIELDS_SHOWN_MAX)) {
    const part = share < 1 ? `, in ${Math.max(1, Math.floor(share * 100))} % of the records` : ''
    output.line(`  ${path}  ${types.join(' or ')}${part}  ${examples[0] ?? ''}`.trimEnd())
  }
  const more = proposal.schema.length - FIELDS_SHOWN_MAX
  if (more > 0) output.line(`  and ${counted(more, 'field')} more`)
  output.line(`Proposed: ${flagsOf(proposal.mapping) || 'nothing; all fields of a record are its text'}`)
  output.line('Records:')
  for (const { at, record } of records) {
    const when = record.atMs === null ? '' : ` (${isoTime(record.atMs)})`
    const by = record.facets.map(({ name, value }) => `${name}=${value}`).join(' ')
    output.line(`  ${at}  ${record.title}${when} ${by}`)
  }
  for (const { at, reason } of bad) output.line(`  ${at}  cannot be read: ${reason}`)
  if (stopped) output.line(`It reads no further: ${stopped.reason}`)
}
