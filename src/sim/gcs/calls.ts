/** The calls of the JSON API of Cloud Storage. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { GoogleError, invalid } from '../google/errors.ts'
import type { SimBucket, StoredVersion } from '../objects/bucket.ts'
import { crc32Of, heldContent, rangeOf } from '../objects/content.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import { EVENT_TYPES, type GcsStore, type NotificationConfig, objectJson } from './store.ts'
import { type GcsUpload, jsonObject, simpleUpload, type UploadSessions } from './uploads.ts'

export type GcsCall = { store: GcsStore; uploads: UploadSessions; call: SimCall; pieces: readonly string[] }
export type GcsOperation = { name: string; run(call: GcsCall): SimAnswer }

const PAGE_MAX = 1_000

const configInput = z.object({
  topic: z.string(),
  event_types: z.array(z.enum(EVENT_TYPES)).optional(),
  object_name_prefix: z.string().optional(),
  payload_format: z.enum(['JSON_API_V1', 'NONE']).optional(),
})

/** `pieces`: the path behind `b/`. Undefined: there may be such a call, but not here. */
export function gcsOperation(
  { verb, query }: SimCall,
  { pieces, isUpload, isDownload }: { pieces: readonly string[]; isUpload: boolean; isDownload: boolean },
): GcsOperation | undefined {
  const pattern = pieces.map((piece, at) => (at % 2 === 0 ? '*' : piece)).join('/')
  if (isUpload) {
    if (pattern !== '*/o') return undefined
    if (query.has('upload_id')) return { name: 'objects.upload', run: continueUpload }
    return { name: 'objects.insert', run: insert }
  }
  if (verb === 'GET' && pattern === '*/o/*' && (isDownload || query.get('alt') === 'media')) {
    return { name: 'objects.media', run: media }
  }
  // `b/A/o/B/rewriteTo/b/C/o/D` has its literals at other places.
  if (verb === 'POST' && pieces.length === 8 && pieces[1] === 'o' && pieces[4] === 'b' && pieces[6] === 'o') {
    if (pieces[3] === 'rewriteTo') return { name: 'objects.rewrite', run: rewrite }
    if (pieces[3] === 'copyTo') return { name: 'objects.copy', run: copyTo }
  }
  return OPERATIONS[`${verb} ${pattern}`]
}

const OPERATIONS: Readonly<Record<string, GcsOperation>> = {
  'POST ': { name: 'buckets.insert', run: createBucket },
  'GET *': { name: 'buckets.get', run: (call) => jsonAnswer(bucketJson(bucketOf(call))) },
  'GET */o': { name: 'objects.list', run: list },
  'GET */o/*': { name: 'objects.get', run: (call) => jsonAnswer(resource(call, checked(call))) },
  'PATCH */o/*': { name: 'objects.patch', run: patch },
  'DELETE */o/*': { name: 'objects.delete', run: remove },
  'POST */notificationConfigs': { name: 'notifications.insert', run: addConfig },
  'GET */notificationConfigs': { name: 'notifications.list', run: listConfigs },
  'DELETE */notificationConfigs/*': { name: 'notifications.delete', run: removeConfig },
}

function createBucket({ store, call }: GcsCall): SimAnswer {
  const { name } = jsonObject(call.body)
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(name)) {
    throw invalid(`Invalid bucket name: '${String(name)}'`)
  }
  if (store.buckets.has(name)) {
    const message = 'Your previous request to create the named bucket succeeded and you already own it.'
    throw new GoogleError({ status: 409, message, reason: 'conflict' })
  }
  return jsonAnswer(bucketJson(store.createBucket(name)))
}

function bucketJson({ name, isVersioned }: SimBucket): object {
  return { kind: 'storage#bucket', id: name, name, versioning: { enabled: isVersioned }, location: 'US' }
}

function list(context: GcsCall): SimAnswer {
  const bucket = bucketOf(context)
  const { query } = context.call
  const token = query.get('pageToken')
  const max = Math.min(Number(query.get('maxResults') ?? PAGE_MAX) || PAGE_MAX, PAGE_MAX)
  const { objects, prefixes, next } = bucket.list({
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    from: query.get('startOffset') ?? '',
    after: token === null ? null : Buffer.from(token, 'base64').toString('utf8'),
    max,
  })
  return jsonAnswer({
    kind: 'storage#objects',
    ...(next === null ? {} : { nextPageToken: Buffer.from(next).toString('base64') }),
    ...(prefixes.length === 0 ? {} : { prefixes }),
    ...(objects.length === 0 ? {} : { items: objects.map((version) => resource(context, version)) }),
  })
}

function media(context: GcsCall): SimAnswer {
  const version = checked(context)
  const { content } = version
  const range = rangeOf(context.call.headers.range, content.sizeBytes)
  if (range === null) {
    throw new GoogleError({
      status: 416,
      message: 'Request range not satisfiable',
      reason: 'requestedRangeNotSatisfiable',
    })
  }
  const { from, to } = range ?? { from: 0, to: content.sizeBytes }
  const headers: Record<string, string> = {
    'content-type': version.contentType,
    'x-goog-generation': String(version.number),
    'x-goog-metageneration': String(version.metageneration),
    'x-goog-stored-content-length': String(content.sizeBytes),
    'x-goog-stored-content-encoding': version.contentEncoding ?? 'identity',
    'accept-ranges': 'bytes',
  }
  if (version.contentEncoding !== null) headers['content-encoding'] = version.contentEncoding
  if (version.md5 !== null) headers['x-goog-hash'] = `md5=${version.md5}`
  if (range) headers['content-range'] = `bytes ${from}-${to - 1}/${content.sizeBytes}`
  return {
    status: range ? 206 : 200,
    headers,
    body: { bytes: to - from, read: () => content.read(from, to) },
  }
}

function insert(context: GcsCall): SimAnswer {
  const { call, uploads } = context
  const bucket = bucketOf(context)
  if (call.query.get('uploadType') !== 'resumable')
    return stored(context, bucket, simpleUpload(call), call.query)
  const type = call.headers['x-upload-content-type']
  const session = uploads.begin({
    bucket: bucket.name,
    query: call.query,
    fields: jsonObject(call.body),
    contentType: typeof type === 'string' ? type : undefined,
  })
  const location = `${call.origin}${call.path}?uploadType=resumable&upload_id=${session.id}`
  return { status: 200, headers: { location, 'x-guploader-uploadid': session.id }, body: '' }
}

function continueUpload(context: GcsCall): SimAnswer {
  const { call, uploads } = context
  const session = uploads.find(call.query.get('upload_id') ?? '')
  if (!session)
    throw new GoogleError({ status: 404, message: 'Upload session not found.', reason: 'notFound' })
  const taken = uploads.take(session, call)
  if (!Buffer.isBuffer(taken)) return taken
  const { fields, contentType, query } = session
  session.end = stored(context, bucketOf(context), { fields, bytes: taken, contentType }, query)
  return session.end
}

function stored(context: GcsCall, bucket: SimBucket, upload: GcsUpload, query: URLSearchParams): SimAnswer {
  const { fields, bytes, contentType } = upload
  const name = query.get('name') ?? fields.name
  if (typeof name !== 'string' || name === '') throw invalid('Required parameter: name')
  checkGeneration(query, bucket.current(name))
  const digest = createHash('md5').update(bytes).digest()
  const version = context.store.store(
    bucket.name,
    {
      key: name,
      content: heldContent([bytes]),
      etag: digest.toString('hex'),
      md5: digest.toString('base64'),
      crc32: crc32Of(bytes),
      contentType: textOr(fields.contentType, contentType ?? 'application/octet-stream'),
      contentEncoding: textOr(fields.contentEncoding, query.get('contentEncoding') ?? '') || null,
      metadata: metadataOf(fields.metadata),
    },
    'put',
  )
  return jsonAnswer(resource(context, version))
}

function patch(context: GcsCall): SimAnswer {
  const version = checked(context)
  const fields = jsonObject(context.call.body)
  const metageneration = context.call.query.get('ifMetagenerationMatch')
  if (metageneration !== null && Number(metageneration) !== version.metageneration) throw conditionNotMet()
  if (typeof fields.contentType === 'string') version.contentType = fields.contentType
  if (fields.metadata !== undefined) {
    const merged = { ...version.metadata, ...(fields.metadata as Record<string, unknown> | null) }
    version.metadata = fields.metadata === null ? {} : metadataOf(merged)
  }
  version.metageneration += 1
  context.store.announceUpdated(version)
  return jsonAnswer(resource(context, version))
}

function remove(context: GcsCall): SimAnswer {
  const version = checked(context)
  if (context.call.query.has('generation')) context.store.removeVersion(version)
  else context.store.remove(version.bucket, version.key)
  return { status: 204, headers: {}, body: '' }
}

function rewrite(context: GcsCall): SimAnswer {
  const version = copied(context)
  const size = String(version.content.sizeBytes)
  return jsonAnswer({
    kind: 'storage#rewriteResponse',
    totalBytesRewritten: size,
    objectSize: size,
    done: true,
    resource: resource(context, version),
  })
}

function copyTo(context: GcsCall): SimAnswer {
  return jsonAnswer(resource(context, copied(context)))
}

function copied(context: GcsCall): StoredVersion {
  const { store, call, pieces } = context
  const [fromBucket = '', , fromKey = '', , , toBucket = '', , toKey = ''] = pieces
  const query = new URLSearchParams()
  for (const [name, meant] of [
    ['sourceGeneration', 'generation'],
    ['ifSourceGenerationMatch', 'ifGenerationMatch'],
  ] as const) {
    const value = call.query.get(name)
    if (value !== null) query.set(meant, value)
  }
  const from = checked({ ...context, call: { ...call, query }, pieces: [fromBucket, 'o', fromKey] })
  const to = bucketOf({ ...context, pieces: [toBucket] })
  checkGeneration(call.query, to.current(toKey))
  const fields = jsonObject(call.body)
  const { content, etag, md5, crc32, contentEncoding } = from
  const contentType = textOr(fields.contentType, from.contentType)
  const metadata = fields.metadata === undefined ? from.metadata : metadataOf(fields.metadata)
  return store.store(
    to.name,
    { key: toKey, content, etag, md5, crc32, contentType, contentEncoding, metadata },
    'copy',
  )
}

function addConfig(context: GcsCall): SimAnswer {
  const bucket = bucketOf(context)
  const input = configInput.safeParse(jsonObject(context.call.body)).data
  const topic = input?.topic.replace(/^\/\/pubsub\.googleapis\.com\//, '') ?? ''
  if (!input || !context.store.hasTopic(topic))
    throw invalid(
      `Invalid Cloud Pub/Sub topic. It must be of the form '//pubsub.googleapis.com/projects/[project-identifier]/topics/[my-topic]'.`,
    )
  const config = context.store.notify(bucket.name, {
    topic,
    hasPayload: input.payload_format !== 'NONE',
    ...(input.event_types ? { events: input.event_types } : {}),
    ...(input.object_name_prefix ? { prefix: input.object_name_prefix } : {}),
  })
  return jsonAnswer(configJson(config))
}

function listConfigs(context: GcsCall): SimAnswer {
  const items = (context.store.configs.get(bucketOf(context).name) ?? []).map(configJson)
  return jsonAnswer({ kind: 'storage#notifications', ...(items.length === 0 ? {} : { items }) })
}

function removeConfig(context: GcsCall): SimAnswer {
  const { name } = bucketOf(context)
  const { configs } = context.store
  configs.set(
    name,
    (configs.get(name) ?? []).filter(({ id }) => id !== context.pieces[2]),
  )
  return { status: 204, headers: {}, body: '' }
}

function configJson({ id, topic, events, prefix, hasPayload }: NotificationConfig): object {
  return {
    kind: 'storage#notification',
    id,
    topic: `//pubsub.googleapis.com/${topic}`,
    payload_format: hasPayload ? 'JSON_API_V1' : 'NONE',
    ...(events ? { event_types: events } : {}),
    ...(prefix ? { object_name_prefix: prefix } : {}),
  }
}

function resource({ call }: GcsCall, version: StoredVersion): Record<string, unknown> {
  return objectJson(version, call.origin)
}

function bucketOf({ store, pieces: [name = ''] }: Pick<GcsCall, 'store' | 'pieces'>): SimBucket {
  const bucket = store.buckets.get(name)
  if (bucket) return bucket
  throw new GoogleError({ status: 404, message: 'The specified bucket does not exist.', reason: 'notFound' })
}

/** The version that is meant, if it is there, may be read, and is the one that the caller expects. */
function checked(context: GcsCall): StoredVersion {
  const { store, call, pieces } = context
  const bucket = bucketOf(context)
  const key = pieces[2] ?? ''
  const refusal = store.refusalOf(bucket.name, key)
  if (refusal === 'denied') {
    const message = `The caller does not have storage.objects.get access to the Google Cloud Storage object. Permission 'storage.objects.get' denied on resource (or it may not exist).`
    throw new GoogleError({ status: 403, message, reason: 'forbidden' })
  }
  const generation = call.query.get('generation')
  const version =
    generation === null
      ? bucket.current(key)
      : bucket.version(key, ({ number, isDeleteMarker }) => !isDeleteMarker && String(number) === generation)
  if (!version || refusal === 'missing') {
    throw new GoogleError({
      status: 404,
      message: `No such object: ${bucket.name}/${key}`,
      reason: 'notFound',
    })
  }
  checkGeneration(call.query, version)
  return version
}

/** 0 stands for an object that is not there. */
function checkGeneration(query: URLSearchParams, version: StoredVersion | undefined): void {
  const expected = query.get('ifGenerationMatch')
  if (expected !== null && expected !== String(version?.number ?? 0)) throw conditionNotMet()
  const unexpected = query.get('ifGenerationNotMatch')
  if (unexpected !== null && unexpected === String(version?.number ?? 0)) throw conditionNotMet()
}

function conditionNotMet(): GoogleError {
  const message = 'At least one of the pre-conditions you specified did not hold.'
  return new GoogleError({
    status: 412,
    message,
    reason: 'conditionNotMet',
    location: 'If-Match',
    locationType: 'header',
  })
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

/** A field that is null is taken away. */
function metadataOf(value: unknown): Record<string, string> {
  const entries = Object.entries((value ?? {}) as Record<string, unknown>)
  return Object.fromEntries(entries.flatMap(([name, one]) => (one === null ? [] : [[name, String(one)]])))
}
