/** `tidemark ingest add`: from flags to a pipeline. */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { configOf, addPipeline as makePipeline, updatePipeline } from '../configure.ts'
import { checkForgotten } from '../forget.ts'
import { type PipelineConfig, type PipelineInput, type PipelineSecret, secretSchema } from '../pipeline.ts'
import { previewObject } from '../preview.ts'
import type { IngestRuntime } from '../runtime.ts'
import { booksText, pipelineStatus } from '../status.ts'
import { withIngest } from './context.ts'
import { firstListed, flagsOf } from './first-object.ts'

export type ReadFlags = {
  format?: string
  compression?: string
  recordsField?: string
  text?: string[]
  title?: string
  time?: string
  id?: string
  facet?: string[]
}

type AddFlags = ReadFlags & {
  bucket?: string
  sqs?: string
  pubsub?: string
  nats?: string
  natsStream?: string
  natsConsumer?: string
  folder?: string
  inbox?: boolean
  region?: string
  endpoint?: string
  queueEndpoint?: string
  pathStyle?: boolean
  host?: string[]
  credentials?: string
  ambientCredentials?: boolean
  allow?: string[]
  carriesData?: boolean
  overwrites?: 'replace' | 'append'
  after?: 'keep' | 'tag' | 'move' | 'delete'
  to?: string
  listEvery?: string
  start?: string
  meaning?: boolean
  user?: string
  update?: boolean
}

export async function addPipeline(context: CliContext, name: string, flags: AddFlags): Promise<void> {
  const { output } = context
  const secret = flags.credentials === undefined ? undefined : await readCredentials(flags.credentials)
  if (flags.folder !== undefined) await checkFolder(flags.folder)
  await withIngest(
    context,
    async (opened) => {
      const before = flags.update ? await configOf(opened, name) : undefined
      const config = configFrom(flags, before)
      const userId = flags.user === undefined ? undefined : (await opened.users.find(flags.user))?.id
      if (flags.user !== undefined && userId === undefined) {
        throw new UsageError(`There is no user ${flags.user}.`, { code: 'user-unknown' })
      }
      const { accounts, ingest } = opened
      await checkForgotten({ accounts, tables: ingest.tables }, name)
      const made = flags.update
        ? await updatePipeline(opened, { name, config, secret })
        : await makePipeline(opened, { name, config, secret: secret ?? {}, userId })
      if (!flags.update && flags.text === undefined) {
        const { config: proposed, why } = await proposedFor(opened, name, made)
        if (proposed) made.mapping = (await updatePipeline(opened, { name, config: proposed })).mapping
        else if (why) output.note(`No object can be read yet: ${why}`)
        output.note(
          proposed
            ? `Proposed by its first object: ${flagsOf(made.mapping)}`
            : 'Until --text says otherwise, all fields of a record are its text.',
        )
      }
      if (mayNameNothing(made)) output.note(NAMES_NOTHING)
      if (output.json) output.value({ pipeline: name, updated: flags.update === true, config: made })
      else output.line(flags.update ? `The pipeline ${name} is changed.` : `The pipeline ${name} is made.`)
      if (flags.update) output.note(booksText(await pipelineStatus(opened.ingest.tables, name)))
      else output.note(`Read what is there with: tidemark ingest sync ${name}`)
    },
    { create: true },
  )
}

const NAMES_NOTHING =
  'Its messages may not name any object yet: say which with --update --bucket s3://bucket/prefix (also listed), ' +
  '--allow s3://bucket/prefix or --host NAME. Until then they are refused and shown with: tidemark ingest quarantine NAME --messages'

/** Whoever writes to its queue may have nothing read. */
function mayNameNothing({ queue, location, allow, hosts, carriesData }: PipelineConfig): boolean {
  const isAnnounced = queue.kind !== 'folder' && queue.kind !== 'none'
  return isAnnounced && location === null && allow.length === 0 && hosts.length === 0 && !carriesData
}

/** What its first object proposes, besides what was said; or why none can be read, where there is one. */
async function proposedFor(
  opened: IngestRuntime,
  name: string,
  config: PipelineConfig,
): Promise<{ config?: PipelineInput; why?: string }> {
  const { pipelines, settings } = opened.ingest
  const { signal } = new AbortController()
  try {
    const uri = await firstListed(opened, name, config)
    const store = await pipelines.store(name, uri)
    const { proposal } = await previewObject(store, uri, {
      read: config.read,
      recordsMax: 1,
      limits: settings.limits,
      signal,
    })
    if (proposal.mapping.text.length === 0) return {}
    const { facets, ...said } = config.mapping
    const own = facets.length > 0 ? { facets } : {}
    const { text } = proposal.mapping
    const mapping = { ...proposal.mapping, ...said, ...own, text: [...text] }
    return { config: { ...config, mapping: { ...mapping, facets: [...mapping.facets] } } }
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError)) throw thrown
    return thrown.code === 'no-object' ? {} : { why: thrown.message }
  }
}

function configFrom(flags: AddFlags, before: PipelineInput | undefined): PipelineInput {
  const queue = queueFrom(flags) ?? before?.queue ?? { kind: 'none' as const }
  const kept = flags.folder === undefined ? before?.location : undefined
  const location = flags.bucket ?? kept ?? folderLocation(queue)
  return {
    ...before,
    queue,
    location,
    store: {
      ...before?.store,
      ...given({ region: flags.region, endpoint: flags.endpoint, pathStyle: flags.pathStyle }),
    },
    read: { ...before?.read, ...readFrom(flags) },
    mapping: { ...before?.mapping, ...mappingFrom(flags) },
    ...given({
      hosts: flags.host,
      allow: flags.allow,
      ambientCredentials: flags.ambientCredentials,
      carriesData: flags.carriesData,
      overwrites: flags.overwrites,
      isEmbedded: flags.meaning,
      after: afterFrom(flags, queue),
      listEveryMinutes: flags.listEvery === undefined ? undefined : minutesOf(flags.listEvery),
      startAtMs: flags.start === undefined ? undefined : timeOf(flags.start),
    }),
  }
}

export function readFrom({
  format,
  compression,
  recordsField,
}: ReadFlags): NonNullable<PipelineInput['read']> {
  return given({ format, compression, recordsField }) as NonNullable<PipelineInput['read']>
}

export function mappingFrom({
  text,
  title,
  time,
  id,
  facet,
}: ReadFlags): NonNullable<PipelineInput['mapping']> {
  return given({ text, title, time, id, facets: facet })
}

/** Without what was not said. */
function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const said = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

function queueFrom(flags: AddFlags): PipelineInput['queue'] | undefined {
  const chosen = [flags.sqs, flags.pubsub, flags.nats, flags.folder, flags.inbox].filter(Boolean)
  if (chosen.length > 1) {
    throw new UsageError('Messages come from one place: say --sqs, --pubsub, --nats, --folder or --inbox.')
  }
  const at = given({ endpoint: flags.queueEndpoint ?? (flags.sqs ? flags.endpoint : undefined) })
  if (flags.inbox) return { kind: 'inbox' }
  if (flags.folder !== undefined) return { kind: 'folder', path: resolve(flags.folder) }
  if (flags.sqs !== undefined) {
    return { kind: 'sqs', url: flags.sqs, ...given({ region: flags.region }), ...at }
  }
  if (flags.pubsub !== undefined) return { kind: 'pubsub', subscription: flags.pubsub, ...at }
  if (flags.nats === undefined) return undefined
  if (flags.natsStream === undefined || flags.natsConsumer === undefined) {
    throw new UsageError('--nats needs --nats-stream and --nats-consumer.')
  }
  return { kind: 'nats', servers: flags.nats, stream: flags.natsStream, consumer: flags.natsConsumer }
}

/** One that is written wrongly would be waited for in vain. */
async function checkFolder(folder: string): Promise<void> {
  const stats = await stat(folder).catch((thrown: NodeJS.ErrnoException) => {
    const why = thrown.code === 'ENOENT' ? 'is not there' : `cannot be looked at (${thrown.code})`
    const hint = 'Make it, or see that its disk is there and who may read it.'
    throw new UsageError(`The folder ${resolve(folder)} ${why}.`, { code: 'folder-missing', hint })
  })
  if (!stats.isDirectory()) throw new UsageError(`${resolve(folder)} is no folder.`, { code: 'no-folder' })
}

/** What is in the folder already is found by listing it. */
function folderLocation(queue: PipelineInput['queue']): string | null {
  return queue.kind === 'folder' ? `file://${queue.path}` : null
}

function afterFrom(
  { after, to }: AddFlags,
  queue: PipelineInput['queue'],
): PipelineInput['after'] | undefined {
  if (to !== undefined && after !== 'move') throw new UsageError('--to belongs to --after move.')
  switch (after) {
    case 'tag':
      return { do: 'tag', tags: { tidemark: 'stored' } }
    case 'move':
      if (to === undefined) throw new UsageError('--after move needs --to, which says where to.')
      return { do: 'move', to: placeOf(to, queue) }
    default:
      return after && { do: after }
  }
}

/** An address, or a folder; that of a drop folder may be said from there. */
function placeOf(to: string, queue: PipelineInput['queue']): string {
  if (/^[a-z0-9]+:\/\//.test(to)) return to
  return `file://${queue.kind === 'folder' ? resolve(queue.path, to) : resolve(to)}`
}

function minutesOf(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new UsageError(`--list-every is "${text}", which is no number of minutes.`, {
    hint: 'Write it like 60; 0 lists on demand only.',
  })
}

function timeOf(text: string): number {
  const ms = Date.parse(text)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`--start is "${text}", which is no time.`, { hint: 'Write it like 2026-11-01.' })
}

async function readCredentials(file: string): Promise<PipelineSecret> {
  const hint = 'It must be JSON: {"accessKeyId": …, "secretAccessKey": …}, or the key of a service account.'
  try {
    const parsed = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
    if (parsed.type === 'service_account') return secretSchema.parse({ serviceAccount: parsed })
    return secretSchema.parse('accessKeyId' in parsed ? { aws: parsed } : parsed)
  } catch (thrown) {
    // The error may quote what is in the file.
    const why = (thrown as NodeJS.ErrnoException).code === 'ENOENT' ? 'is not there' : 'holds no keys'
    throw new UsageError(`The file ${file} ${why}.`, { code: 'credentials', hint })
  }
}
