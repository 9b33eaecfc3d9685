/** Access to one Gmail account: what is kept secret about it, and what access tokens are made from. */

import { z } from 'zod'
import { TidemarkError } from '../../base/errors.ts'
import { type AccountTokensInput, openGrantedTokens } from '../account-tokens.ts'
import { type Fetch, type OAuthCalls, refreshTokens, serviceAccountTokens, type Tokens } from '../oauth.ts'
import {
  type Grant,
  GrantedTokens,
  type GrantedTokensInput,
  isSameOAuthGrant,
  keptOAuthToken,
  renewOAuthSecret,
  type TokenSource,
} from '../token-source.ts'

export type { TokenSource }

export const GMAIL_SCOPES = {
  readonly: 'https://www.googleapis.com/auth/gmail.readonly',
  modify: 'https://www.googleapis.com/auth/gmail.modify',
  full: 'https://mail.google.com/',
} as const

export type GmailAccess = keyof typeof GMAIL_SCOPES

/** Each includes those before it. */
const LEVELS: readonly GmailAccess[] = ['readonly', 'modify', 'full']

/** `insert` puts a message back that was deleted. */
export type GmailAction = 'read' | 'unlabel' | 'trash' | 'insert' | 'delete'

const ACCESS_FOR: Record<GmailAction, GmailAccess> = {
  read: 'readonly',
  unlabel: 'modify',
  trash: 'modify',
  insert: 'modify',
  delete: 'full',
}

export function accessFor(action: GmailAction): GmailAccess {
  return ACCESS_FOR[action]
}

export function scopeFor(action: GmailAction): string {
  return GMAIL_SCOPES[accessFor(action)]
}

/** The most that these scopes allow; undefined if they do not even allow reading. */
export function accessOf(scopes: readonly string[]): GmailAccess | undefined {
  return LEVELS.findLast((level) => scopes.includes(GMAIL_SCOPES[level]))
}

export function allows(scopes: readonly string[], action: GmailAction): boolean {
  const access = accessOf(scopes)
  return access !== undefined && LEVELS.indexOf(access) >= LEVELS.indexOf(accessFor(action))
}

const ACCESS_FLAGS: Record<GmailAccess, string> = { readonly: ' --read-only', modify: '', full: ' --full' }

/** Thrown before anything is tried that the account's scopes do not allow. */
export function requireScope(account: string, scopes: readonly string[], action: GmailAction): void {
  if (allows(scopes, action)) return
  const flag = ACCESS_FLAGS[accessFor(action)]
  throw new TidemarkError(`The account ${account} was not given the permission to ${action} messages.`, {
    kind: 'auth',
    code: 'scope-missing',
    hint: `Connect it again with that permission: tidemark account add gmail${flag} --user ${account}`,
  })
}

const scopeList = z.array(z.string().min(1)).min(1)

export const gmailSecretSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('oauth'),
    clientId: z.string().min(1),
    clientSecret: z.string().min(1).optional(),
    refreshToken: z.string().min(1),
    accessToken: z.string().min(1).optional(),
    expiresAtMs: z.number().optional(),
    scopes: scopeList,
    /** When the refresh token was given; and when it ends by itself, where the service has said so. */
    obtainedAtMs: z.number(),
    refreshExpiresAtMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal('service-account'),
    clientEmail: z.string().min(1),
    privateKey: z.string().min(1),
    subject: z.string().min(1),
    scopes: scopeList,
  }),
])

export type GmailSecret = z.output<typeof gmailSecretSchema>

export function parseGmailSecret(text: string): GmailSecret {
  try {
    return gmailSecretSchema.parse(JSON.parse(text))
  } catch {
    // Without its cause, which quotes what it found.
    throw new TidemarkError('The stored secret of the account has a form that this Tidemark does not know.', {
      kind: 'auth',
      code: 'secret-form',
      hint: 'Update Tidemark, or connect the account again: tidemark account add gmail.',
    })
  }
}

export type TokenSourceInput = Omit<GrantedTokensInput<GmailSecret>, 'grant'> & {
  fetch: Fetch
  tokenUrl: string
}

export function createTokenSource(input: TokenSourceInput): TokenSource {
  return new GrantedTokens({ ...input, grant: gmailGrant(input) })
}

export function gmailGrant({ fetch, clock, tokenUrl }: OAuthCalls): Grant<GmailSecret> {
  return {
    ask: (secret) => fetchTokens(secret, { fetch, clock, tokenUrl }),
    keptToken: (secret) => (secret.kind === 'oauth' ? keptOAuthToken(secret) : undefined),
    renew: (secret, tokens, nowMs) =>
      secret.kind === 'oauth' ? renewOAuthSecret(secret, tokens, nowMs) : undefined,
    isSame: isSameGrant,
  }
}

function fetchTokens(secret: GmailSecret, calls: OAuthCalls): Promise<Tokens> {
  return secret.kind === 'oauth' ? refreshTokens(calls, secret) : serviceAccountTokens(calls, secret)
}

function isSameGrant(a: GmailSecret, b: GmailSecret): boolean {
  if (a.kind === 'oauth') return b.kind === 'oauth' && isSameOAuthGrant(a, b)
  if (b.kind === 'oauth' || a.privateKey !== b.privateKey || a.clientEmail !== b.clientEmail) return false
  return a.subject === b.subject && a.scopes.join(' ') === b.scopes.join(' ')
}

/** The token source of an account that the ledger knows. */
export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGrantedTokens({
    ...input,
    grant: gmailGrant(input),
    parse: parseGmailSecret,
    refreshTokenOf: (secret) => (secret.kind === 'oauth' ? secret.refreshToken : undefined),
  })
}
