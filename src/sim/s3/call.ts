/** What a call of S3 is given, and what calls about objects have in common. */
import type { StoredVersion } from '../objects/bucket.ts'
import type { SimAnswer, SimCall } from '../server.ts'
import { accessDenied, invalidArgument, noSuchKey, S3Error } from './errors.ts'
import type { S3Store } from './store.ts'

export type BucketCall = { store: S3Store; bucket: string; call: SimCall }
export type ObjectCall = BucketCall & { key: string }

export function noContent(headers: Record<string, string> = {}): SimAnswer {
  return { status: 204, headers, body: '' }
}

/** The version that is meant, if it is there and may be read. */
export function readable({ store, bucket, key, call }: ObjectCall): StoredVersion {
  const refusal = store.refusalOf(bucket, key)
  if (refusal === 'denied') throw accessDenied()
  if (refusal === 'missing') throw noSuchKey(key)
  const own = store.bucket(bucket)
  const versionId = call.query.get('versionId')
  if (versionId === null) {
    const current = own.current(key)
    if (!current) throw noSuchKey(key)
    return current
  }
  const version = own.version(key, (one) => (one.versionId ?? 'null') === versionId)
  if (!version) {
    throw new S3Error('NoSuchVersion', 'The specified version does not exist.', 404, {
      Key: key,
      VersionId: versionId,
    })
  }
  if (version.isDeleteMarker) {
    throw new S3Error('MethodNotAllowed', 'The specified method is not allowed against this resource.', 405)
  }
  return version
}

/** `bucket/key?versionId=…`, encoded, perhaps behind a slash. */
export function sourceOf(header: unknown): { bucket: string; key: string; versionId: string | null } {
  const [path = '', query = ''] = String(header).split('?')
  const whole = decoded(path.replace(/^\//, ''))
  const slash = whole.indexOf('/')
  if (slash < 1) throw invalidArgument('Invalid copy source object key')
  return {
    bucket: whole.slice(0, slash),
    key: whole.slice(slash + 1),
    versionId: new URLSearchParams(query).get('versionId'),
  }
}

/** As it is where it cannot be decoded: no key looks like this, so nothing will be found. */
export function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    return piece
  }
}

export function versionHeader({ versionId }: StoredVersion): Record<string, string> {
  return versionId === null ? {} : { 'x-amz-version-id': versionId }
}
