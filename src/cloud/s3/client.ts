/**
 * Objects of S3, and of what speaks its language. The SDK is loaded with the first call; nothing of it is known outside
 * this folder.
 *
 * Invariants:
 * - a version is known by its etag, which announcements and listings both have; where a version id is told, exactly
 *   that one is asked for
 * - bytes of another version than the one that was asked for are never given out, even by a service that does not look
 *   at conditions
 * - a body that ends early, or has more bytes than it said, is an error and never an end
 * - an object is tagged or removed only after its etag was looked at once more, and a call that removes or copies names
 *   the etag as its condition; nothing is copied over something else
 */
import type { Readable } from 'node:stream'
import type { GetObjectCommandOutput, S3Client } from '@aws-sdk/client-s3'
import type { Clock } from '../../base/clock.ts'
import type { TidemarkError } from '../../base/errors.ts'
import { type AwsAccess, awsConfig } from '../aws/credentials.ts'
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
import { SilenceWatch } from '../silence-watch.ts'
import * as s3Errors from './errors.ts'
import { type GetResponse, Refusal, type SdkCall, SignedGets } from './signed-get.ts'

export type S3StoreOptions = AwsAccess & {
  clock: Clock
  /** `http://host/bucket/key` instead of `http://bucket.host/key`, for services that have no names for buckets. */
  forcePathStyle?: boolean
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number
}

type Sdk = { sdk: typeof import('@aws-sdk/client-s3'); client: S3Client }
type Place = { Bucket: string; Key: string }
type Headers = Pick<
  GetObjectCommandOutput,
  'ETag' | 'VersionId' | 'LastModified' | 'ContentType' | 'ContentEncoding'
>

type ReadOptions = Parameters<ObjectStore['read']>[1]
type GetAnswer = {
  head: ObjectHead
  body: Readable
  range: ReturnType<typeof readContentRange>
  contentBytes: number | null
}

const TIMEOUT_MS = 30_000
/** What is no longer is not read piece by piece. */
const SMALL_BYTES_MAX = 64 * 1024
const LIST_MAX = 1_000
const TAGS_MAX = 10

export class S3Store implements ObjectStore {
  readonly scheme = 's3'
  readonly #options: S3StoreOptions
  readonly #gets = new SignedGets()
  #sdk: Promise<Sdk> | undefined

  constructor(options: S3StoreOptions) {
    this.#options = options
  }

  async read(
    uri: string,
    options: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const { version, fromByte, signal } = options
    let answer: GetAnswer
    try {
      answer = (await this.#signedGet(uri, options)) ?? (await this.#sdkGet(uri, options))
    } catch (thrown) {
      if (!s3Errors.isRangeRefusal((thrown as Error).cause)) throw thrown
      return await this.#behindTheEnd(uri, options)
    }
    const { head, body, contentBytes } = answer
    const refused = refusalOf(uri, answer, { version, fromByte })
    if (refused) {
      body.destroy()
      throw refused
    }
    const { range } = answer
    const skipBytes = range ? 0 : fromByte
    const cutShort = (): TidemarkError => s3Errors.cutShort('an object')
    const sizeBytes = range ? range.size : contentBytes
    if (contentBytes !== null && contentBytes <= SMALL_BYTES_MAX) {
      const bytes = await this.#together(uri, body, signal)
      if (bytes.length !== contentBytes || skipBytes > bytes.length) throw cutShort()
      return { ...head, sizeBytes, bytes: one(bytes.subarray(skipBytes)) }
    }
    const chunks = this.#chunks(uri, body, signal)
    return {
      ...head,
      sizeBytes,
      bytes: wholeBytes({ chunks, skipBytes, expectedBytes: contentBytes, cutShort }),
    }
  }

  async #sdkGet(uri: string, { version, fromByte, signal }: ReadOptions): Promise<GetAnswer> {
    const answer = await this.#call(uri, signal, ({ sdk, client }, abort) =>
      client.send(
        new sdk.GetObjectCommand({
          ...placeOf(uri),
          ...versionIdOf(version),
          ...(version && { IfMatch: `"${version.id}"` }),
          Range: rangeFrom(fromByte),
        }),
        abort,
      ),
    )
    return {
      head: headOf(uri, answer),
      body: answer.Body as unknown as Readable,
      range: readContentRange(answer.ContentRange),
      contentBytes: answer.ContentLength ?? null,
    }
  }

  /** The same call without the layers of the SDK; undefined where the SDK has to be asked. */
  async #signedGet(uri: string, { version, fromByte, signal }: ReadOptions): Promise<GetAnswer | undefined> {
    const { Bucket: bucket, Key: key } = placeOf(uri)
    if (!this.#gets.knows(bucket)) return undefined
    const answer = await this.#call(uri, signal, async ({ client }) => {
      const { VersionId: versionId } = versionIdOf(version)
      const credentials = await client.config.credentials()
      const got = await this.#unlessSilent(signal, (watch) =>
        this.#gets.get({
          send: async (request, abortSignal) =>
            (await client.config.requestHandler.handle(request as never, { abortSignal }))
              .response as GetResponse,
          bucket,
          key,
          query: versionId === undefined ? {} : { versionId },
          headers: { range: rangeFrom(fromByte), ...(version && { 'if-match': `"${version.id}"` }) },
          credentials,
          nowMs: this.#options.clock.now() + client.config.systemClockOffset,
          signal: watch.signal,
        }),
      )
      if (got instanceof Refusal) throw got
      return got
    })
    if (!answer) return undefined
    const { headers } = answer
    const length = headers['content-length']
    const changedAt = headers['last-modified']
    const told: Headers = {
      ETag: headers.etag,
      VersionId: headers['x-amz-version-id'],
      LastModified: changedAt === undefined ? undefined : new Date(changedAt),
      ContentType: headers['content-type'],
      ContentEncoding: headers['content-encoding'],
    }
    return {
      head: headOf(uri, told),
      body: answer.body,
      range: readContentRange(headers['content-range']),
      contentBytes: length === undefined ? null : Number(length),
    }
  }

  async head(uri: string, signal: AbortSignal): Promise<ObjectHead | undefined> {
    try {
      return await this.#head(uri, null, signal)
    } catch (thrown) {
      if (s3Errors.isMissing(thrown)) return undefined
      throw thrown
    }
  }

  async list(options: {
    prefix: string
    after: string | null
    max: number
    signal: AbortSignal
  }): Promise<ObjectPage> {
    const { bucket, key: prefix } = bucketAndKey(options.prefix, 's3')
    const answer = await this.#call(options.prefix, options.signal, ({ sdk, client }, abort) =>
      client.send(
        new sdk.ListObjectsV2Command({
          Bucket: bucket,
          Prefix: prefix,
          MaxKeys: Math.min(Math.max(1, options.max), LIST_MAX),
          // Keys may hold characters that no XML can.
          EncodingType: 'url',
          ...(options.after !== null && { StartAfter: options.after }),
        }),
        abort,
      ),
    )
    const keyOf = (key: string): string =>
      answer.EncodingType === 'url' ? decodeURIComponent(key.replaceAll('+', ' ')) : key
    const found = (answer.Contents ?? []).map(({ Key, ETag, Size, LastModified }) => {
      if (Key === undefined || ETag === undefined || Size === undefined) {
        throw s3Errors.damagedAnswer('the objects of a bucket', 'one of them has no key, etag or size')
      }
      const key = keyOf(Key)
      return {
        key,
        object: {
          uri: `s3://${bucket}/${key}`,
          version: { id: unquoted(ETag) },
          sizeBytes: Size,
          modifiedAtMs: LastModified?.getTime() ?? null,
        },
      }
    })
    const last = found.at(-1)
    if (answer.IsTruncated && !last) {
      throw s3Errors.damagedAnswer(
        'the objects of a bucket',
        'a page without objects says that there are more',
      )
    }
    return { objects: found.map(({ object }) => object), next: answer.IsTruncated ? last!.key : null }
  }

  /** What other tags it has, it keeps. */
  async tag(uri: string, version: ObjectVersion, tags: Readonly<Record<string, string>>): Promise<void> {
    await this.#check(uri, version)
    await this.#call(uri, undefined, async ({ sdk, client }) => {
      const at = { ...placeOf(uri), ...versionIdOf(version) }
      const answer = await client.send(new sdk.GetObjectTaggingCommand(at))
      const all = new Map((answer.TagSet ?? []).map(({ Key, Value }) => [Key ?? '', Value ?? '']))
      for (const [name, value] of Object.entries(tags)) all.set(name, value)
      if (all.size > TAGS_MAX) throw s3Errors.tooManyTags(uri, TAGS_MAX)
      const TagSet = [...all].map(([Key, Value]) => ({ Key, Value }))
      await client.send(new sdk.PutObjectTaggingCommand({ ...at, Tagging: { TagSet } }))
    })
  }

  /** Up to the 5 GB that S3 copies at once. */
  async copy(uri: string, version: ObjectVersion, to: string): Promise<void> {
    const { bucket, key } = bucketAndKey(uri, 's3')
    const asked = versionIdOf(version).VersionId
    const source = [bucket, ...key.split('/')].map(encodeURIComponent).join('/')
    const isTaken = async (): Promise<boolean> =>
      (await this.head(to, new AbortController().signal)) !== undefined
    // Not every service that speaks S3 looks at the conditions.
    if (await isTaken()) throw targetExists(to)
    try {
      await this.#call(uri, undefined, ({ sdk, client }) =>
        client.send(
          new sdk.CopyObjectCommand({
            ...placeOf(to),
            CopySource: asked === undefined ? source : `${source}?versionId=${encodeURIComponent(asked)}`,
            CopySourceIfMatch: `"${version.id}"`,
            IfNoneMatch: '*',
          }),
        ),
      )
    } catch (thrown) {
      if (s3Errors.isReplaced(thrown) && (await isTaken())) throw targetExists(to, thrown)
      throw thrown
    }
  }

  async remove(uri: string, version: ObjectVersion): Promise<void> {
    await this.#check(uri, version)
    await this.#call(uri, undefined, ({ sdk, client }) =>
      client.send(new sdk.DeleteObjectCommand({ ...placeOf(uri), IfMatch: `"${version.id}"` })),
    )
  }

  async close(): Promise<void> {
    const sdk = await this.#sdk
    sdk?.client.destroy()
  }

  async #check(uri: string, version: ObjectVersion): Promise<void> {
    const head = await this.head(uri, new AbortController().signal)
    if (!head) throw objectMissing(uri)
    if (head.version.id !== version.id) throw objectReplaced(uri)
  }

  async #head(uri: string, version: ObjectVersion | null, signal: AbortSignal): Promise<ObjectHead> {
    const answer = await this.#call(uri, signal, ({ sdk, client }, abort) =>
      client.send(new sdk.HeadObjectCommand({ ...placeOf(uri), ...versionIdOf(version) }), abort),
    )
    return { ...headOf(uri, answer), sizeBytes: answer.ContentLength ?? null }
  }

  /** S3 has no range without bytes; reading that ended with the last byte goes on to find that it was the last. */
  async #behindTheEnd(
    uri: string,
    { version, fromByte, signal }: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const head = await this.#head(uri, version, signal)
    if (version && head.version.id !== version.id) throw objectReplaced(uri)
    if (head.sizeBytes !== fromByte) throw noSuchBytes(uri, fromByte)
    return { ...head, bytes: noBytes() }
  }

  async #unlessSilent<T>(caller: AbortSignal, run: (watch: SilenceWatch) => Promise<T>): Promise<T> {
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options
    const watch = new SilenceWatch({ clock, timeoutMs, caller, errors: s3Errors })
    try {
      return await watch.hear(run(watch))
    } finally {
      watch.end()
    }
  }

  /** A few bytes are waited for as a whole: each wait for a part of them costs more than they do. */
  async #together(uri: string, body: Readable, signal: AbortSignal): Promise<Buffer> {
    try {
      return await this.#unlessSilent(signal, (watch) => {
        // Slow is not silent.
        body.on('data', () => watch.moved())
        return allOf(body)
      })
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw s3Errors.classify(thrown, { uri, nowMs: this.#options.clock.now() })
    } finally {
      body.destroy()
    }
  }

  async *#chunks(
    uri: string,
    body: Readable,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options
    const watch = new SilenceWatch({ clock, timeoutMs, caller: signal, errors: s3Errors })
    const chunks = body[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { done, value } = await watch.hear(chunks.next())
        if (done) return
        yield value
      }
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw s3Errors.classify(thrown, { uri, nowMs: clock.now() })
    } finally {
      watch.end()
      body.destroy()
    }
  }

  async #call<T>(
    uri: string,
    signal: AbortSignal | undefined,
    fn: (sdk: Sdk, abort: { abortSignal?: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted()
    this.#sdk ??= this.#load()
    const sdk = await this.#sdk
    try {
      return await fn(sdk, signal ? { abortSignal: signal } : {})
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason
      throw s3Errors.classify(thrown, { uri, nowMs: this.#options.clock.now() })
    }
  }

  async #load(): Promise<Sdk> {
    const sdk = await import('@aws-sdk/client-s3')
    const { forcePathStyle = false, timeoutMs = TIMEOUT_MS } = this.#options
    const client = new sdk.S3Client({
      ...awsConfig(this.#options),
      forcePathStyle,
      // Not every service that speaks S3 knows the checksums that the SDK adds to every call.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: timeoutMs,
        requestTimeout: timeoutMs,
        throwOnRequestTimeout: true,
      },
    })
    client.middlewareStack.add(
      (next, { commandName }) =>
        async (args) => {
          const answer = await next(args)
          const { Bucket = '', Key = '' } = args.input as Partial<Place>
          const { statusCode } = answer.response as { statusCode?: number }
          const isGiven = statusCode === 200 || statusCode === 206
          if (isGiven && commandName === 'GetObjectCommand')
            this.#gets.learn(Bucket, Key, args.request as SdkCall)
          return answer
        },
      // Behind whoever signs.
      { step: 'deserialize', priority: 'low', name: 'learnWhereBucketsAre' },
    )
    return { sdk, client }
  }
}

/** Also for the whole: only an answer to a range says how large the object is. */
function rangeFrom(fromByte: number): string {
  return `bytes=${fromByte}-`
}

function refusalOf(
  uri: string,
  { head, range, contentBytes }: GetAnswer,
  { version, fromByte }: Pick<ReadOptions, 'version' | 'fromByte'>,
): TidemarkError | undefined {
  if (version && head.version.id !== version.id) return objectReplaced(uri)
  if (!range) return undefined
  if (range.from !== fromByte) return s3Errors.damagedAnswer('an object', 'it begins at another byte')
  const isShort = range.size !== null && contentBytes !== null && contentBytes !== range.size - fromByte
  return isShort ? s3Errors.cutShort('an object') : undefined
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes.length > 0) yield bytes
}

function allOf(body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    body.on('data', (chunk: Buffer) => chunks.push(chunk))
    body.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    body.on('error', reject)
    // Also where it broke off before anybody listened; after its end nobody hears of it.
    const onClose = (): void => {
      if (!body.readableEnded) reject(s3Errors.cutShort('an object'))
    }
    if (body.destroyed) onClose()
    else body.on('close', onClose)
  })
}

function placeOf(uri: string): Place {
  const { bucket, key } = bucketAndKey(uri, 's3')
  return { Bucket: bucket, Key: key }
}

/** `null` is what buckets without versions call theirs. */
function versionIdOf(version: ObjectVersion | null): { VersionId?: string } {
  const id = version?.versionId
  return id === undefined || id === 'null' || id === '' ? {} : { VersionId: id }
}

function headOf(uri: string, answer: Headers): ObjectHead {
  if (answer.ETag === undefined) throw s3Errors.damagedAnswer(uri, 'it has no etag')
  return {
    version: {
      id: unquoted(answer.ETag),
      ...(answer.VersionId !== undefined && { versionId: answer.VersionId }),
    },
    sizeBytes: null,
    modifiedAtMs: answer.LastModified?.getTime() ?? null,
    contentType: answer.ContentType ?? null,
    contentEncoding: answer.ContentEncoding ?? null,
  }
}

function unquoted(etag: string): string {
  return etag.replace(/^"(.*)"$/, '$1')
}
