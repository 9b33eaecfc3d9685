/** What a token endpoint's refusal means: the one classification for OAuth. */
import { z } from 'zod'
import { type ErrorKind, TidemarkError } from '../base/errors.ts'

export type OAuthAnswer = {
  status: number
  text: string
  retryAfter: string | null
  host: string
  nowMs: number
}

/** By the name of the error, in place of what is said by default. */
export type OAuthHints = Readonly<Record<string, string>>

type Meaning = { kind: ErrorKind; says: string; hint?: string }

export const TESTING_HINT =
  'A Google Cloud project whose consent screen is in "Testing" loses its refresh tokens after 7 days: publish it (audience: In production), which needs no review for your own use. Tokens also die when access is revoked, the password changes, or they are unused for 6 months.'

const RECONNECT = 'Connect the account again with: tidemark account add.'
const CLIENT_HINT =
  'Check client_id and client_secret in the configuration: they must be those of one OAuth client, of the type "Desktop app".'
const DELEGATION_HINT =
  "Allow the service account's client id and exactly these scopes under Security > API controls > Domain-wide delegation in the Google Admin console; it can take some minutes to hold."

const MEANINGS: Record<string, Meaning> = {
  invalid_grant: {
    kind: 'auth',
    says: 'the sign-in is no longer valid',
    hint: `${RECONNECT} ${TESTING_HINT}`,
  },
  invalid_client: {
    kind: 'auth',
    says: 'the OAuth client is unknown or its secret is wrong',
    hint: CLIENT_HINT,
  },
  deleted_client: { kind: 'auth', says: 'the OAuth client was deleted', hint: CLIENT_HINT },
  unauthorized_client: { kind: 'auth', says: 'the client is not allowed to do this', hint: CLIENT_HINT },
  redirect_uri_mismatch: { kind: 'auth', says: 'the client does not allow this redirect', hint: CLIENT_HINT },
  invalid_scope: { kind: 'auth', says: 'the permission asked for does not exist or is not allowed' },
  access_denied: { kind: 'auth', says: 'access was denied', hint: RECONNECT },
  admin_policy_enforced: {
    kind: 'auth',
    says: 'the administrator of this account does not allow it',
    hint: 'Ask the administrator to trust this client in the Google Admin console.',
  },
  org_internal: {
    kind: 'auth',
    says: 'the client is for members of its own organisation only',
    hint: CLIENT_HINT,
  },
  invalid_token: { kind: 'gone', says: 'the token is not known' },
  invalid_request: { kind: 'permanent', says: 'the request was refused' },
  unsupported_grant_type: { kind: 'permanent', says: 'the request was refused' },
  interaction_required: { kind: 'auth', says: 'it wants a new sign-in', hint: RECONNECT },
  consent_required: { kind: 'auth', says: 'the permission was not given', hint: RECONNECT },
  authorization_pending: { kind: 'transient', says: 'nobody has signed in yet' },
  authorization_declined: { kind: 'auth', says: 'access was denied', hint: RECONNECT },
  expired_token: { kind: 'auth', says: 'the code was not used in time', hint: 'Start again.' },
  bad_verification_code: { kind: 'auth', says: 'the code is not known', hint: 'Start again.' },
  slow_down: { kind: 'throttled', says: 'it asks to slow down' },
  rate_limit_exceeded: { kind: 'throttled', says: 'it asks to slow down' },
  temporarily_unavailable: { kind: 'transient', says: 'it is not available now' },
  server_error: { kind: 'transient', says: 'it has a problem' },
  internal_failure: { kind: 'transient', says: 'it has a problem' },
}

const errorSchema = z.object({
  error: z.string().regex(/^[\w.-]{1,64}$/),
  error_description: z.string().optional().catch(undefined),
  error_subtype: z.string().optional().catch(undefined),
})

const DESCRIPTION_CHARS_MAX = 200
/** What is shorter is no secret, and would be found in any sentence. */
const SECRET_CHARS_MIN = 8
const RETRY_AFTER_MS_MAX = 3_600_000

export function classifyAnswer(
  answer: OAuthAnswer,
  { sent, grant, hints }: { sent: readonly string[]; grant: string; hints?: OAuthHints | undefined },
): TidemarkError {
  const { status, host } = answer
  const parsed = errorSchema.safeParse(jsonOf(answer.text))
  const retryAfterMs = readRetryAfter(answer)
  // 5xx first: whatever stands in such an answer, the same request may succeed later.
  if (status >= 500) {
    return new TidemarkError(`${host} has a problem (${status}).`, {
      kind: 'transient',
      code: 'oauth-unavailable',
      retryAfterMs,
    })
  }
  if (status === 429) {
    return new TidemarkError(`${host} asks to slow down (429).`, { kind: 'throttled', retryAfterMs })
  }
  if (!parsed.success) {
    // Proxies and portals answer with pages; only the service itself can say that a token is dead.
    return new TidemarkError(`${host} gave an answer that is none of OAuth (${status}).`, {
      kind: status === 408 || status === 403 || (status >= 300 && status < 400) ? 'transient' : 'permanent',
      code: 'oauth-answer',
      hint: 'Check the addresses in the configuration, and whether a proxy stands in between.',
    })
  }
  const code = parsed.data.error
  const meaning = meaningOf(parsed.data, grant)
  const hint = hints?.[code] ?? meaning.hint
  const told = description(parsed.data.error_description, sent)
  return new TidemarkError(`${host}: ${meaning.says} (${code}${told})`, {
    kind: meaning.kind,
    code,
    retryAfterMs,
    ...(hint !== undefined && { hint }),
  })
}

export function classifyNetwork(thrown: unknown, input: { host: string; timedOut: boolean }): TidemarkError {
  const cause = (thrown as { cause?: { code?: unknown } } | null)?.cause
  const why = input.timedOut ? 'it did not answer in time' : `${cause?.code ?? 'the connection failed'}`
  return new TidemarkError(`${input.host} cannot be reached: ${why}.`, {
    kind: 'transient',
    code: 'oauth-unreachable',
    cause: thrown,
    hint: 'Check the network connection.',
  })
}

function meaningOf(error: z.output<typeof errorSchema>, grant: string): Meaning {
  const described = error.error_description ?? ''
  if (error.error === 'invalid_request' && /client_secret/.test(described)) return MEANINGS.invalid_client!
  if (error.error_subtype === 'invalid_rapt') {
    return {
      ...MEANINGS.invalid_grant!,
      hint: `${RECONNECT} Your organisation asks for a new sign-in from time to time.`,
    }
  }
  const meaning = MEANINGS[error.error] ?? { kind: 'permanent', says: 'it refused' }
  if (!grant.endsWith('jwt-bearer') || meaning.kind !== 'auth') return meaning
  if (error.error === 'invalid_grant') {
    const hint = `Check that the user exists, that the key was not deleted, and that this machine's clock is right. ${DELEGATION_HINT}`
    return { kind: 'auth', says: 'the service account was refused', hint }
  }
  return { ...meaning, hint: DELEGATION_HINT }
}

function description(text: string | undefined, sent: readonly string[]): string {
  if (!text) return ''
  const quotes = sent.some((one) => one.length >= SECRET_CHARS_MIN && text.includes(one))
  if (quotes) return ''
  return `: ${text.length > DESCRIPTION_CHARS_MAX ? `${text.slice(0, DESCRIPTION_CHARS_MAX)}…` : text}`
}

function readRetryAfter({ retryAfter, nowMs }: OAuthAnswer): number | undefined {
  if (retryAfter === null) return undefined
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - nowMs
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX) : undefined
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON is an answer like any other that does not fit.
    return undefined
  }
}
