/**
 * Objects of Google Cloud Storage, by its JSON API.
 *
 * Invariants:
 * - a version is the generation, a number that every write of an object makes anew
 * - every read names its generation, so that a name that is written anew is never read as a mixture
 * - a body that ends early is an error and never an end
 * - what Cloud Storage keeps compressed (`Content-Encoding: gzip`) comes unpacked, always: its size is not known, and a
 *   part of it is the rest of the whole
 */
import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { type Answer, type HttpCall, type TokenSource, Transport } from '../http-transport.ts'
import type { Fetch } from '../oauth.ts'
import {
  bucketAndKey,
  noBytes,
  noSuchBytes,
  objectMissing,
  objectReplaced,
  readContentRange,
  targetExists,
  wholeBytes,
} from '../object-bytes.ts'
import type { ObjectBody, ObjectHead, ObjectPage, ObjectStore, ObjectVersion } from '../object-store.ts'
import * as gcsErrors from './errors.ts'
import { type GcsObject, OBJECT_FIELDS, objectListSchema, objectSchema, rewriteSchema } from './schema.ts'

export type GcsStoreOptions = {
  fetch: Fetch
  clock: Clock
  token: TokenSource
  apiUrl?: string
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number
}

export const GCS_API_URL = 'https://storage.googleapis.com'
const TIMEOUT_MS = 30_000
const LIST_MAX = 1_000
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
/** Pages without a single object, and pieces of a copy: each has an end. */
const CALLS_MAX = 1_000

export class GcsStore implements ObjectStore {
  readonly scheme = 'gs'
  readonly #transport: Transport

  constructor(options: GcsStoreOptions) {
    const { apiUrl = GCS_API_URL, timeoutMs = TIMEOUT_MS } = options
    this.#transport = new Transport({ ...options, apiUrl, timeoutMs, errors: gcsErrors })
  }

  async read(
    uri: string,
    options: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const { fromByte, signal } = options
    const version: ObjectVersion = options.version ?? versionOf(await this.#object(uri, signal))
    let opened: { answer: Answer; end(): void }
    try {
      // A range also for the whole: only an answer to one says how large the object is.
      const headers = { 'accept-encoding': 'identity', range: `bytes=${fromByte}-` }
      const query = { alt: 'media', ...generationOf(version) }
      opened = await this.#transport.open({ verb: 'GET', path: pathOf(uri), query, headers }, signal)
    } catch (thrown) {
      if (asTidemarkError(thrown).code !== 'range') throw thrown
      return await this.#behindTheEnd(uri, { version, fromByte, signal })
    }
    const { answer, end } = opened
    try {
      const generation = answer.headers.get('x-goog-generation') ?? version.id
      if (generation !== version.id) throw objectReplaced(uri)
      const contentBytes = lengthOf(answer)
      const range = readContentRange(answer.headers.get('content-range'))
      if (range && range.from !== fromByte) {
        throw gcsErrors.damagedAnswer('an object', 'it begins at another byte')
      }
      const promised = range ? range.size : null
      if (promised !== null && contentBytes !== null && contentBytes !== promised - fromByte) {
        throw gcsErrors.cutShort('an object')
      }
      const modified = Date.parse(answer.headers.get('last-modified') ?? '')
      return {
        version,
        sizeBytes: range ? range.size : contentBytes,
        modifiedAtMs: Number.isFinite(modified) ? modified : null,
        contentType: answer.contentType,
        contentEncoding: null,
        bytes: wholeBytes({
          chunks: chunksOf(opened),
          skipBytes: range ? 0 : fromByte,
          expectedBytes: contentBytes,
          cutShort: () => gcsErrors.cutShort('an object'),
        }),
      }
    } catch (thrown) {
      end()
      throw thrown
    }
  }

  async head(uri: string, signal: AbortSignal): Promise<ObjectHead | undefined> {
    try {
      return headOf(await this.#object(uri, signal))
    } catch (thrown) {
      if (asTidemarkError(thrown).kind === 'gone') return undefined
      throw thrown
    }
  }

  async list(options: {
    prefix: string
    after: string | null
    max: number
    signal: AbortSignal
  }): Promise<ObjectPage> {
    const { bucket, key: prefix } = bucketAndKey(options.prefix, 'gs')
    const { after, signal } = options
    const max = Math.min(Math.max(1, options.max), LIST_MAX)
    const path = `/storage/v1/b/${encodeURIComponent(bucket)}/o`
    let pageToken: string | undefined
    for (let calls = 0; calls < CALLS_MAX; calls++) {
      const query = {
        prefix,
        pageToken,
        fields: `nextPageToken,items(${OBJECT_FIELDS})`,
        // The page begins with the last one of the page before.
        maxResults: after === null ? max : max + 1,
        startOffset: after ?? undefined,
      }
      const page = await this.#json({ verb: 'GET', path, query }, objectListSchema, signal).catch(
        (thrown: unknown) => {
          throw asTidemarkError(thrown).kind === 'gone' ? gcsErrors.bucketMissing(bucket, thrown) : thrown
        },
      )
      const found = page.items.filter(({ name }) => name !== after)
      const items = found.slice(0, max)
      const hasMore = page.nextPageToken !== undefined || found.length > max
      const last = items.at(-1)
      if (last || !hasMore) {
        const objects = items.map((item) => ({
          uri: `gs://${bucket}/${item.name}`,
          version: versionOf(item),
          sizeBytes: item.size,
          modifiedAtMs: item.updated ?? null,
        }))
        return { objects, next: last && hasMore ? last.name : null }
      }
      pageToken = page.nextPageToken
    }
    throw gcsErrors.damagedAnswer('the objects of a bucket', 'its pages are all empty')
  }

  /** As metadata of the object, beside what it has. */
  async tag(uri: string, version: ObjectVersion, tags: Readonly<Record<string, string>>): Promise<void> {
    await this.#json(
      {
        verb: 'PATCH',
        path: pathOf(uri),
        query: { ifGenerationMatch: version.id, fields: OBJECT_FIELDS },
        body: JSON.stringify({ metadata: tags }),
        contentType: 'application/json',
      },
      objectSchema,
    )
  }

  async copy(uri: string, version: ObjectVersion, to: string): Promise<void> {
    const path = `${pathOf(uri)}/rewriteTo${pathOf(to).replace('/storage/v1', '')}`
    const { id, versionId } = version
    // Generation 0 is that of what is not there.
    const conditions = { sourceGeneration: versionId, ifSourceGenerationMatch: id, ifGenerationMatch: '0' }
    let rewriteToken: string | undefined
    try {
      for (let calls = 0; calls < CALLS_MAX; calls++) {
        const query = { ...conditions, rewriteToken }
        const answer = await this.#json({ verb: 'POST', path, query }, rewriteSchema)
        if (answer.done) return
        rewriteToken = answer.rewriteToken
      }
    } catch (thrown) {
      const isRefused = asTidemarkError(thrown).code === 'object-replaced'
      if (isRefused && (await this.head(to, new AbortController().signal))) throw targetExists(to, thrown)
      throw thrown
    }
    throw gcsErrors.damagedAnswer('a copy', 'it has no end')
  }

  async remove(uri: string, version: ObjectVersion): Promise<void> {
    const call: HttpCall = { verb: 'DELETE', path: pathOf(uri), query: { ifGenerationMatch: version.id } }
    await this.#transport.send(call, (answer) => answer.beginning(ANSWER_BYTES_MAX))
  }

  async close(): Promise<void> {}

  async #behindTheEnd(
    uri: string,
    { version, fromByte, signal }: { version: ObjectVersion; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const object = await this.#object(uri, signal, version.versionId)
    if (object.generation !== version.id) throw objectReplaced(uri)
    if (object.size !== fromByte) throw noSuchBytes(uri, fromByte)
    return { ...headOf(object), bytes: noBytes() }
  }

  async #object(uri: string, signal: AbortSignal, generation?: string): Promise<GcsObject> {
    if (bucketAndKey(uri, 'gs').key === '') throw objectMissing(uri)
    const query = { generation, fields: OBJECT_FIELDS }
    return await this.#json({ verb: 'GET', path: pathOf(uri), query }, objectSchema, signal)
  }

  #json<T>(call: HttpCall, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#transport.send(
      call,
      async (answer) => {
        const body = await answer.jsonBytes('objects', ANSWER_BYTES_MAX)
        return gcsErrors.decode(schema, gcsErrors.parseJson(body.toString('utf8'), 'objects'), 'objects')
      },
      signal,
    )
  }
}

function pathOf(uri: string): string {
  const { bucket, key } = bucketAndKey(uri, 'gs')
  return `/storage/v1/b/${encodeURIComponent(bucket)}/o/${encodeURIComponent(key)}`
}

/** A generation that is not the newest is kept by buckets with versions only. */
function generationOf({ id, versionId }: ObjectVersion): Record<string, string> {
  return versionId === undefined ? { ifGenerationMatch: id } : { generation: versionId }
}

function versionOf({ generation }: GcsObject): ObjectVersion {
  return { id: generation }
}

function headOf(object: GcsObject): ObjectHead {
  const isPacked = object.contentEncoding === 'gzip'
  return {
    version: versionOf(object),
    sizeBytes: isPacked ? null : object.size,
    modifiedAtMs: object.updated ?? null,
    contentType: object.contentType ?? null,
    contentEncoding: isPacked ? null : (object.contentEncoding ?? null),
    ...(object.md5Hash !== undefined && { hash: `md5 ${object.md5Hash}` }),
  }
}

/** Null where the bytes that come are not those that are kept. */
function lengthOf(answer: Answer): number | null {
  const isPacked = answer.headers.get('x-goog-stored-content-encoding') === 'gzip'
  const encoding = answer.headers.get('content-encoding')
  const length = answer.headers.get('content-length')
  if (isPacked || (encoding !== null && encoding !== 'identity')) return null
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null
}

async function* chunksOf(opened: {
  answer: Answer
  end(): void
}): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (let chunk = await opened.answer.next(); chunk; chunk = await opened.answer.next()) yield chunk
  } finally {
    opened.end()
  }
}
