/**
 * Access tokens of one account, made from what is kept secret about it.
 *
 * A token source is `fresh` (has a token that holds for more than a minute), `stale` (the next caller starts
 * a refresh that all others wait for), `held` (a refresh failed a moment ago: callers get that error without
 * another request) or `lost` (the service refused the secret). Invariants:
 * - one refresh at a time, whoever asks; a caller that gives up does not stop it for the others
 * - a rotated refresh token is saved before any token made with it is handed out
 * - once lost, always an auth error, until `reload` brings another secret
 */
import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../base/errors.ts'
import type { OAuthClient, Tokens } from './oauth.ts'

export type TokenSource = {
  access(signal?: AbortSignal): Promise<string>
  /** The service refused this token: the next access() must not give it again. */
  refused(token: string): void
}

export type Token = { text: string; expiresAtMs: number }

/** What differs from service to service, for secrets of the form S. */
export type Grant<S> = {
  ask(secret: S): Promise<Tokens>
  /** The access token that was kept with the secret. */
  keptToken(secret: S): Token | undefined
  /** The secret to keep from now on, if any; rotated: what it was before will not work any more. */
  renew(secret: S, tokens: Tokens, nowMs: number): { secret: S; rotated: boolean } | undefined
  /** An access token may differ; what tokens are made from does not. */
  isSame(a: S, b: S): boolean
}

export type GrantedTokensInput<S> = {
  grant: Grant<S>
  secret: S
  clock: Clock
  /** Keeps the secret after a refresh. */
  save: (secret: S) => Promise<void>
  /** Reads the stored secret again: somebody may have connected the account anew. */
  reload?: (() => Promise<S>) | undefined
  /** Told once when the service has refused the secret for good. */
  onLost?: ((error: TidemarkError) => Promise<void>) | undefined
}

/** What consent with a refresh token makes. */
export const oauthSecretSchema = z.object({
  kind: z.literal('oauth'),
  clientId: z.string().min(1),
  clientSecret: z.string().min(1).optional(),
  refreshToken: z.string().min(1),
  accessToken: z.string().min(1).optional(),
  expiresAtMs: z.number().optional(),
  scopes: z.array(z.string().min(1)).min(1),
  /** When the refresh token was given; and when it ends by itself, where the service has said so. */
  obtainedAtMs: z.number(),
  refreshExpiresAtMs: z.number().optional(),
})

export type OAuthSecret = z.output<typeof oauthSecretSchema>

export function newOAuthSecret(
  { clientId, clientSecret }: OAuthClient,
  tokens: Tokens & { refreshToken: string; scopes: readonly string[] },
  obtainedAtMs: number,
): OAuthSecret {
  const { refreshToken, accessToken, expiresAtMs, scopes, refreshExpiresAtMs } = tokens
  return {
    kind: 'oauth',
    clientId,
    ...(clientSecret !== undefined && { clientSecret }),
    refreshToken,
    accessToken,
    expiresAtMs,
    scopes: [...scopes],
    obtainedAtMs,
    ...(refreshExpiresAtMs !== undefined && { refreshExpiresAtMs }),
  }
}

export function parseSecret<S>(schema: z.ZodType<S>, text: string, service: string): S {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    // Without its cause, which quotes what it found.
    throw new TidemarkError('The stored secret of the account has a form that this Tidemark does not know.', {
      kind: 'auth',
      code: 'secret-form',
      hint: `Update Tidemark, or connect the account again: tidemark account add ${service}.`,
    })
  }
}

export function keptOAuthToken(secret: OAuthSecret): Token | undefined {
  if (secret.accessToken === undefined) return undefined
  return { text: secret.accessToken, expiresAtMs: secret.expiresAtMs ?? 0 }
}

export function renewOAuthSecret<S extends OAuthSecret>(
  secret: S,
  tokens: Tokens,
  nowMs: number,
): { secret: S; rotated: boolean } {
  const rotated = tokens.refreshToken !== undefined && tokens.refreshToken !== secret.refreshToken
  return {
    rotated,
    secret: {
      ...secret,
      accessToken: tokens.accessToken,
      expiresAtMs: tokens.expiresAtMs,
      scopes: tokens.scopes?.length ? tokens.scopes : secret.scopes,
      ...(rotated && { refreshToken: tokens.refreshToken!, obtainedAtMs: nowMs }),
      ...(tokens.refreshExpiresAtMs !== undefined && { refreshExpiresAtMs: tokens.refreshExpiresAtMs }),
    },
  }
}

export function isSameOAuthGrant(a: OAuthSecret, b: OAuthSecret): boolean {
  return a.refreshToken === b.refreshToken && a.clientId === b.clientId && a.clientSecret === b.clientSecret
}

const REFRESH_BEFORE_MS = 60_000
/** Workers that all ask at once after a failure must not each make a request. */
const HOLD_MS = 1_000

type Held = { error: TidemarkError; untilMs: number }

export class GrantedTokens<S> implements TokenSource {
  readonly #input: GrantedTokensInput<S>
  #secret: S
  #token: Token | undefined
  #refreshing: Promise<string> | undefined
  #held: Held | undefined
  #lost: TidemarkError | undefined
  /** A rotated refresh token that could not be saved yet. */
  #unsaved = false

  constructor(input: GrantedTokensInput<S>) {
    this.#input = input
    this.#secret = input.secret
    this.#token = input.grant.keptToken(input.secret)
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
    const { grant, clock } = this.#input
    const tokens = await grant.ask(this.#secret)
    this.#token = { text: tokens.accessToken, expiresAtMs: tokens.expiresAtMs }
    const renewed = grant.renew(this.#secret, tokens, clock.now())
    if (!renewed) return
    const { secret, rotated } = renewed
    this.#secret = secret
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
      this.#lost = error
      await this.#lookAgain(error, async () => {
        if (isNew) await this.#input.onLost?.(error)
      })
      return this.#next()
    }
    this.#held = { error, untilMs: this.#input.clock.now() + Math.max(HOLD_MS, error.retryAfterMs ?? 0) }
    return this.#orLastToken(error)
  }

  /**
   * Ends with another secret in place, or throws what the service said. It looks each time: the first call after
   * somebody has connected the account again must not fail once more.
   */
  async #lookAgain(lost: TidemarkError, ifSame: () => Promise<void> = async () => {}): Promise<void> {
    const { reload, grant } = this.#input
    const stored = await reload?.()
    if (!stored || grant.isSame(stored, this.#secret)) {
      await ifSame()
      throw lost
    }
    this.#secret = stored
    this.#token = grant.keptToken(stored)
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

function withSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** An access token that is new, and not kept anywhere yet. */
export function newToken(accessToken: string): TokenSource {
  return { access: async () => accessToken, refused: () => {} }
}
