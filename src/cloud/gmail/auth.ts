/**
 * Access to one Gmail account: what is kept secret about it, and access tokens made from that.
 *
 * A token source is `fresh` (has a token that holds for more than a minute), `stale` (the next caller starts
 * a refresh that all others wait for), `held` (a refresh failed a moment ago: callers get that error without
 * another request) or `lost` (the service refused the secret). Invariants:
 * - one refresh at a time, whoever asks; a caller that gives up does not stop it for the others
 * - a rotated refresh token is saved before any token made with it is handed out
 * - once lost, always an auth error, until `reload` brings another secret
 */
import { z } from 'zod'
import type { Clock } from '../../clock.ts'
import { asTidemarkError, TidemarkError } from '../../errors.ts'
import { type Fetch, type OAuthCalls, refreshTokens, serviceAccountTokens, type Tokens } from '../oauth.ts'
import type { TokenSource } from './transport.ts'

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

export type TokenSourceInput = {
  secret: GmailSecret
  /** Keeps the secret after a refresh. */
  save: (secret: GmailSecret) => Promise<void>
  fetch: Fetch
  clock: Clock
  tokenUrl: string
  /** Reads the stored secret again: somebody may have connected the account anew. */
  reload?: () => Promise<GmailSecret>
  /** Told once when the service has refused the secret for good. */
  onLost?: (error: TidemarkError) => Promise<void>
}

const REFRESH_BEFORE_MS = 60_000
/** Workers that all ask at once after a failure must not each make a request. */
const HOLD_MS = 1_000
/** How often a lost source looks whether somebody has connected the account again. */
const RELOAD_MS = 15_000

export function createTokenSource(input: TokenSourceInput): TokenSource {
  return new GmailTokens(input)
}

type Token = { text: string; expiresAtMs: number }
type Held = { error: TidemarkError; untilMs: number }

class GmailTokens implements TokenSource {
  readonly #input: TokenSourceInput
  #secret: GmailSecret
  #token: Token | undefined
  #refreshing: Promise<string> | undefined
  #held: Held | undefined
  #lost: Held | undefined
  /** A rotated refresh token that could not be saved yet. */
  #unsaved = false

  constructor(input: TokenSourceInput) {
    this.#input = input
    this.#secret = input.secret
    this.#token = tokenOf(input.secret)
  }

  async access(signal?: AbortSignal): Promise<string> {
    signal?.throwIfAborted()
    const now = this.#input.clock.now()
    if (!this.#lost && !this.#unsaved && this.#token && now < this.#token.expiresAtMs - REFRESH_BEFORE_MS) {
      return this.#token.text
    }
    this.#refreshing ??= this.#next().finally(() => {
      this.#refreshing = undefined
    })
    return signal ? withSignal(this.#refreshing, signal) : this.#refreshing
  }

  refused(token: string): void {
    if (this.#token?.text === token) this.#token = undefined
  }

  async #next(): Promise<string> {
    if (this.#lost) await this.#lookAgain(this.#lost)
    const now = this.#input.clock.now()
    if (this.#held && now < this.#held.untilMs) return this.#orLastToken(this.#held.error)
    this.#held = undefined
    try {
      if (this.#unsaved) await this.#saveRotated()
      else await this.#refresh()
    } catch (thrown) {
      return this.#failed(asTidemarkError(thrown))
    }
    return this.#token!.text
  }

  async #refresh(): Promise<void> {
    const secret = this.#secret
    const tokens = await fetchTokens(secret, this.#input)
    this.#token = { text: tokens.accessToken, expiresAtMs: tokens.expiresAtMs }
    if (secret.kind !== 'oauth') return
    const rotated = tokens.refreshToken !== undefined && tokens.refreshToken !== secret.refreshToken
    this.#secret = {
      ...secret,
      accessToken: tokens.accessToken,
      expiresAtMs: tokens.expiresAtMs,
      scopes: tokens.scopes?.length ? tokens.scopes : secret.scopes,
      ...(rotated && { refreshToken: tokens.refreshToken!, obtainedAtMs: this.#input.clock.now() }),
      ...(tokens.refreshExpiresAtMs !== undefined && { refreshExpiresAtMs: tokens.refreshExpiresAtMs }),
    }
    this.#unsaved = rotated
    if (rotated) return this.#saveRotated()
    try {
      await this.#input.save(this.#secret)
    } catch {
      // Only a kept access token is lost, and the next process asks for one of its own.
    }
  }

  async #saveRotated(): Promise<void> {
    await this.#input.save(this.#secret)
    this.#unsaved = false
  }

  async #failed(error: TidemarkError): Promise<string> {
    if (error.kind === 'auth') {
      this.#token = undefined
      const isNew = this.#lost === undefined
      this.#lost = { error, untilMs: this.#input.clock.now() }
      await this.#lookAgain(this.#lost, async () => {
        if (isNew) await this.#input.onLost?.(error)
      })
      return this.#next()
    }
    this.#held = { error, untilMs: this.#input.clock.now() + Math.max(HOLD_MS, error.retryAfterMs ?? 0) }
    return this.#orLastToken(error)
  }

  /** Ends with another secret in place, or throws what the service said. */
  async #lookAgain(lost: Held, ifSame: () => Promise<void> = async () => {}): Promise<void> {
    const { clock, reload } = this.#input
    if (clock.now() < lost.untilMs) throw lost.error
    const stored = await reload?.()
    lost.untilMs = clock.now() + RELOAD_MS
    if (!stored || isSameGrant(stored, this.#secret)) {
      await ifSame()
      throw lost.error
    }
    this.#secret = stored
    this.#token = tokenOf(stored)
    this.#lost = undefined
    this.#unsaved = false
  }

  /** In its last minute a token still serves while the service cannot be reached. */
  #orLastToken(error: TidemarkError): string {
    if (this.#token && !this.#unsaved && this.#input.clock.now() < this.#token.expiresAtMs)
      return this.#token.text
    throw error
  }
}

function fetchTokens(secret: GmailSecret, { fetch, clock, tokenUrl }: TokenSourceInput): Promise<Tokens> {
  const calls: OAuthCalls = { fetch, clock, tokenUrl }
  return secret.kind === 'oauth' ? refreshTokens(calls, secret) : serviceAccountTokens(calls, secret)
}

function tokenOf(secret: GmailSecret): Token | undefined {
  if (secret.kind !== 'oauth' || secret.accessToken === undefined) return undefined
  return { text: secret.accessToken, expiresAtMs: secret.expiresAtMs ?? 0 }
}

/** An access token may differ; what tokens are made from does not. */
function isSameGrant(a: GmailSecret, b: GmailSecret): boolean {
  if (a.kind === 'oauth') {
    return (
      b.kind === 'oauth' &&
      a.refreshToken === b.refreshToken &&
      a.clientId === b.clientId &&
      a.clientSecret === b.clientSecret
    )
  }
  if (b.kind === 'oauth' || a.privateKey !== b.privateKey || a.clientEmail !== b.clientEmail) return false
  return a.subject === b.subject && a.scopes.join(' ') === b.scopes.join(' ')
}

function withSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
