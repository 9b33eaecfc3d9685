/** Keys and signed tokens (RS256): of the service account, and of the one who signs push messages. */
import { createSign, createVerify, generateKeyPairSync, type KeyObject } from 'node:crypto'

export type SigningKey = { id: string; privateKey: KeyObject; publicKey: KeyObject }

/** Takes a tenth of a second, so it is made when it is first asked for. */
export function createSigningKey(id: string): SigningKey {
  return { id, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

export function privatePem({ privateKey }: SigningKey): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** As a JWKS lists it. */
export function publicJwk({ id, publicKey }: SigningKey): Record<string, unknown> {
  return { ...publicKey.export({ format: 'jwk' }), kid: id, alg: 'RS256', use: 'sig' }
}

export function signJwt(key: SigningKey, claims: Record<string, unknown>): string {
  const head = encode({ alg: 'RS256', kid: key.id, typ: 'JWT' })
  const signed = `${head}.${encode(claims)}`
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(key.privateKey, 'base64url')}`
}

/** The claims; undefined when the signature is not the key's. */
export function verifyJwt(key: SigningKey, token: string): Record<string, unknown> | undefined {
  const [head, body, signature, ...rest] = token.split('.')
  if (!head || !body || !signature || rest.length > 0) return undefined
  const header = decode(head)
  if (header?.alg !== 'RS256') return undefined
  const isGood = createVerify('RSA-SHA256')
    .update(`${head}.${body}`)
    .verify(key.publicKey, Buffer.from(signature, 'base64url'))
  return isGood ? decode(body) : undefined
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decode(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    // What cannot be read is not signed by anybody.
    return undefined
  }
}
