/** Calls of S3 about an upload in parts. */

import { createHash } from 'node:crypto'
import type { ObjectFields } from '../objects/bucket.ts'
import { heldContent, rangeOf } from '../objects/content.ts'
import type { SimAnswer } from '../server.ts'
import { noContent, type ObjectCall, readable, sourceOf, versionHeader } from './call.ts'
import { invalidArgument, noSuchBucket, S3Error } from './errors.ts'
import type { Upload, UploadPart } from './store.ts'
import { uploadBody } from './upload-body.ts'
import { allOf, textOf, xmlAnswer } from './xml.ts'

const PARTS_MAX = 10_000
/** Of every part but the last. */
const PART_BYTES_MIN = 5 * 2 ** 20

export function beginUpload({ store, bucket, key }: ObjectCall, fields: ObjectFields): SimAnswer {
  const { id } = store.beginUpload(bucket, key, fields)
  return xmlAnswer('InitiateMultipartUploadResult', { Bucket: bucket, Key: key, UploadId: id })
}

export function uploadPart(object: ObjectCall): SimAnswer {
  const { store, call } = object
  const upload = uploadOf(object)
  const number = Number(call.query.get('partNumber'))
  if (!Number.isInteger(number) || number < 1 || number > PARTS_MAX) {
    throw invalidArgument(`Part number must be an integer between 1 and ${PARTS_MAX}, inclusive`)
  }
  const atMs = store.nowMs()
  if (call.headers['x-amz-copy-source'] !== undefined) {
    const part = copiedPart(object, atMs)
    upload.parts.set(number, part)
    return xmlAnswer('CopyPartResult', { ETag: `"${part.etag}"`, LastModified: new Date(atMs).toISOString() })
  }
  const { bytes, etag, md5, crc32 } = uploadBody(call)
  upload.parts.set(number, { content: heldContent([bytes]), etag, md5, atMs })
  return { status: 200, headers: { etag: `"${etag}"`, 'x-amz-checksum-crc32': crc32 }, body: '' }
}

function copiedPart({ store, call }: ObjectCall, atMs: number): UploadPart {
  const { bucket, key, versionId } = sourceOf(call.headers['x-amz-copy-source'])
  if (!store.buckets.has(bucket)) throw noSuchBucket(bucket)
  const query = new URLSearchParams(versionId === null ? '' : { versionId })
  const { content } = readable({ store, bucket, key, call: { ...call, query } })
  const header = call.headers['x-amz-copy-source-range'] as string | undefined
  const { from, to } = rangeOf(header, content.sizeBytes) ?? { from: 0, to: content.sizeBytes }
  const pieces = [...content.read(from, to)]
  const hash = createHash('md5')
  for (const piece of pieces) hash.update(piece)
  const md5 = hash.digest()
  return { content: heldContent(pieces), md5: md5.toString('base64'), etag: md5.toString('hex'), atMs }
}

export function completeUpload(object: ObjectCall): SimAnswer {
  const { store, bucket, key, call } = object
  const upload = uploadOf(object)
  const named = allOf(call.body.toString('utf8'), 'Part').map((part) => ({
    number: Number(textOf(part, 'PartNumber')),
    etag: (textOf(part, 'ETag') ?? '').replaceAll('"', ''),
  }))
  if (named.length === 0) throw new S3Error('MalformedXML', 'The XML you provided was not well-formed.', 400)
  for (const [at, { number, etag }] of named.entries()) {
    const part = upload.parts.get(number)
    if (part?.etag !== etag) {
      const message =
        "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag."
      throw new S3Error('InvalidPart', message, 400, { UploadId: upload.id, PartNumber: String(number) })
    }
    if (at > 0 && named[at - 1]!.number >= number) {
      throw new S3Error('InvalidPartOrder', 'The list of parts was not in ascending order.', 400)
    }
    if (at < named.length - 1 && part.content.sizeBytes < PART_BYTES_MIN) {
      const message = 'Your proposed upload is smaller than the minimum allowed object size.'
      throw new S3Error('EntityTooSmall', message, 400, { PartNumber: String(number) })
    }
  }
  const stored = store.completeUpload(
    upload,
    named.map(({ number }) => number),
  )
  const Location = `${call.origin}/${bucket}/${encodeURIComponent(key)}`
  const result = { Location, Bucket: bucket, Key: key, ETag: `"${stored.etag}"` }
  return xmlAnswer('CompleteMultipartUploadResult', result, { headers: versionHeader(stored) })
}

export function abortUpload(object: ObjectCall): SimAnswer {
  object.store.uploads.delete(uploadOf(object).id)
  return noContent()
}

export function listParts(object: ObjectCall): SimAnswer {
  const { id, bucket, key, parts } = uploadOf(object)
  const Part = [...parts]
    .sort(([one], [other]) => one - other)
    .map(([PartNumber, { etag, content, atMs }]) => ({
      PartNumber,
      LastModified: new Date(atMs).toISOString(),
      ETag: `"${etag}"`,
      Size: content.sizeBytes,
    }))
  return xmlAnswer('ListPartsResult', { Bucket: bucket, Key: key, UploadId: id, IsTruncated: false, Part })
}

function uploadOf({ store, bucket, key, call }: ObjectCall): Upload {
  const upload = store.uploads.get(call.query.get('uploadId') ?? '')
  if (upload?.bucket === bucket && upload.key === key) return upload
  const message =
    'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.'
  throw new S3Error('NoSuchUpload', message, 404)
}
