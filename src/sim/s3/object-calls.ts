/** Calls of S3 about an object: put, get, head, delete, copy, tags, and uploads in parts. */
import type { ObjectFields, StoredVersion } from '../objects/bucket.ts'
import { heldContent, rangeOf } from '../objects/content.ts'
import type { SimAnswer, SimCall } from '../server.ts'
import { noContent, type ObjectCall, readable, sourceOf, versionHeader } from './call.ts'
import { accessDenied, noSuchBucket, noSuchKey, preconditionFailed, S3Error } from './errors.ts'
import { abortUpload, beginUpload, completeUpload, listParts, uploadPart } from './multipart-calls.ts'
import { contentEncoding, uploadBody } from './upload-body.ts'
import { allOf, textOf, xmlAnswer } from './xml.ts'

export type ObjectOperation = { name: string; run(call: ObjectCall): SimAnswer }

/** Undefined: S3 has such a call, perhaps, but not here. */
export function objectOperation(
  verb: string,
  query: URLSearchParams,
  headers: SimCall['headers'],
): ObjectOperation | undefined {
  const isUpload = query.has('uploadId')
  if (query.has('tagging')) return TAGGING[verb]
  switch (verb) {
    case 'GET':
      return isUpload ? { name: 'ListParts', run: listParts } : { name: 'GetObject', run: getObject }
    case 'HEAD':
      return { name: 'HeadObject', run: getObject }
    case 'PUT':
      if (isUpload) return { name: 'UploadPart', run: uploadPart }
      if (headers['x-amz-copy-source'] !== undefined) return { name: 'CopyObject', run: copyObject }
      return { name: 'PutObject', run: putObject }
    case 'POST':
      if (query.has('uploads'))
        return { name: 'CreateMultipartUpload', run: (call) => beginUpload(call, fieldsOf(call)) }
      return isUpload ? { name: 'CompleteMultipartUpload', run: completeUpload } : undefined
    case 'DELETE':
      return isUpload
        ? { name: 'AbortMultipartUpload', run: abortUpload }
        : { name: 'DeleteObject', run: deleteObject }
    default:
      return undefined
  }
}

const TAGGING: Readonly<Record<string, ObjectOperation>> = {
  GET: { name: 'GetObjectTagging', run: getTagging },
  PUT: { name: 'PutObjectTagging', run: putTagging },
  DELETE: { name: 'DeleteObjectTagging', run: deleteTagging },
}

function putObject({ store, bucket, key, call }: ObjectCall): SimAnswer {
  const current = store.bucket(bucket).current(key)
  const ifMatch = call.headers['if-match']
  if (call.headers['if-none-match'] === '*' && current) throw preconditionFailed('If-None-Match')
  if (ifMatch !== undefined && !current) throw noSuchKey(key)
  if (ifMatch !== undefined && !matches(ifMatch, current!)) throw preconditionFailed('If-Match')
  const { bytes, etag, md5, crc32 } = uploadBody(call)
  const version = { ...fieldsOf({ call }), key, content: heldContent([bytes]), etag, md5, crc32 }
  const stored = store.store(bucket, version, 'put')
  return {
    status: 200,
    headers: { etag: `"${etag}"`, 'x-amz-checksum-crc32': crc32, ...versionHeader(stored) },
    body: '',
  }
}

/** Also what HEAD says, whose body the server keeps to itself. */
function getObject(object: ObjectCall): SimAnswer {
  const { headers, query } = object.call
  const version = readable(object)
  const { content, etag, atMs } = version
  const ifMatch = headers['if-match']
  if (ifMatch !== undefined && !matches(ifMatch, version)) throw preconditionFailed('If-Match')
  const ifNoneMatch = headers['if-none-match']
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, version)) {
    return { status: 304, headers: { etag: `"${etag}"` }, body: '' }
  }
  const range = rangeOf(headers.range, content.sizeBytes)
  if (range === null) {
    throw new S3Error('InvalidRange', 'The requested range is not satisfiable', 416, {
      RangeRequested: headers.range ?? '',
      ActualObjectSize: String(content.sizeBytes),
    })
  }
  const { from, to } = range ?? { from: 0, to: content.sizeBytes }
  const answered: Record<string, string> = {
    etag: `"${etag}"`,
    'last-modified': new Date(atMs).toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': query.get('response-content-type') ?? version.contentType,
    ...versionHeader(version),
  }
  if (version.contentEncoding !== null) answered['content-encoding'] = version.contentEncoding
  for (const [name, value] of Object.entries(version.metadata)) answered[`x-amz-meta-${name}`] = value
  const tags = Object.keys(version.tags).length
  if (tags > 0) answered['x-amz-tagging-count'] = String(tags)
  if (range) answered['content-range'] = `bytes ${from}-${to - 1}/${content.sizeBytes}`
  else if (version.crc32 !== null && headers['x-amz-checksum-mode'] === 'ENABLED') {
    answered['x-amz-checksum-crc32'] = version.crc32
    answered['x-amz-checksum-type'] = 'FULL_OBJECT'
  }
  return {
    status: range ? 206 : 200,
    headers: answered,
    body: { bytes: to - from, read: () => content.read(from, to) },
  }
}

function deleteObject({ store, bucket, key, call }: ObjectCall): SimAnswer {
  if (store.refusalOf(bucket, key) === 'denied') throw accessDenied()
  const own = store.bucket(bucket)
  const versionId = call.query.get('versionId')
  const ifMatch = call.headers['if-match']
  if (ifMatch !== undefined) {
    const current = own.current(key)
    if (!current) throw noSuchKey(key)
    if (!matches(ifMatch, current)) throw preconditionFailed('If-Match')
  }
  if (versionId !== null) {
    const version = own.version(key, (one) => (one.versionId ?? 'null') === versionId)
    if (version) store.removeVersion(version)
    return noContent({
      'x-amz-version-id': versionId,
      ...(version?.isDeleteMarker ? { 'x-amz-delete-marker': 'true' } : {}),
    })
  }
  const removed = store.remove(bucket, key)
  return noContent(
    removed?.isDeleteMarker ? { 'x-amz-delete-marker': 'true', ...versionHeader(removed) } : {},
  )
}

function copyObject({ store, bucket, key, call }: ObjectCall): SimAnswer {
  const { headers } = call
  const source = sourceOf(call.headers['x-amz-copy-source'])
  if (!store.buckets.has(source.bucket)) throw noSuchBucket(source.bucket)
  const query = new URLSearchParams(source.versionId === null ? '' : { versionId: source.versionId })
  const from = readable({ store, bucket: source.bucket, key: source.key, call: { ...call, query } })
  const ifMatch = headers['x-amz-copy-source-if-match']
  if (typeof ifMatch === 'string' && !matches(ifMatch, from))
    throw preconditionFailed('x-amz-copy-source-If-Match')
  const there = store.bucket(bucket).current(key)
  if (headers['if-none-match'] === '*' && there) throw preconditionFailed('If-None-Match')
  const isReplaced = headers['x-amz-metadata-directive'] === 'REPLACE'
  if (from.bucket === bucket && from.key === key && !isReplaced && source.versionId === null) {
    throw new S3Error(
      'InvalidRequest',
      "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
      400,
    )
  }
  const own = isReplaced ? fieldsOf({ call }) : from
  const { contentType, contentEncoding: encoding, metadata } = own
  const tags = headers['x-amz-tagging-directive'] === 'REPLACE' ? fieldsOf({ call }).tags : from.tags
  const { content, etag, md5, crc32 } = from
  const version = { key, content, etag, md5, crc32, contentType, contentEncoding: encoding, metadata, tags }
  const stored = store.store(bucket, version, 'copy')
  const result = { ETag: `"${stored.etag}"`, LastModified: new Date(stored.atMs).toISOString() }
  return xmlAnswer('CopyObjectResult', result, { headers: versionHeader(stored) })
}

function getTagging(object: ObjectCall): SimAnswer {
  const version = readable(object)
  const Tag = Object.entries(version.tags).map(([Key, Value]) => ({ Key, Value }))
  return xmlAnswer('Tagging', { TagSet: { Tag } }, { headers: versionHeader(version) })
}

function putTagging(object: ObjectCall): SimAnswer {
  const version = readable(object)
  const xml = object.call.body.toString('utf8')
  const tags = allOf(xml, 'Tag').map((tag) => [textOf(tag, 'Key') ?? '', textOf(tag, 'Value') ?? ''] as const)
  if (tags.length > 10) throw new S3Error('BadRequest', 'Object tags cannot be greater than 10', 400)
  version.tags = Object.fromEntries(tags)
  version.metageneration += 1
  return { status: 200, headers: versionHeader(version), body: '' }
}

function deleteTagging(object: ObjectCall): SimAnswer {
  const version = readable(object)
  version.tags = {}
  return noContent(versionHeader(version))
}

export function fieldsOf({ call }: Pick<ObjectCall, 'call'>): ObjectFields {
  const { headers } = call
  const metadata: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('x-amz-meta-')) metadata[name.slice('x-amz-meta-'.length)] = String(value)
  }
  const tags = Object.fromEntries(new URLSearchParams(String(headers['x-amz-tagging'] ?? '')))
  return {
    contentType: headers['content-type'] ?? 'binary/octet-stream',
    contentEncoding: contentEncoding(call),
    metadata,
    tags,
  }
}

function matches(header: string, { etag }: StoredVersion): boolean {
  return header
    .split(',')
    .some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '').replaceAll('"', '') === etag)
}
