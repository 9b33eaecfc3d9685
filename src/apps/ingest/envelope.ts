/**
 * What a message of a queue is about. A message comes from another service, or from whoever may write to the queue:
 * nothing that stands in it throws here, and what nobody understands is `unknown` with a reason.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { ObjectVersion } from '../../cloud/object-store.ts'
import type { QueueMessage } from '../../cloud/queue.ts'
import type { AnnouncedObject, Envelope, EnvelopeFormat, Refusal } from './contract.ts'

export type EnvelopeOptions = {
  /** The pipeline takes messages that are data themselves: whatever announces nothing is data. */
  carriesData?: boolean
}

/** A message of SQS or Pub/Sub is smaller than this; one of another queue that is not is nobody's announcement. */
const ANNOUNCEMENT_BYTES_MAX = 1024 * 1024
const OBJECTS_MAX = 10_000
/** A topic may be subscribed to another one's messages. */
const WRAPPINGS_MAX = 3
const URI_CHARS_MAX = 4_096
/** An index of PostgreSQL takes 2,704 bytes, of which the pipeline and the version have some. Keys of buckets have 1,024. */
const URI_BYTES_MAX = 2_048
const VERSION_BYTES_MAX = 512
const TOO_LONG: Refusal = {
  code: 'too-long',
  reason: `an address or a version in it is longer than ${URI_BYTES_MAX} and ${VERSION_BYTES_MAX} bytes`,
}
const SCHEMES = /^(s3|gs|file|https?):\/\/./

type Fields = Readonly<Record<string, unknown>>
type Message = Pick<QueueMessage, 'body' | 'attributes'>

export function parseEnvelope(message: Message, options: EnvelopeOptions = {}): Envelope {
  const envelope = announcementOf(message)
  if (envelope.kind === 'unknown' && options.carriesData === true && message.body.length > 0) {
    return { kind: 'data', format: 'plain', data: message.body }
  }
  return envelope
}

/**
 * Which event of one key came first: below 0 where `a` did. Sequencers are hexadecimal and of different lengths; the
 * shorter one is padded on the right.
 */
export function compareSequencers(a: string, b: string): number {
  const length = Math.max(a.length, b.length)
  const [left, right] = [a.toLowerCase().padEnd(length, '0'), b.toLowerCase().padEnd(length, '0')]
  return left < right ? -1 : left > right ? 1 : 0
}

function announcementOf({ body, attributes }: Message): Envelope {
  if (body.length === 0) return unknown('empty', 'the message is empty')
  if (body.length > ANNOUNCEMENT_BYTES_MAX) {
    return unknown('too-long', `the message has more than ${ANNOUNCEMENT_BYTES_MAX} bytes`)
  }
  if (!isUtf8(body)) return unknown('not-utf8', 'the message is not text in UTF-8')
  const eventType = attributes.eventtype ?? attributes.eventType
  const parsed = fieldsOf(Buffer.from(body.buffer, body.byteOffset, body.length).toString())
  if (parsed === undefined) return unknown('not-json', 'the message is not a JSON object')
  if (eventType !== undefined && 'bucket' in parsed) return gcs(parsed, attributes, eventType)
  return ofFields(parsed, 's3', 0)
}

function ofFields(fields: Fields, format: 's3' | 'sns', wrappings: number): Envelope {
  if (fields.Event === 's3:TestEvent') {
    return nothing(format, 'test-event', 'the bucket was only testing whether its events arrive')
  }
  if (typeof fields.Message === 'string' && (fields.Type === 'Notification' || 'TopicArn' in fields)) {
    const inner = fieldsOf(fields.Message)
    if (inner === undefined) return unknown('not-json', 'what the SNS message wraps is not a JSON object')
    if (wrappings === WRAPPINGS_MAX) return unknown('too-deep', 'SNS messages are wrapped in each other')
    return ofFields(inner, 'sns', wrappings + 1)
  }
  if (fields.Type === 'SubscriptionConfirmation' || fields.Type === 'UnsubscribeConfirmation') {
    return nothing('sns', 'sns-confirmation', 'the topic says that its subscription changed')
  }
  if (Array.isArray(fields.Records)) return s3(fields.Records, format)
  if (fields.source === 'aws.s3') return eventBridge(fields)
  if (typeof fields.bucket === 'string' && fields.kind === 'storage#object') {
    return gcs(fields, {}, 'OBJECT_FINALIZE')
  }
  if ('uri' in fields || 'uris' in fields || 'data' in fields) return plain(fields)
  return unknown('no-envelope', 'it is JSON, but no announcement that is known')
}

// --- The formats ---------------------------------------------------------------------------------------------------

function s3(records: readonly unknown[], format: EnvelopeFormat): Envelope {
  const objects: AnnouncedObject[] = []
  let others = 0
  if (records.length > OBJECTS_MAX)
    return unknown('too-many', `it announces more than ${OBJECTS_MAX} objects`)
  for (const record of records) {
    const fields = asFields(record)
    if (fields === undefined || typeof fields.eventName !== 'string') {
      return unknown('bad-record', 'one of its records does not say what happened')
    }
    // Version 3 would be free to mean anything else by the same names.
    if (typeof fields.eventVersion === 'string' && !fields.eventVersion.startsWith('2.')) {
      return unknown(
        'event-version',
        `its records are of version ${fields.eventVersion.slice(0, 20)}, not 2.x`,
      )
    }
    if (!/^(s3:)?ObjectCreated:/.test(fields.eventName)) {
      others += 1
      continue
    }
    const object = s3Object(asFields(fields.s3), timeOf(fields.eventTime))
    if (object === undefined) {
      return unknown('bad-record', 'one of its records names no bucket and key that can be read')
    }
    objects.push(object)
  }
  return announced(format, objects, others)
}

function s3Object(fields: Fields | undefined, eventAtMs: number | null): AnnouncedObject | undefined {
  const object = asFields(fields?.object)
  const key = formDecoded(object?.key)
  const uri = uriOf('s3', asFields(fields?.bucket)?.name, key)
  if (uri === undefined || object === undefined) return undefined
  const version = versionOf(withoutQuotes(object.eTag), object.versionId, object.sequencer)
  return { uri, version, sizeBytes: sizeOf(object.size), eventAtMs }
}

function eventBridge(fields: Fields): Envelope {
  const type = fields['detail-type']
  if (typeof type !== 'string') return unknown('bad-record', 'the event does not say what happened')
  if (type !== 'Object Created') {
    return nothing('eventbridge', 'other-event', `the event is about something else: ${type.slice(0, 100)}`)
  }
  const detail = asFields(fields.detail)
  const object = asFields(detail?.object)
  const uri = uriOf('s3', asFields(detail?.bucket)?.name, object?.key)
  if (uri === undefined || object === undefined) {
    return unknown('bad-record', 'the event names no bucket and key that can be read')
  }
  const version = versionOf(withoutQuotes(object.etag), object['version-id'], object.sequencer)
  const announcement = { uri, version, sizeBytes: sizeOf(object.size), eventAtMs: timeOf(fields.time) }
  return announced('eventbridge', [announcement], 0)
}

function gcs(fields: Fields, attributes: Readonly<Record<string, string>>, eventType: string): Envelope {
  if (eventType !== 'OBJECT_FINALIZE') {
    return nothing('gcs', 'other-event', `the event is about something else: ${eventType.slice(0, 100)}`)
  }
  const uri = uriOf('gs', fields.bucket, fields.name)
  if (uri === undefined) return unknown('bad-record', 'the event names no bucket and object that can be read')
  const generation =
    textOf(fields.generation) ?? textOf(attributes.objectgeneration ?? attributes.objectGeneration)
  const version = generation === undefined ? null : { id: generation }
  const eventAtMs = timeOf(attributes.eventtime ?? attributes.eventTime ?? fields.timeCreated)
  return announced('gcs', [{ uri, version, sizeBytes: sizeOf(fields.size), eventAtMs }], 0)
}

function plain(fields: Fields): Envelope {
  if ('data' in fields && !('uri' in fields) && !('uris' in fields)) {
    const { data } = fields
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    return { kind: 'data', format: 'plain', data: Buffer.from(text) }
  }
  const list = 'uri' in fields ? [fields] : fields.uris
  if (!Array.isArray(list)) return unknown('bad-record', '`uris` is not a list')
  if (list.length > OBJECTS_MAX) return unknown('too-many', `it announces more than ${OBJECTS_MAX} objects`)
  const objects: AnnouncedObject[] = []
  for (const one of list as readonly unknown[]) {
    const object = typeof one === 'string' ? { uri: one } : asFields(one)
    const uri = object?.uri
    if (object === undefined || typeof uri !== 'string' || uri.length > URI_CHARS_MAX || !SCHEMES.test(uri)) {
      return unknown('bad-uri', 'a URI of it does not begin with s3://, gs://, file://, https:// or http://')
    }
    const version = versionOf(withoutQuotes(object.version), object.versionId, object.sequencer)
    objects.push({ uri, version, sizeBytes: sizeOf(object.size), eventAtMs: timeOf(object.time) })
  }
  return announced('plain', objects, 0)
}

// --- Fields --------------------------------------------------------------------------------------------------------

function announced(format: EnvelopeFormat, objects: readonly AnnouncedObject[], dropped: number): Envelope {
  if (!objects.every(isStorable)) {
    return unknown('bad-text', 'an address or a version in it has a NUL, or half of a character')
  }
  const kept = objects.filter((one) => !isTooLong(one))
  const refused = objects.filter(isTooLong).map(() => TOO_LONG)
  if (kept.length > 0) return { kind: 'objects', format, objects: kept, dropped, refused }
  if (refused.length > 0) return unknown(TOO_LONG.code, TOO_LONG.reason)
  if (dropped > 0)
    return nothing(format, 'other-event', 'none of its events is about an object that was created')
  return nothing(format, 'no-objects', 'it announces no object')
}

function nothing(format: EnvelopeFormat, code: string, reason: string): Envelope {
  return { kind: 'nothing', format, code, reason }
}

/** Parts of the message stand in some reasons, and reasons are kept. */
function unknown(code: string, reason: string): Envelope {
  return { kind: 'unknown', code, reason: storable(reason) }
}

/** PostgreSQL keeps neither a NUL nor half of a surrogate pair: one such text would fail all that is written with it. */
function isStorable({ uri, version }: AnnouncedObject): boolean {
  const texts = [uri, version?.id ?? '', version?.versionId ?? '', version?.sequencer ?? '']
  return texts.every((text) => text === storable(text))
}

function isTooLong({ uri, version }: AnnouncedObject): boolean {
  return Buffer.byteLength(uri) > URI_BYTES_MAX || Buffer.byteLength(version?.id ?? '') > VERSION_BYTES_MAX
}

/** Where it must be told although it cannot be kept as it is. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

/** The same of an address; of one that is too long its beginning, and what tells it from others that begin alike. */
export function storableUri(uri: string): string {
  const bytes = Buffer.from(storable(uri))
  if (bytes.length <= URI_BYTES_MAX) return bytes.toString()
  const rest = `…${createHash('sha256').update(bytes).digest('hex')}`
  const begins = bytes.subarray(0, URI_BYTES_MAX - Buffer.byteLength(rest) - 2)
  return `${storable(begins.toString())}${rest}`
}

function fieldsOf(text: string): Fields | undefined {
  try {
    return asFields(JSON.parse(text))
  } catch {
    // It is no JSON: whoever asked says what that means.
    return undefined
  }
}

function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

function uriOf(scheme: 's3' | 'gs', bucket: unknown, key: unknown): string | undefined {
  if (typeof bucket !== 'string' || typeof key !== 'string' || bucket === '' || key === '') return undefined
  // A name with a slash would be another bucket and another key.
  if (bucket.includes('/') || key.length > URI_CHARS_MAX) return undefined
  return `${scheme}://${bucket}/${key}`
}

/** As forms encode: a plus is a space, and what was a plus comes as %2B. */
function formDecoded(key: unknown): string | undefined {
  if (typeof key !== 'string') return undefined
  try {
    return decodeURIComponent(key.replaceAll('+', ' '))
  } catch {
    // A sign of percent that encodes nothing: guessing would read another object.
    return undefined
  }
}

function versionOf(id: string | undefined, versionId: unknown, sequencer: unknown): ObjectVersion | null {
  if (id === undefined) return null
  const version: ObjectVersion = { id }
  const [exact, order] = [textOf(versionId), textOf(sequencer)]
  // Buckets that keep no versions say `null` in a text.
  if (exact !== undefined && exact !== 'null') version.versionId = exact
  if (order !== undefined) version.sequencer = order
  return version
}

function withoutQuotes(etag: unknown): string | undefined {
  return textOf(
    textOf(etag)
      ?.replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  )
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value !== '' && value.length <= URI_CHARS_MAX ? value : undefined
}

/** Google writes numbers as texts. */
function sizeOf(value: unknown): number | null {
  const size = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
  return typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : null
}

function timeOf(value: unknown): number | null {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? null : at
}
