/**
 * GETs of objects without the layers of the SDK, which cost several times what the call itself does, and more than all
 * else that is done with a small object. Where a bucket is, and how its calls are signed, is learned from a call that the
 * SDK has made itself; where a service answers that it is elsewhere, the SDK is asked, and taught anew.
 */
import type { Readable } from 'node:stream'
import type { AwsCredentials } from '../aws/credentials.ts'
import { encoded, Signer } from '../aws/signature.ts'

/** A call as the SDK has signed it. */
export type SdkCall = {
  protocol: string
  hostname: string
  port?: number | undefined
  path: string
  headers: Readonly<Record<string, string>>
}

/** Where objects of a bucket are asked for: `prefix` stands before the key. */
type BucketAt = {
  isSecure: boolean
  hostname: string
  port?: number
  host: string
  prefix: string
  region: string
}

export type GetResponse = { statusCode: number; headers: Record<string, string | undefined>; body: Readable }

/** How the SDK itself sends what it has signed. */
export type Send = (request: object, signal: AbortSignal) => Promise<GetResponse>

export type SignedGet = {
  send: Send
  bucket: string
  key: string
  query: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
  credentials: AwsCredentials
  nowMs: number
  signal: AbortSignal
}

const BUCKETS_MAX = 1_000
/** What is read of an answer without the object. */
const SAID_BYTES_MAX = 64 * 1024

export class SignedGets {
  readonly #buckets = new Map<string, BucketAt>()
  readonly #signer = new Signer()

  knows(bucket: string): boolean {
    return this.#buckets.has(bucket)
  }

  /** From a GetObject of this key. One that is signed in another way teaches nothing. */
  learn(bucket: string, key: string, { protocol, hostname, port, path, headers }: SdkCall): void {
    const region = /Credential=[^/]+\/\d{8}\/([^/]+)\/s3\/aws4_request/.exec(headers.authorization ?? '')?.[1]
    const name = keyPath(key)
    if (region === undefined || headers.host === undefined || !path.endsWith(`/${name}`)) return
    if (this.#buckets.size >= BUCKETS_MAX) this.#buckets.clear()
    this.#buckets.set(bucket, {
      isSecure: protocol === 'https:',
      hostname,
      ...(port !== undefined && { port }),
      host: headers.host,
      prefix: path.slice(0, path.length - name.length),
      region,
    })
  }

  /** Undefined where nobody knows how to ask, or where the object is elsewhere: then the SDK is asked. */
  async get(asked: SignedGet): Promise<GetResponse | Refusal | undefined> {
    const at = this.#buckets.get(asked.bucket)
    if (!at) return undefined
    const path = `${at.prefix}${keyPath(asked.key)}`
    const call = { method: 'GET', host: at.host, path, query: asked.query, headers: asked.headers }
    const { region } = at
    const place = { region, service: 's3', credentials: asked.credentials, nowMs: asked.nowMs }
    const { isSecure, hostname, port } = at
    const answer = await asked.send(
      {
        protocol: isSecure ? 'https:' : 'http:',
        hostname,
        ...(port !== undefined && { port }),
        method: 'GET',
        path,
        query: asked.query,
        headers: this.#signer.sign(call, place),
      },
      asked.signal,
    )
    const status = answer.statusCode
    if (status === 200 || status === 206) return answer
    // Elsewhere, perhaps, or signed otherwise by now: the SDK's next call teaches it anew.
    if (status < 404) this.#buckets.delete(asked.bucket)
    const said = await beginningOf(answer)
    return status < 400 ? undefined : new Refusal(answer, said)
  }
}

/** As the SDK writes it into a path: slashes stay. */
function keyPath(key: string): string {
  return key.split('/').map(encoded).join('/')
}

/** To its end, so that the connection can be used again; all of it, where it is as short as an error is. */
async function beginningOf({ body }: GetResponse): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > SAID_BYTES_MAX) break
  }
  return Buffer.concat(chunks).toString()
}

/** What the service said instead of the object, as the SDK throws it: errors.ts knows what it means. */
export class Refusal extends Error {
  readonly $metadata: { httpStatusCode: number }
  readonly $response: { headers: GetResponse['headers'] }

  constructor({ statusCode, headers }: GetResponse, said: string) {
    const told = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(said)?.[1] ?? ''
    super(told('Message'))
    this.name = told('Code')
    this.$metadata = { httpStatusCode: statusCode }
    this.$response = { headers }
  }
}
