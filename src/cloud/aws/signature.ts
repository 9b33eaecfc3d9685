/**
 * Signatures of calls to AWS (version 4), for calls whose body is not signed. The SDK signs its own; this is for the call
 * that is made so often that the SDK's layers around it cost more than the call: see s3/signed-get.ts.
 */
import { createHmac, hash as hashOf } from 'node:crypto'
import type { AwsCredentials } from './credentials.ts'

export type SignedCall = {
  method: string
  host: string
  /** As it is sent, each piece encoded once. */
  path: string
  query: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
}

export type SigningPlace = { region: string; service: string; credentials: AwsCredentials; nowMs: number }

const EMPTY_SHA256 = hashOf('sha256', '')

/** A key is good for a day, a region and a service: four HMACs that need not be made for every call. */
export class Signer {
  #key: { of: string; bytes: Buffer } | undefined

  /** All headers that are to be sent, with those of the signature. */
  sign(call: SignedCall, place: SigningPlace): Record<string, string> {
    const { credentials, region, service } = place
    const at = new Date(place.nowMs).toISOString().replace(/[-:]|\.\d+/g, '')
    const scope = `${at.slice(0, 8)}/${region}/${service}/aws4_request`
    const headers: Record<string, string> = {
      ...call.headers,
      host: call.host,
      'x-amz-content-sha256': EMPTY_SHA256,
      'x-amz-date': at,
      ...(credentials.sessionToken !== undefined && { 'x-amz-security-token': credentials.sessionToken }),
    }
    const names = Object.keys(headers).sort()
    const canonical = [
      call.method,
      call.path,
      queryText(call.query),
      ...names.map((name) => `${name}:${headers[name]!.trim().replace(/ +/g, ' ')}`),
      '',
      names.join(';'),
      EMPTY_SHA256,
    ].join('\n')
    const text = `AWS4-HMAC-SHA256\n${at}\n${scope}\n${hashOf('sha256', canonical)}`
    const signature = hmac(this.#keyOf(credentials.secretAccessKey, scope), text).toString('hex')
    headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`
    return headers
  }

  #keyOf(secret: string, scope: string): Buffer {
    const of = `${scope} ${secret}`
    if (this.#key?.of === of) return this.#key.bytes
    let bytes: Buffer = Buffer.from(`AWS4${secret}`)
    for (const piece of scope.split('/')) bytes = hmac(bytes, piece)
    this.#key = { of, bytes }
    return bytes
  }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** In the order of names, and encoded as the signature wants it. */
export function queryText(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&')
}

/** Everything but letters, digits and `-_.~`. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
