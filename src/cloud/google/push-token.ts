/**
 * The token that Pub/Sub sends with a push: an OpenID Connect token of Google, signed for one audience in the name of
 * one service account (RS256, keys by address).
 *
 * Invariants:
 * - a token holds only by a key of the set, with RS256: what its own head says about keys and addresses counts for nothing
 * - keys are asked for at most once in REFETCH_MS because of a token whose key is not known: whoever invents tokens
 *   cannot have us ask without end
 * - that the keys cannot be had is no verdict over the token: that is transient, and whoever sent it tries again
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { Fetch } from '../oauth.ts'

export type PushTokenOptions = {
  fetch: Fetch
  clock: Clock
  /** Where the keys are; https://www.googleapis.com/oauth2/v3/certs for Google's own. */
  keysUrl: string
  /** As the subscription has it: its own address, unless it was told another. */
  audience: string
  /** Of the service account in whose name pushes are signed. */
  email: string
}

/** Which check did not hold. */
export type PushRefusal = 'malformed' | 'signature' | 'expired' | 'claims'

export type PushVerdict = { ok: true } | { ok: false; why: PushRefusal; detail: string }

const ISSUERS = ['https://accounts.google.com', 'accounts.google.com']
const LEEWAY_S = 30
const TOKEN_CHARS_MAX = 8_192
const KEYS_FRESH_MS = 3_600_000
/** Keys are good for days; those that were had are used that long where no newer ones can be had. */
const KEYS_KEPT_MS = 24 * 3_600_000
const REFETCH_MS = 30_000
const RETRY_MS = 5_000
const KEYS_TIMEOUT_MS = 5_000
const KEYS_BYTES_MAX = 100_000
const KEYS_MAX = 50

const keySet = z.object({
  keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })).max(KEYS_MAX),
})

const claims = z.object({ email: z.string(), email_verified: z.literal(true), exp: z.number() })

type Keys = { set: ReturnType<typeof createLocalJWKSet>; ids: ReadonlySet<string>; fetchedMs: number }

export class PushTokens {
  readonly #options: PushTokenOptions
  #keys: Keys | undefined
  /** At most one at a time. */
  #fetching: Promise<Keys> | undefined
  #triedMs = Number.NEGATIVE_INFINITY
  #hasFailed = false

  constructor(options: PushTokenOptions) {
    this.#options = options
  }

  /** Throws, transient, where the keys cannot be had. */
  async verify(token: string | undefined): Promise<PushVerdict> {
    const keyId = token === undefined ? undefined : keyIdOf(token)
    if (token === undefined || keyId === undefined) return refused('malformed', 'it is no signed token')
    const keys = await this.#keysFor(keyId)
    if (!keys.ids.has(keyId)) return refused('signature', 'its key is not one of Google')
    const { audience, email, clock } = this.#options
    try {
      const { payload } = await jwtVerify(token, keys.set, {
        algorithms: ['RS256'],
        issuer: ISSUERS,
        audience,
        clockTolerance: LEEWAY_S,
        currentDate: new Date(clock.now()),
        requiredClaims: ['exp', 'iat'],
      })
      const said = claims.safeParse(payload)
      if (!said.success) return refused('claims', 'its e-mail address is not verified')
      if (said.data.email !== email) return refused('claims', 'it is of another service account')
      return { ok: true }
    } catch (thrown) {
      return verdictOf(thrown)
    }
  }

  async #keysFor(keyId: string): Promise<Keys> {
    const nowMs = this.#options.clock.monotonicMs()
    const keys = this.#keys
    const known = keys?.ids.has(keyId) ? keys : undefined
    if (known && nowMs - known.fetchedMs < KEYS_FRESH_MS) return known
    const isSoon = nowMs - this.#triedMs < (this.#hasFailed ? RETRY_MS : REFETCH_MS)
    // Those that were just had are the newest there are.
    if (keys && isSoon && !this.#hasFailed && !this.#fetching) return keys
    const kept = known && nowMs - known.fetchedMs < KEYS_KEPT_MS ? known : undefined
    try {
      if (isSoon && !this.#fetching) throw new Error('they could not be had a moment ago')
      this.#fetching ??= this.#fetch(nowMs).finally(() => {
        this.#fetching = undefined
      })
      return await this.#fetching
    } catch (thrown) {
      if (kept) return kept
      throw keysAway(thrown)
    }
  }

  async #fetch(nowMs: number): Promise<Keys> {
    const { fetch, clock, keysUrl } = this.#options
    this.#triedMs = nowMs
    this.#hasFailed = true
    const controller = new AbortController()
    const cancel = clock.timer(KEYS_TIMEOUT_MS, () => controller.abort(new Error('no answer in time')))
    try {
      const response = await fetch(keysUrl, { redirect: 'error', signal: controller.signal })
      if (!response.ok) throw new Error(`status ${response.status}`)
      const { keys } = keySet.parse(JSON.parse(await boundedText(response)))
      const ids = new Set(keys.map(({ kid }) => kid))
      this.#keys = { set: createLocalJWKSet({ keys } as JSONWebKeySet), ids, fetchedMs: nowMs }
      this.#hasFailed = false
      return this.#keys
    } finally {
      cancel()
    }
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > KEYS_BYTES_MAX) throw new Error('the set of keys is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Read before anything is checked, only to know whether the keys at hand will do. */
function keyIdOf(token: string): string | undefined {
  const parts = token.split('.', 4)
  if (token.length > TOKEN_CHARS_MAX || parts.length !== 3) return undefined
  try {
    const head: unknown = JSON.parse(Buffer.from(parts[0] ?? '', 'base64url').toString('utf8'))
    const { alg, kid } = z.object({ alg: z.literal('RS256'), kid: z.string().min(1).max(256) }).parse(head)
    return alg && kid
  } catch {
    // What cannot be read, or is signed in another way, is no token of a push.
    return undefined
  }
}

function verdictOf(thrown: unknown): PushVerdict {
  if (thrown instanceof errors.JWTExpired) return refused('expired', 'it has expired')
  if (thrown instanceof errors.JWTClaimValidationFailed) {
    return refused('claims', `its claim ${thrown.claim} is not right`)
  }
  if (thrown instanceof errors.JOSEError) return refused('signature', 'its signature does not hold')
  throw thrown
}

function refused(why: PushRefusal, detail: string): PushVerdict {
  return { ok: false, why, detail }
}

function keysAway(cause?: unknown): TidemarkError {
  return new TidemarkError('The keys by which pushes are checked cannot be had just now.', {
    kind: 'transient',
    code: 'push-keys-away',
    retryAfterMs: RETRY_MS,
    cause,
  })
}
