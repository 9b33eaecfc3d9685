/**
 * OAuth 2 for all cloud clients: authorization code with PKCE (RFC 7636), refresh, revocation (RFC 7009) and the
 * JWT-bearer grant of service accounts (RFC 7523). The device code is in device-code.ts.
 *
 * Tokens, codes and keys are sent only as bodies of POST requests, which follow no redirect, and never stand in
 * messages: what a server says is shown only if none of what was sent is in it.
 */
import { createHash, createPrivateKey, type KeyObject, sign, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { classifyAnswer, classifyNetwork, jsonOf, type OAuthAnswer, type OAuthHints } from './oauth-errors.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Random bytes that nobody can guess. */
export type Entropy = (bytes: number) => Uint8Array

export type OAuthClient = { clientId: string; clientSecret?: string | undefined }

export type OAuthCalls = {
  fetch: Fetch
  clock: Clock
  tokenUrl: string
  signal?: AbortSignal | undefined
  /** What the user can do about an error of this service, by the error's name. */
  hints?: OAuthHints | undefined
}

export type Pkce = { verifier: string; challenge: string; state: string }

export type Tokens = {
  accessToken: string
  expiresAtMs: number
  /** Only where the service gave one: at the first consent, and when it rotates them. */
  refreshToken?: string
  /** Only where it ends by itself: Google says so for projects in testing, and for access given for a time. */
  refreshExpiresAtMs?: number
  /** What was granted, where the service says it. */
  scopes?: string[]
}

const TIMEOUT_MS = 30_000
const ANSWER_CHARS_MAX = 65_536
/** Where the service does not say how long an access token lives. */
const EXPIRES_SECONDS_DEFAULT = 3_600
const EXPIRES_SECONDS_MAX = 86_400
/** The most that Google allows for an assertion. */
const ASSERTION_SECONDS = 3_600

export function createPkce(entropy: Entropy): Pkce {
  const verifier = base64url(entropy(32))
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  return { verifier, challenge, state: base64url(entropy(24)) }
}

export function authorizationUrl(input: {
  authUrl: string
  clientId: string
  redirectUri: string
  scopes: readonly string[]
  pkce: Pkce
  /** What only this service asks for, such as `access_type`. */
  extra?: Readonly<Record<string, string>>
}): string {
  const url = new URL(input.authUrl)
  const query = {
    response_type: 'code',
    client_id: input.clientId,
    redirect_uri: input.redirectUri,
    scope: input.scopes.join(' '),
    state: input.pkce.state,
    code_challenge: input.pkce.challenge,
    code_challenge_method: 'S256',
    ...input.extra,
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}

/** `strange`: not an answer to this request; whoever waits goes on waiting. */
export type Redirect =
  | { kind: 'code'; code: string }
  | { kind: 'refused'; error: string }
  | { kind: 'strange' }

/** Reads what the service put into the redirect's address. Only an answer with our state counts. */
export function readRedirect(query: URLSearchParams, state: string): Redirect {
  const given = query.get('state') ?? ''
  if (!sameText(given, state)) return { kind: 'strange' }
  const error = query.get('error')
  if (error !== null) return { kind: 'refused', error: /^[\w.-]{1,64}$/.test(error) ? error : 'unknown' }
  const code = query.get('code')
  return code ? { kind: 'code', code } : { kind: 'strange' }
}

export function exchangeCode(
  calls: OAuthCalls,
  input: OAuthClient & { code: string; verifier: string; redirectUri: string },
): Promise<Tokens> {
  return requestTokens(calls, {
    grant_type: 'authorization_code',
    code: input.code,
    code_verifier: input.verifier,
    redirect_uri: input.redirectUri,
    ...clientFields(input),
  })
}

export function refreshTokens(
  calls: OAuthCalls,
  input: OAuthClient & { refreshToken: string },
): Promise<Tokens> {
  return requestTokens(calls, {
    grant_type: 'refresh_token',
    refresh_token: input.refreshToken,
    ...clientFields(input),
  })
}

export type ServiceAccount = {
  clientEmail: string
  /** PEM. */
  privateKey: string
  /** Whom it acts for, by domain-wide delegation; left out, it acts for itself. */
  subject?: string
  scopes: readonly string[]
}

export async function serviceAccountTokens(calls: OAuthCalls, account: ServiceAccount): Promise<Tokens> {
  return requestTokens(calls, {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: signAssertion(account, { audience: calls.tokenUrl, nowMs: calls.clock.now() }),
  })
}

/** Gives a token back. One that the service does not know any more is given back already. */
export async function revokeToken(
  calls: Omit<OAuthCalls, 'tokenUrl'> & { revokeUrl: string },
  token: string,
): Promise<void> {
  const answer = await post(calls, { url: calls.revokeUrl, fields: { token } })
  if (answer.status >= 200 && answer.status < 300) return
  const error = classifyAnswer(answer, { sent: [token], grant: 'revoke' })
  if (error.code === 'invalid_token' || error.code === 'invalid_grant') return
  throw error
}

/** Goes into a header: what cannot stand there is no token, and would be quoted by the error about it. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

const tokenSchema = z.object({
  access_token: z.string().regex(TOKEN),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .optional(),
  expires_in: z.coerce.number().positive().optional(),
  refresh_token: z.string().min(1).max(8_192).optional(),
  refresh_token_expires_in: z.coerce.number().nonnegative().optional().catch(undefined),
  scope: z.string().optional(),
})

/** What every grant comes down to. */
export async function requestTokens(calls: OAuthCalls, fields: Record<string, string>): Promise<Tokens> {
  // Counted from before the request: a slow answer must not make a token look younger than it is.
  const askedMs = calls.clock.now()
  const answer = await post(calls, { url: calls.tokenUrl, fields })
  if (answer.status !== 200) {
    throw classifyAnswer(answer, {
      sent: Object.values(fields),
      grant: fields.grant_type ?? '',
      hints: calls.hints,
    })
  }
  const parsed = tokenSchema.safeParse(jsonOf(answer.text))
  if (!parsed.success) {
    // A captive portal or a proxy answers 200 with a page of its own: later it may be the service again.
    throw new TidemarkError(`${hostOf(calls.tokenUrl)} did not answer with a token.`, {
      kind: 'transient',
      code: 'oauth-answer',
    })
  }
  const {
    access_token,
    expires_in,
    refresh_token,
    refresh_token_expires_in: lastsSeconds,
    scope,
  } = parsed.data
  const seconds = Math.min(expires_in ?? EXPIRES_SECONDS_DEFAULT, EXPIRES_SECONDS_MAX)
  return {
    accessToken: access_token,
    expiresAtMs: askedMs + seconds * 1_000,
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(lastsSeconds !== undefined && { refreshExpiresAtMs: askedMs + lastsSeconds * 1_000 }),
    ...(scope !== undefined && { scopes: scope.split(' ').filter((one) => one !== '') }),
  }
}

type PostCalls = Omit<OAuthCalls, 'tokenUrl'>

/** Sends secrets, and gives back whatever the answer is. */
export async function post(
  { fetch, clock, signal }: PostCalls,
  { url, fields }: { url: string; fields: Record<string, string> },
): Promise<OAuthAnswer> {
  const host = hostOf(url)
  const limit = new AbortController()
  const cancel = clock.timer(TIMEOUT_MS, () => limit.abort())
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(fields).toString(),
      // Followed, a redirect would carry the secrets to wherever it points.
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
    })
    const text = await readText(response)
    return {
      status: response.status,
      text,
      retryAfter: response.headers.get('retry-after'),
      host,
      nowMs: clock.now(),
    }
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason
    throw classifyNetwork(thrown, { host, timedOut: limit.signal.aborted })
  } finally {
    cancel()
  }
}

/** Up to a limit: what sends more is no token endpoint, and no profile. */
export async function readText(response: Response): Promise<string> {
  if (!response.body) return ''
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > ANSWER_CHARS_MAX) break
  }
  return text.slice(0, ANSWER_CHARS_MAX)
}

function signAssertion(
  account: ServiceAccount,
  { audience, nowMs }: { audience: string; nowMs: number },
): string {
  const issuedAt = Math.floor(nowMs / 1_000)
  const claims = {
    iss: account.clientEmail,
    sub: account.subject,
    scope: account.scopes.join(' '),
    aud: audience,
    iat: issuedAt,
    exp: issuedAt + ASSERTION_SECONDS,
  }
  const parts = [{ alg: 'RS256', typ: 'JWT' }, claims].map((part) =>
    base64url(Buffer.from(JSON.stringify(part))),
  )
  const text = parts.join('.')
  return `${text}.${base64url(sign('sha256', Buffer.from(text), rsaKey(account)))}`
}

function rsaKey({ clientEmail, privateKey }: ServiceAccount): KeyObject {
  let key: KeyObject | undefined
  try {
    key = createPrivateKey(privateKey)
  } catch {
    // Its error may quote parts of the key.
  }
  if (key?.asymmetricKeyType === 'rsa') return key
  throw new TidemarkError(`The private key of the service account ${clientEmail} is not an RSA key in PEM.`, {
    kind: 'auth',
    code: 'service-account-key',
    hint: 'Download a new key for it, as JSON, and add the account again with --service-account.',
  })
}

export function clientFields({ clientId, clientSecret }: OAuthClient): Record<string, string> {
  return { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) }
}

export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the token address'
}

function sameText(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(first!, second!)
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}
