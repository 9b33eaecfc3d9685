/**
 * The bytes of an upload: taken out of the chunks in which SDKs stream them (`aws-chunked`), and compared with the
 * checksums that came with them, before or behind.
 */
import { createHash } from 'node:crypto'
import { crc32Of } from '../objects/content.ts'
import type { SimCall } from '../server.ts'
import { S3Error } from './errors.ts'

export type UploadBody = { bytes: Buffer; etag: string; md5: string; crc32: string }

export function uploadBody({ body, headers }: SimCall): UploadBody {
  const isChunked = String(headers['x-amz-content-sha256'] ?? '').startsWith('STREAMING-')
  const { bytes, trailers } = isChunked ? unchunk(body) : { bytes: body, trailers: new Map<string, string>() }
  const decodedLength = headers['x-amz-decoded-content-length']
  if (isChunked && decodedLength !== undefined && Number(decodedLength) !== bytes.length) throw incomplete()
  const md5 = createHash('md5').update(bytes).digest()
  const checksum = crc32Of(bytes)
  const sent = (name: string): string | undefined =>
    trailers.get(name) ?? (headers[name] as string | undefined)
  const sha256 = sent('x-amz-checksum-sha256')
  const isWrong =
    (sent('content-md5') ?? md5.toString('base64')) !== md5.toString('base64') ||
    (sent('x-amz-checksum-crc32') ?? checksum) !== checksum ||
    (sha256 !== undefined && sha256 !== createHash('sha256').update(bytes).digest('base64'))
  if (isWrong)
    throw new S3Error('BadDigest', 'The checksum you specified did not match what we received.', 400)
  return { bytes, etag: md5.toString('hex'), md5: md5.toString('base64'), crc32: checksum }
}

/** What the object was encoded by, without how it was sent. */
export function contentEncoding({ headers }: SimCall): string | null {
  const names = String(headers['content-encoding'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'aws-chunked')
  return names.length === 0 ? null : names.join(',')
}

/** Each chunk: its length in hex, perhaps a signature, a line break, the bytes, a line break; 0 is the last. */
function unchunk(body: Buffer): { bytes: Buffer; trailers: Map<string, string> } {
  const pieces: Buffer[] = []
  let at = 0
  for (;;) {
    const end = body.indexOf('\r\n', at)
    if (end < 0) throw incomplete()
    const length = Number.parseInt(body.toString('latin1', at, end).split(';')[0]!, 16)
    if (Number.isNaN(length)) throw incomplete()
    at = end + 2
    if (length === 0) break
    if (at + length + 2 > body.length) throw incomplete()
    pieces.push(body.subarray(at, at + length))
    at += length + 2
  }
  const trailers = new Map<string, string>()
  for (const line of body.toString('latin1', at).split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0) trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  return { bytes: pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces), trailers }
}

function incomplete(): S3Error {
  return new S3Error(
    'IncompleteBody',
    'You did not provide the number of bytes specified by the Content-Length HTTP header.',
    400,
  )
}
