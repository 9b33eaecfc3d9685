/** What all clients of object stores share: how an object is named, what it is refused with, and bytes that are all there. */
import { TidemarkError } from '../base/errors.ts'

/** `s3://bucket/key`, the key as it is: nothing of it is decoded. */
export function bucketAndKey(uri: string, scheme: string): { bucket: string; key: string } {
  const begin = `${scheme}://`
  const slash = uri.indexOf('/', begin.length)
  if (!uri.startsWith(begin) || slash <= begin.length) {
    throw new TidemarkError(`${begin}bucket/key is wanted; this is no such address`, {
      kind: 'permanent',
      code: 'object-address',
    })
  }
  return { bucket: uri.slice(begin.length, slash), key: uri.slice(slash + 1) }
}

export function objectMissing(uri: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`${uri} is not there any more`, { kind: 'gone', code: 'object-missing', cause })
}

export function objectReplaced(uri: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`${uri} is not the version any more that was announced`, {
    kind: 'gone',
    code: 'object-replaced',
    cause,
  })
}

export function objectDenied(uri: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`${uri} may not be read`, { kind: 'permanent', code: 'object-denied', cause })
}

export function targetExists(uri: string, cause?: unknown): TidemarkError {
  const message = `there is something at ${uri} already`
  return new TidemarkError(message, { kind: 'permanent', code: 'target-exists', cause })
}

/** Somebody asks to go on behind the end: what was read before was another object. */
export function noSuchBytes(uri: string, fromByte: number): TidemarkError {
  return new TidemarkError(`${uri} has no byte ${fromByte}`, { kind: 'permanent', code: 'range' })
}

/** `bytes 10-99/100`; the size is null where it is not told. */
export function readContentRange(
  text: string | null | undefined,
): { from: number; size: number | null } | undefined {
  const match = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(text ?? '')
  if (!match) return undefined
  return { from: Number(match[1]), size: match[2] === '*' ? null : Number(match[2]) }
}

export type WholeBytes = {
  chunks: AsyncIterable<Uint8Array>
  /** At the beginning: of a service that gave the whole object although a part was asked for. */
  skipBytes: number
  /** With what is skipped; null where nobody says. */
  expectedBytes: number | null
  cutShort: () => TidemarkError
}

/** Fails unless all of the bytes came, and no more: an end that is too early is never taken for the object's. */
export async function* wholeBytes(input: WholeBytes): AsyncGenerator<Uint8Array, void, undefined> {
  const { chunks, expectedBytes, cutShort } = input
  let skipBytes = input.skipBytes
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (expectedBytes !== null && bytes > expectedBytes) throw cutShort()
    if (skipBytes >= chunk.length) {
      skipBytes -= chunk.length
      continue
    }
    yield skipBytes > 0 ? chunk.subarray(skipBytes) : chunk
    skipBytes = 0
  }
  if ((expectedBytes !== null && bytes !== expectedBytes) || skipBytes > 0) throw cutShort()
}

export async function* noBytes(): AsyncGenerator<Uint8Array, void, undefined> {}
