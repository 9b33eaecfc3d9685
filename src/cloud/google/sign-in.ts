/**
 * Sign-in to a Google account, for every service of Google: what is kept secret about it, what access tokens are made
 * from, the key file of a service account with delegation over a domain, and how long a sign-in lasts. What its scopes
 * allow is the service's own matter.
 */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { formatDuration } from '../../base/format.ts'
import { distance } from '../../base/moment.ts'
import type { Concern, SecretLook } from '../account-service.ts'
import { type AccountTokensInput, openGrantedTokens } from '../account-tokens.ts'
import {
  type OAuthCalls,
  type OAuthClient,
  refreshTokens,
  serviceAccountTokens,
  type Tokens,
} from '../oauth.ts'
import { TESTING_HINT } from '../oauth-errors.ts'
import {
  type Grant,
  isSameOAuthGrant,
  keptOAuthToken,
  newOAuthSecret,
  oauthSecretSchema,
  parseSecret,
  renewOAuthSecret,
  type TokenSource,
} from '../token-source.ts'

export const googleSecretSchema = z.discriminatedUnion('kind', [
  oauthSecretSchema,
  z.object({
    kind: z.literal('service-account'),
    clientEmail: z.string().min(1),
    privateKey: z.string().min(1),
    subject: z.string().min(1),
    scopes: oauthSecretSchema.shape.scopes,
  }),
])

export type GoogleSecret = z.output<typeof googleSecretSchema>

export function parseGoogleSecret(text: string, service: string): GoogleSecret {
  return parseSecret(googleSecretSchema, text, service)
}

export function googleGrant({ fetch, clock, tokenUrl }: OAuthCalls): Grant<GoogleSecret> {
  return {
    ask: (secret) => fetchTokens(secret, { fetch, clock, tokenUrl }),
    keptToken: (secret) => (secret.kind === 'oauth' ? keptOAuthToken(secret) : undefined),
    renew: (secret, tokens, nowMs) =>
      secret.kind === 'oauth' ? renewOAuthSecret(secret, tokens, nowMs) : undefined,
    isSame: isSameGrant,
  }
}

function fetchTokens(secret: GoogleSecret, calls: OAuthCalls): Promise<Tokens> {
  return secret.kind === 'oauth' ? refreshTokens(calls, secret) : serviceAccountTokens(calls, secret)
}

function isSameGrant(a: GoogleSecret, b: GoogleSecret): boolean {
  if (a.kind === 'oauth') return b.kind === 'oauth' && isSameOAuthGrant(a, b)
  if (b.kind === 'oauth' || a.privateKey !== b.privateKey || a.clientEmail !== b.clientEmail) return false
  return a.subject === b.subject && a.scopes.join(' ') === b.scopes.join(' ')
}

/** The token source of an account that the ledger knows. */
export function openGoogleTokens(
  input: AccountTokensInput,
  parse: (text: string) => GoogleSecret,
): Promise<TokenSource> {
  return openGrantedTokens({
    ...input,
    grant: googleGrant(input),
    parse,
    refreshTokenOf: (secret) => (secret.kind === 'oauth' ? secret.refreshToken : undefined),
  })
}

/** What is kept of a sign-in; an error where it does not bring what was asked for. */
export function googleSecretOf(
  tokens: Tokens,
  client: OAuthClient,
  {
    scope,
    isEnough,
    title,
    nowMs,
  }: {
    /** What was asked for: services that give all of it may leave it out of their answer. */
    scope: string
    isEnough: (scopes: readonly string[]) => boolean
    /** Of the service, as the page calls it on which people tick boxes. */
    title: string
    nowMs: number
  },
): GoogleSecret {
  const scopes = tokens.scopes ?? [scope]
  if (!isEnough(scopes)) {
    throw new TidemarkError(`The permission for ${title} was not given. Nothing was kept.`, {
      kind: 'auth',
      code: 'scope-missing',
      hint: `Sign in once more, and leave the box for ${title} ticked on the page that asks.`,
    })
  }
  if (tokens.refreshToken === undefined) {
    throw new TidemarkError('The service gave no lasting access (no refresh token). Nothing was kept.', {
      kind: 'auth',
      code: 'no-refresh-token',
      hint: 'Remove the access of this client at https://myaccount.google.com/permissions and sign in once more.',
    })
  }
  return newOAuthSecret(client, { ...tokens, refreshToken: tokens.refreshToken, scopes }, nowMs)
}

const SERVICE_ACCOUNT_BYTES_MAX = 65_536

const serviceAccountFile = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
})

export function readServiceAccount(path: string): { clientEmail: string; privateKey: string } {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new UsageError(`The service account file ${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  let parsed: z.output<typeof serviceAccountFile> | undefined
  try {
    if (text.length <= SERVICE_ACCOUNT_BYTES_MAX) parsed = serviceAccountFile.parse(JSON.parse(text))
  } catch {
    // Without its cause, which may quote the key.
  }
  if (parsed) return { clientEmail: parsed.client_email, privateKey: parsed.private_key }
  throw new UsageError(`${path} is not the key file of a service account.`, {
    hint: 'In the Google Cloud console, under the service account\'s "Keys", add a key of the type JSON: that file is meant.',
  })
}

/** What the person should know of a new sign-in. */
export function googleNotes(secret: GoogleSecret): string[] {
  if (secret.kind === 'service-account') {
    return ['Its key is kept sealed; the key file is not needed any more.']
  }
  if (secret.refreshExpiresAtMs === undefined) return []
  const left = formatDuration(secret.refreshExpiresAtMs - secret.obtainedAtMs)
  return [`This sign-in ends by itself in ${left}. ${TESTING_HINT}`]
}

/** What a secret says, without asking anybody. */
export function lookAtGoogleSecret(secret: GoogleSecret, nowMs: number): SecretLook {
  const isOAuth = secret.kind === 'oauth'
  return {
    clientId: isOAuth ? secret.clientId : undefined,
    accessToken: (isOAuth && secret.accessToken) || '',
    obtainedAtMs: isOAuth ? secret.obtainedAtMs : undefined,
    signIn: isOAuth
      ? `signed in ${distance(secret.obtainedAtMs, nowMs)}`
      : `by the service account ${secret.clientEmail}`,
    concerns: tokenConcerns(secret, nowMs),
  }
}

const DAY_MS = 86_400_000
const TESTING_LIFE_MS = 7 * DAY_MS
/** From here on somebody should have heard of it. */
const TESTING_WARN_MS = 5 * DAY_MS

/** Tokens of Google Cloud projects whose consent screen is in testing end by themselves. */
export function tokenConcerns(secret: GoogleSecret, nowMs: number): Concern[] {
  if (secret.kind !== 'oauth') return []
  if (secret.refreshExpiresAtMs !== undefined) return [endsByItself(secret.refreshExpiresAtMs - nowMs)]
  const ageMs = nowMs - secret.obtainedAtMs
  // Older than a week and alive: the project is not in testing.
  if (ageMs < TESTING_WARN_MS || ageMs >= TESTING_LIFE_MS) return []
  const text = `The sign-in is ${formatDuration(ageMs)} old. If the project is in testing, it ends in ${formatDuration(TESTING_LIFE_MS - ageMs)}.`
  return [{ code: 'testing-token', text, hint: TESTING_HINT }]
}

function endsByItself(leftMs: number): Concern {
  const text =
    leftMs > 0
      ? `The sign-in ends by itself in ${formatDuration(leftMs)}.`
      : 'The sign-in has ended by itself.'
  return { code: 'testing-token', text, hint: `${TESTING_HINT} Then connect the account again.` }
}
