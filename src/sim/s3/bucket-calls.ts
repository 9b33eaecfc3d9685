/** Calls of S3 about a bucket: listings, deletions, versioning, notifications. */
import type { StoredVersion } from '../objects/bucket.ts'
import type { SimAnswer } from '../server.ts'
import type { EventEnvelope } from './announcements.ts'
import { type BucketCall, noContent } from './call.ts'
import { invalidArgument, noSuchBucket, S3Error } from './errors.ts'
import type { NotificationTarget } from './store.ts'
import { allOf, textOf, type XmlValue, xmlAnswer } from './xml.ts'

const PAGE_MAX = 1_000

/** Undefined: S3 has such a call, perhaps, but not here. */
export function bucketOperation(verb: string, query: URLSearchParams): BucketOperation | undefined {
  const has = (name: string): boolean => query.has(name)
  switch (verb) {
    case 'GET':
      if (has('versions')) return { name: 'ListObjectVersions', run: listVersions }
      if (has('location')) return { name: 'GetBucketLocation', run: location }
      if (has('versioning')) return { name: 'GetBucketVersioning', run: getVersioning }
      if (has('notification')) return { name: 'GetBucketNotificationConfiguration', run: getNotification }
      if (query.get('list-type') === '2') return { name: 'ListObjectsV2', run: listObjects }
      return undefined
    case 'PUT':
      if (has('versioning')) return { name: 'PutBucketVersioning', run: putVersioning }
      if (has('notification')) return { name: 'PutBucketNotificationConfiguration', run: putNotification }
      return [...query.keys()].every((name) => name === 'x-id')
        ? { name: 'CreateBucket', run: createBucket, isNew: true }
        : undefined
    case 'POST':
      return has('delete') ? { name: 'DeleteObjects', run: deleteObjects } : undefined
    case 'DELETE':
      return { name: 'DeleteBucket', run: deleteBucket }
    case 'HEAD':
      return { name: 'HeadBucket', run: ({ store }) => headBucket(store.account.region) }
    default:
      return undefined
  }
}

export type BucketOperation = { name: string; run(call: BucketCall): SimAnswer; isNew?: true }

function headBucket(region: string): SimAnswer {
  return { status: 200, headers: { 'x-amz-bucket-region': region }, body: '' }
}

function createBucket({ store, bucket }: BucketCall): SimAnswer {
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw new S3Error('InvalidBucketName', 'The specified bucket is not valid.', 400, { BucketName: bucket })
  }
  if (store.buckets.has(bucket)) {
    const message = 'Your previous request to create the named bucket succeeded and you already own it.'
    throw new S3Error('BucketAlreadyOwnedByYou', message, 409, { BucketName: bucket })
  }
  store.createBucket(bucket)
  return { status: 200, headers: { location: `/${bucket}` }, body: '' }
}

function deleteBucket({ store, bucket }: BucketCall): SimAnswer {
  const own = store.buckets.get(bucket)!
  if (own.history.some(({ state }) => state !== 'gone')) {
    throw new S3Error('BucketNotEmpty', 'The bucket you tried to delete is not empty', 409, {
      BucketName: bucket,
    })
  }
  store.buckets.delete(bucket)
  store.targets.delete(bucket)
  return noContent()
}

function listObjects({ store, bucket, call: { query } }: BucketCall): SimAnswer {
  const max = maxKeys(query)
  const prefix = query.get('prefix') ?? ''
  const delimiter = query.get('delimiter') ?? ''
  const token = query.get('continuation-token')
  const startAfter = query.get('start-after')
  const after = token === null ? startAfter : keyOfToken(token)
  const text = textsOf(query)
  const { objects, prefixes, next } =
    max === 0
      ? { objects: [], prefixes: [], next: null }
      : store.bucket(bucket).list({ prefix, after, max, delimiter })
  const page: Record<string, XmlValue | undefined> = {
    Name: bucket,
    Prefix: text(prefix),
    Delimiter: delimiter === '' ? undefined : text(delimiter),
    MaxKeys: max,
    EncodingType: query.get('encoding-type') ?? undefined,
    KeyCount: objects.length + prefixes.length,
    IsTruncated: next !== null,
    ContinuationToken: token ?? undefined,
    NextContinuationToken: next === null ? undefined : tokenOfKey(next),
    StartAfter: startAfter === null ? undefined : text(startAfter),
    Contents: objects.map((object) => ({
      Key: text(object.key),
      LastModified: new Date(object.atMs).toISOString(),
      ETag: `"${object.etag}"`,
      Size: object.content.sizeBytes,
      StorageClass: 'STANDARD',
    })),
    CommonPrefixes: prefixes.map((one) => ({ Prefix: text(one) })),
  }
  return xmlAnswer('ListBucketResult', page)
}

function listVersions({ store, bucket, call: { query } }: BucketCall): SimAnswer {
  const own = store.bucket(bucket)
  const prefix = query.get('prefix') ?? ''
  const max = maxKeys(query)
  const text = textsOf(query)
  const all = own
    .keys()
    .filter((key) => key.startsWith(prefix))
    .flatMap((key) => own.versions(key).toReversed())
  const marker = query.get('key-marker')
  const versionMarker = query.get('version-id-marker')
  const from =
    marker === null
      ? 0
      : all.findLastIndex(
          ({ key, versionId }) =>
            key === marker && (versionMarker === null || (versionId ?? 'null') === versionMarker),
        ) + 1
  const shown = all.slice(from, from + max)
  const isTruncated = from + max < all.length
  const last = shown.at(-1)
  const entry = (version: StoredVersion): Record<string, XmlValue> => ({
    Key: text(version.key),
    VersionId: version.versionId ?? 'null',
    IsLatest: version.state === 'current',
    LastModified: new Date(version.atMs).toISOString(),
  })
  return xmlAnswer('ListVersionsResult', {
    Name: bucket,
    Prefix: text(prefix),
    MaxKeys: max,
    IsTruncated: isTruncated,
    NextKeyMarker: isTruncated && last ? text(last.key) : undefined,
    NextVersionIdMarker: isTruncated && last ? (last.versionId ?? 'null') : undefined,
    Version: shown
      .filter(({ isDeleteMarker }) => !isDeleteMarker)
      .map((version) => ({ ...entry(version), ETag: `"${version.etag}"`, Size: version.content.sizeBytes })),
    DeleteMarker: shown.filter(({ isDeleteMarker }) => isDeleteMarker).map(entry),
  })
}

function deleteObjects({ store, bucket, call }: BucketCall): SimAnswer {
  const xml = call.body.toString('utf8')
  const objects = allOf(xml, 'Object')
  if (objects.length === 0 || objects.length > PAGE_MAX) {
    throw new S3Error('MalformedXML', 'The XML you provided was not well-formed.', 400)
  }
  const own = store.bucket(bucket)
  const Deleted: XmlValue[] = []
  const Errors: XmlValue[] = []
  for (const object of objects) {
    const Key = textOf(object, 'Key') ?? ''
    const versionId = textOf(object, 'VersionId')
    if (store.refusalOf(bucket, Key) === 'denied') {
      Errors.push({ Key, Code: 'AccessDenied', Message: 'Access Denied' })
      continue
    }
    if (versionId === undefined) {
      const removed = store.remove(bucket, Key)
      Deleted.push(
        removed?.isDeleteMarker
          ? { Key, DeleteMarker: true, DeleteMarkerVersionId: removed.versionId ?? 'null' }
          : { Key },
      )
      continue
    }
    const version = own.version(Key, (one) => (one.versionId ?? 'null') === versionId)
    if (version) store.removeVersion(version)
    Deleted.push({ Key, VersionId: versionId })
  }
  const isQuiet = textOf(xml, 'Quiet') === 'true'
  return xmlAnswer('DeleteResult', { Deleted: isQuiet ? [] : Deleted, Error: Errors })
}

function location({ store }: BucketCall): SimAnswer {
  return xmlAnswer('LocationConstraint', store.account.region === 'us-east-1' ? '' : store.account.region)
}

function getVersioning({ store, bucket }: BucketCall): SimAnswer {
  return xmlAnswer('VersioningConfiguration', {
    Status: store.bucket(bucket).isVersioned ? 'Enabled' : undefined,
  })
}

function putVersioning({ store, bucket, call }: BucketCall): SimAnswer {
  store.bucket(bucket).isVersioned = textOf(call.body.toString('utf8'), 'Status') === 'Enabled'
  return { status: 200, body: '' }
}

/** A topic delivers, wrapped as SNS does it, to the queue of the same name. */
const ARNS: Readonly<Record<string, { element: string; envelope: EventEnvelope }>> = {
  QueueConfiguration: { element: 'Queue', envelope: 's3' },
  TopicConfiguration: { element: 'Topic', envelope: 'sns' },
}

function getNotification({ store, bucket }: BucketCall): SimAnswer {
  const { region, accountId } = store.account
  const configuration = (target: NotificationTarget, service: string, element: string): XmlValue => ({
    Id: `${target.queue}-${target.envelope}`,
    [element]: `arn:aws:${service}:${region}:${accountId}:${target.queue}`,
    Event: [...(target.events ?? ['s3:ObjectCreated:*'])],
  })
  const targets = store.targets.get(bucket) ?? []
  const direct = targets.filter(({ envelope }) => envelope === 's3')
  const topics = targets.filter(({ envelope }) => envelope.startsWith('sns'))
  return xmlAnswer('NotificationConfiguration', {
    QueueConfiguration: direct.map((target) => configuration(target, 'sqs', 'Queue')),
    TopicConfiguration: topics.map((target) => configuration(target, 'sns', 'Topic')),
  })
}

function putNotification({ store, bucket, call }: BucketCall): SimAnswer {
  const xml = call.body.toString('utf8')
  const targets = Object.entries(ARNS).flatMap(([name, { element, envelope }]) =>
    allOf(xml, name).map((inner): NotificationTarget => {
      const queue = (textOf(inner, element) ?? '').split(':').at(-1)!
      if (!store.hasQueue(queue))
        throw invalidArgument('Unable to validate the following destination configurations')
      return { queue, envelope, events: allOf(inner, 'Event'), ...filterOf(inner) }
    }),
  )
  // EventBridge is told to which queue by its rules, which are not simulated: such targets stay.
  const bridged = (store.targets.get(bucket) ?? []).filter(({ envelope }) => envelope === 'eventbridge')
  store.targets.set(bucket, [...targets, ...bridged])
  for (const target of targets) store.sendTest(bucket, target)
  return { status: 200, body: '' }
}

function filterOf(xml: string): { prefix?: string; suffix?: string } {
  const filter: { prefix?: string; suffix?: string } = {}
  for (const rule of allOf(xml, 'FilterRule')) {
    const value = textOf(rule, 'Value') ?? ''
    if (textOf(rule, 'Name')?.toLowerCase() === 'prefix') filter.prefix = value
    else filter.suffix = value
  }
  return filter
}

export function bucketMustExist({ store, bucket }: BucketCall): void {
  if (!store.buckets.has(bucket)) throw noSuchBucket(bucket)
}

function maxKeys(query: URLSearchParams): number {
  const text = query.get('max-keys') ?? String(PAGE_MAX)
  if (!/^\d+$/.test(text)) throw invalidArgument('Provided max-keys not an integer or within integer range')
  return Math.min(Number(text), PAGE_MAX)
}

/** `encoding-type=url` encodes keys, as XML cannot hold every character. */
function textsOf(query: URLSearchParams): (text: string) => string {
  if (query.get('encoding-type') !== 'url') return (text) => text
  return (text) => encodeURIComponent(text).replaceAll('%2F', '/').replaceAll('%20', '+')
}

function tokenOfKey(key: string): string {
  return `1${Buffer.from(key).toString('base64')}`
}

function keyOfToken(token: string): string {
  if (!token.startsWith('1')) throw invalidArgument('The continuation token provided is incorrect')
  return Buffer.from(token.slice(1), 'base64').toString('utf8')
}
