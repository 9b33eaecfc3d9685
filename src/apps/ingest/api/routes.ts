/** Routes of object ingest. Members see the pipelines that are theirs; admins see all. */
import { z } from 'zod'
import { noteWithoutEngine } from '../../../app/engine-note.ts'
import { readJsonCursor, writeCursor } from '../../../app/inputs.ts'
import { conflict, notFound } from '../../../app/problem.ts'
import { already, cursorQuery, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { pauseNote } from '../../../app/sync-request.ts'
import { noteAccountLook, type RequestUser } from '../../../app/user.ts'
import type { Account } from '../../../ledger/accounts.ts'
import { SERVICE, streamOf } from '../pipeline.ts'
import { SHARD_STATES } from '../shard-states.ts'
import { quarantineView, shardView, unparsedView } from '../shard-view.ts'
import { type PipelineStatus, pipelineStatus } from '../status.ts'
import type { ShardRow } from '../store/rows.ts'
import { type IngestServices, route } from './route.ts'
import {
  type PipelineStatusView,
  pipelineStatusSchema,
  quarantinedSchema,
  shardSchema,
  unparsedSchema,
} from './schemas.ts'

const pipelineText = z.string().min(1).max(64).describe('The name of the pipeline')
const pipelineParams = z.object({ name: pipelineText })
const shardText = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .describe('The id of an object version, as lists give it')
const shardParams = z.object({ name: pipelineText, shard: shardText })
const UNPARSED_SHOWN_MAX = 200
/** Long enough that a few small objects are no burst. */
const RECENT_SECONDS = 300
const MESSAGES_MAX = 1_000
const MESSAGE_CHARS_MAX = 1024 * 1024

/** Whose pipelines a user may look at. */
export async function pipelinesFor({ accounts }: IngestServices, user: RequestUser): Promise<Account[]> {
  if (user.role === 'admin') return accounts.list(SERVICE)
  return (await accounts.ofUser(user.id)).filter(({ service }) => service === SERVICE)
}

/** One that is another's is as one that is not there. */
async function ownPipeline(services: IngestServices, user: RequestUser, name: string): Promise<Account> {
  const found = (await pipelinesFor(services, user)).find((one) => one.name === name)
  if (found) return found
  throw notFound(`There is no pipeline ${name}.`, { code: 'pipeline-unknown' })
}

/** The same for what shows names and records: that an admin looks at those of others is written down. */
async function lookInto(
  services: IngestServices,
  user: RequestUser,
  { name, what }: { name: string; what: string },
): Promise<void> {
  await ownPipeline(services, user, name)
  if (user.role !== 'admin') return
  await noteAccountLook(services, user, { service: SERVICE, account: name, what: `${what} of ${name}` })
}

async function ownShard(
  services: IngestServices,
  user: RequestUser,
  { name, shard }: z.output<typeof shardParams>,
): Promise<ShardRow> {
  await lookInto(services, user, { name, what: `looked at the object ${shard}` })
  const row = await services.ingest.tables.shard(name, shard)
  if (row) return row
  throw notFound(`The pipeline ${name} knows of no object ${shard}.`, { code: 'shard-unknown' })
}

export async function statusView(services: IngestServices, name: string): Promise<PipelineStatusView> {
  const { ingest, ledger } = services
  const sinceMs = ledger.now() - RECENT_SECONDS * 1_000
  const [status, recent, pauses] = await Promise.all([
    pipelineStatus(ingest.tables, name),
    ingest.tables.recent(name, sinceMs),
    ledger.pauses(),
  ])
  const paused = pauses.some(({ scope, target }) => scope === 'stream' && target === streamOf(name))
  const config = await ingest.pipelines.get(name).then(
    (pipeline) => pipeline.config,
    () => undefined,
  )
  const broken = ingest.pipelines.broken().get(name)
  return {
    ...plainStatus(status),
    ...(broken ? { problem: { text: broken.message, atMs: ledger.now() } } : {}),
    recent: { seconds: RECENT_SECONDS, ...recent },
    paused,
    queue: config?.queue.kind ?? 'none',
    location: config?.location ?? null,
  }
}

function plainStatus(
  status: PipelineStatus,
): Omit<PipelineStatusView, 'recent' | 'paused' | 'queue' | 'location'> {
  const { listing, objects } = status
  return {
    ...status,
    objects: {
      ...objects,
      skippedBy: [...objects.skippedBy],
      badBy: [...objects.badBy],
      goneBy: [...objects.goneBy],
    },
    afterwards: [...status.afterwards],
    messages: { ...status.messages, unparsedBy: [...status.messages.unparsedBy] },
    listing: listing && { ...listing, skippedBy: [...listing.skippedBy], badBy: [...listing.badBy] },
  }
}

const getPipelines = route('GET /api/ingest/pipelines', {
  summary: 'The pipelines with their books',
  access: 'member',
  answer: z.object({ pipelines: z.array(pipelineStatusSchema) }),
  handle: async ({ user }, services) => {
    const rows = await pipelinesFor(services, user)
    return { pipelines: await Promise.all(rows.map(({ name }) => statusView(services, name))) }
  },
})

const getPipeline = route('GET /api/ingest/pipelines/{name}', {
  summary: 'One pipeline with its books',
  access: 'member',
  errors: [404],
  params: pipelineParams,
  answer: pipelineStatusSchema,
  handle: async ({ params, user }, services) => {
    await ownPipeline(services, user, params.name)
    return statusView(services, params.name)
  },
})

const getShards = route('GET /api/ingest/pipelines/{name}/shards', {
  summary: 'Object versions, and what became of each',
  access: 'member',
  errors: [400, 404],
  params: pipelineParams,
  query: z.object({
    ...cursorQuery,
    state: z.enum(SHARD_STATES).optional().describe('Only those'),
    code: z.string().max(100).optional().describe('Only those with this reason'),
    uri: z.string().max(4_096).optional().describe('Only the versions of this object'),
  }),
  answer: pageOf(shardSchema),
  handle: async ({ params, query, user }, services) => {
    await lookInto(services, user, { name: params.name, what: 'listed objects' })
    const { limit, cursor, state, code, uri } = query
    const after = readJsonCursor(cursor, z.string().max(64)) ?? ''
    const rows = await services.ingest.tables.shards({
      pipeline: params.name,
      state,
      code,
      uri,
      after,
      limit,
    })
    return { items: rows.map(shardView), next: rows.length < limit ? null : writeCursor(rows.at(-1)!.id) }
  },
})

const getShard = route('GET /api/ingest/pipelines/{name}/shards/{shard}', {
  summary: 'One object version: its position, its attempts, who publishes',
  access: 'member',
  errors: [404],
  params: shardParams,
  answer: shardSchema,
  handle: async ({ params, user }, services) => shardView(await ownShard(services, user, params)),
})

const placeSchema = z.object({ shard: z.string().max(64), at: z.number().int() })

const getQuarantine = route('GET /api/ingest/pipelines/{name}/quarantine', {
  summary: 'Records that could not be read, each with its reason',
  access: 'member',
  errors: [400, 404],
  params: pipelineParams,
  query: z.object({ ...cursorQuery, shard: shardText.optional().describe('Only of this object version') }),
  answer: pageOf(quarantinedSchema),
  handle: async ({ params, query, user }, services) => {
    await lookInto(services, user, { name: params.name, what: 'read quarantined records' })
    const { limit, cursor, shard } = query
    const after = readJsonCursor(cursor, placeSchema) ?? { shard: '', at: -1 }
    const rows = await services.ingest.tables.quarantine({
      pipeline: params.name,
      shard,
      isLive: shard === undefined,
      after,
      limit,
    })
    const last = rows.at(-1)
    const next = rows.length < limit || !last ? null : writeCursor({ shard: last.shard, at: last.at })
    return { items: rows.map(quarantineView), next }
  },
})

const getUnparsed = route('GET /api/ingest/pipelines/{name}/unparsed', {
  summary: 'Messages that nobody understood, the newest first',
  access: 'member',
  errors: [404],
  params: pipelineParams,
  answer: z.object({ items: z.array(unparsedSchema) }),
  handle: async ({ params, user }, services) => {
    await lookInto(services, user, { name: params.name, what: 'read messages that nobody understood' })
    const rows = await services.ingest.tables.unparsed(params.name, UNPARSED_SHOWN_MAX)
    return { items: rows.map(unparsedView) }
  },
})

const replay = route('POST /api/ingest/pipelines/{name}/shards/{shard}/replay', {
  status: 202,
  summary: 'Reads quarantined records of an object again, and publishes those that can be read now',
  access: 'member',
  errors: [404],
  params: shardParams,
  body: z.strictObject({
    at: z.array(z.number().int().min(0)).max(10_000).optional().describe('Which; all if left out'),
  }),
  answer: doneSchema,
  handle: async ({ params, body, user }, services) => {
    await ownShard(services, user, params)
    const { engine, ingest } = services
    const { name: pipeline, shard } = params
    const some = body.at === undefined ? {} : { at: body.at }
    await engine.enqueue(ingest.kinds.replay, { pipeline, shard, ...some }, { stream: streamOf(pipeline) })
    return done(`They are read again.${await noteWithoutEngine(services)}`)
  },
})

const reconcile = route('POST /api/ingest/pipelines/{name}/reconcile', {
  status: 202,
  summary: 'Lists the bucket now, and reads what is missing; where that is under way, it says so',
  access: 'member',
  errors: [404, 409],
  params: pipelineParams,
  answer: doneSchema,
  handle: async ({ params: { name }, user }, services) => {
    await ownPipeline(services, user, name)
    const { engine, ingest } = services
    const { config } = await ingest.pipelines.get(name)
    if (config.location === null) {
      throw conflict(`The pipeline ${name} has nothing to list.`, { code: 'no-location' })
    }
    const stream = streamOf(name)
    const { outcome } = await engine.enqueue(ingest.kinds.list, { pipeline: name }, { stream })
    const held = await pauseNote(services, [{ name, stream }])
    if (outcome === 'ignored') return already(`The listing is under way already.${held}`)
    return done(`The listing is begun.${held}${await noteWithoutEngine(services)}`)
  },
})

const push = route('POST /api/ingest/pipelines/{name}/messages', {
  status: 202,
  summary: 'Puts messages into the inbox of a pipeline',
  description: 'They are durable when this is answered. 409: the pipeline reads another queue.',
  access: 'member',
  errors: [404, 409],
  params: pipelineParams,
  body: z.strictObject({
    messages: z
      .array(
        z.strictObject({
          body: z
            .union([z.string().max(MESSAGE_CHARS_MAX), z.record(z.string(), z.unknown())])
            .describe('Text, or JSON'),
          attributes: z.record(z.string().max(256), z.string().max(1_024)).optional(),
        }),
      )
      .min(1)
      .max(MESSAGES_MAX)
      .describe('What a queue would deliver: announcements, or data'),
  }),
  answer: doneSchema,
  handle: async ({ params: { name }, body, user }, services) => {
    await ownPipeline(services, user, name)
    const { ingest, ledger } = services
    const { config } = await ingest.pipelines.get(name)
    if (config.queue.kind !== 'inbox') {
      throw conflict(`The pipeline ${name} has no inbox.`, { code: 'no-inbox' })
    }
    const messages = body.messages.map((one) => ({
      body: new TextEncoder().encode(typeof one.body === 'string' ? one.body : JSON.stringify(one.body)),
      attributes: one.attributes ?? {},
    }))
    await ledger.transaction((tx) => ingest.inbox.put(tx, name, messages))
    ingest.inbox.arrived()
    return done(`${messages.length} received.${await noteWithoutEngine(services)}`)
  },
})

export const ingestRoutes = [
  getPipelines,
  getPipeline,
  getShards,
  getShard,
  getQuarantine,
  getUnparsed,
  replay,
  reconcile,
  push,
]
