/**
 * A pipeline: where messages come from, where objects are, how they are read, and what becomes of them. It is an account
 * of the service `ingest`: so it is of one user, who finds its records; its secrets are sealed by the vault; and whoever
 * may look after accounts may look after it. What is configured stands in the account's settings.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { type Account, accountKey } from '../../ledger/accounts.ts'
import type { RefRange } from '../../search/contract.ts'
import { COMPRESSIONS, RECORD_FORMATS } from './contract.ts'

/** The service of its account, the app, and the source of its documents in the index. */
export const SERVICE = 'ingest'

/** The kind of the jobs whose items are object versions. */
export const OBJECT_KIND = 'ingest.object'
export const LIST_KIND = 'ingest.list'

const text = z.string().min(1).max(2_048)
/** They would be kept, and shown, as they are. */
const NO_USER = 'it must not hold a user or a password: those are given with --credentials'
const hasNoUser = (value: string): boolean =>
  value.split(',').every(
    (one) =>
      !one
        .replace(/^\s*[a-z0-9+.-]+:\/\//i, '')
        .split(/[/?#]/, 1)[0]!
        .includes('@'),
  )
const url = text.refine((value) => URL.canParse(value), 'it must be an address').refine(hasNoUser, NO_USER)
/** A bucket alone means all of it, and not every bucket whose name begins so. */
const place = text
  .refine(hasNoUser, NO_USER)
  .transform((value) => (/^(s3|gs):\/\/[^/]+$/.test(value) ? `${value}/` : value))

export const QUEUE_KINDS = ['none', 'inbox', 'folder', 'sqs', 'pubsub', 'nats'] as const
export type QueueKind = (typeof QUEUE_KINDS)[number]

const queueSchema = z.discriminatedUnion('kind', [
  /** Its bucket is listed, and nothing else. */
  z.strictObject({ kind: z.literal('none') }),
  /** What is posted to this server. */
  z.strictObject({ kind: z.literal('inbox') }),
  /** Files that somebody puts into a folder of this machine. */
  z.strictObject({ kind: z.literal('folder'), path: text }),
  z.strictObject({
    kind: z.literal('sqs'),
    url,
    region: text.default('us-east-1'),
    endpoint: url.optional(),
  }),
  z.strictObject({ kind: z.literal('pubsub'), subscription: text, endpoint: url.optional() }),
  z.strictObject({
    kind: z.literal('nats'),
    servers: text.refine(hasNoUser, NO_USER),
    stream: text,
    consumer: text,
  }),
])
export type QueueConfig = z.output<typeof queueSchema>

/** What becomes of an object that is stored: see dispose.ts. */
const afterSchema = z.discriminatedUnion(
  'do',
  [
    z.strictObject({ do: z.literal('keep') }),
    z.strictObject({ do: z.literal('tag'), tags: z.record(z.string().max(128), z.string().max(256)) }),
    /** Below another address of the same store. */
    z.strictObject({
      do: z.literal('move'),
      to: place.transform((to) => (to.endsWith('/') ? to : `${to}/`)),
    }),
    /** After a copy of it was kept in the home. */
    z.strictObject({ do: z.literal('delete') }),
  ],
  { error: 'objects are kept, tagged, moved or deleted' },
)

const path = z.string().min(1).max(500)

export const pipelineSchema = z.strictObject({
  queue: queueSchema,
  /** What is listed: `s3://bucket/prefix`. Null where nothing is. */
  location: place.nullable().default(null),
  /** Further places, as `s3://bucket/prefix`, whose objects messages may name. */
  allow: z.array(place).max(100).default([]),
  /** Where no keys were given: whether those of this machine are used, with all that they may. */
  ambientCredentials: z.boolean().default(false),
  /** Of objects: another place than AWS or Google. */
  store: z
    .strictObject({
      region: text.default('us-east-1'),
      endpoint: url.optional(),
      pathStyle: z.boolean().default(false),
    })
    .prefault({}),
  /** Of https addresses: which hosts may be asked, with a port where it is not the usual one; see src/cloud/web. */
  hosts: z.array(text).max(100).default([]),
  /** How often it is listed; 0 for on demand only. */
  listEveryMinutes: z.int().min(0).max(525_600).default(60),
  /** Objects that were changed before are skipped. */
  startAtMs: z.int().nullable().default(null),
  read: z
    .strictObject({
      format: z.enum(['auto', ...RECORD_FORMATS]).default('auto'),
      compression: z.enum(['auto', ...COMPRESSIONS]).default('auto'),
      recordsField: path.optional(),
      header: z.boolean().optional(),
    })
    .prefault({}),
  mapping: z
    .strictObject({
      title: path.optional(),
      text: z.array(path).max(50).default([]),
      time: path.optional(),
      id: path.optional(),
      facets: z.array(path).max(20).default([]),
    })
    .prefault({}),
  /** Messages that announce nothing are data themselves. */
  carriesData: z.boolean().default(false),
  overwrites: z.enum(['replace', 'append']).default('replace'),
  after: afterSchema.default({ do: 'keep' }),
  /** Places whose objects are not read, whoever names them: where objects were moved to before. */
  leftOut: z.array(place).max(100).default([]),
  /** Whether records are found by their meaning, too. */
  isEmbedded: z.boolean().default(false),
})
export type PipelineConfig = z.output<typeof pipelineSchema>
export type PipelineInput = z.input<typeof pipelineSchema>

/** As the vault keeps it. */
export const secretSchema = z.object({
  aws: z
    .object({ accessKeyId: text, secretAccessKey: text, sessionToken: z.string().max(10_000).optional() })
    .optional(),
  serviceAccount: z.record(z.string(), z.unknown()).optional(),
  nats: z.object({ user: text.optional(), password: text.optional(), token: text.optional() }).optional(),
})
export type PipelineSecret = z.output<typeof secretSchema>

export type Pipeline = { name: string; account: Account; config: PipelineConfig }

/** Part of refs, streams and addresses. */
export const PIPELINE_NAME = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/

export function checkPipelineName(name: string): void {
  if (PIPELINE_NAME.test(name)) return
  throw new UsageError(`"${name}" is no name for a pipeline.`, {
    code: 'pipeline-name',
    hint: 'Use up to 64 small letters, digits, dots, dashes and underscores, such as access-logs.',
  })
}

export function readPipeline(account: Account): Pipeline {
  const parsed = pipelineSchema.safeParse(account.settings[SERVICE])
  if (parsed.success) return { name: account.name, account, config: parsed.data }
  const issue = parsed.error.issues[0]
  throw new UsageError(
    `The configuration of the pipeline ${account.name} is not right: ${issue?.path.join('.') || 'all of it'}: ${issue?.message}.`,
    { code: 'pipeline-config', cause: parsed.error },
  )
}

/** The pipeline's stream, and the principal through which its owner finds records. */
export function streamOf(pipeline: string): string {
  return accountKey({ service: SERVICE, name: pipeline })
}

export function pipelineOf(stream: string): string {
  return stream.slice(`${SERVICE}:`.length)
}

/** 128 bits of what it is about: the same object version is the same shard, whoever finds it, and whenever. */
export function shardId(uri: string, version: string): string {
  return createHash('sha256').update(`${uri}\n${version}`).digest('hex').slice(0, 32)
}

/** Where the records of a shard stand in the index, in their order. */
export function shardRange(pipeline: string, shard: string): RefRange {
  return { source: SERVICE, prefix: `${pipeline}/${shard}/` }
}

export function recordRef(pipeline: string, shard: string, at: number): string {
  return `${shardRange(pipeline, shard).prefix}${String(at).padStart(12, '0')}`
}

/** What a bad object is called among bad items. */
export function itemOf({ uri, version }: { uri: string; version: string }): string {
  return version === '' ? uri : `${uri}@${version}`
}

/** The key of an object: its address without scheme and bucket. */
export function keyOf(uri: string): string {
  return uri.replace(/^[a-z0-9]+:\/\/[^/]*\//, '')
}
