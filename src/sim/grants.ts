/**
 * Who may do what: codes, access tokens and refresh tokens of the simulated sign-in.
 *
 * A code is good once, for ten minutes. An access token ends with its time, with its refresh token, or by
 * revocation; a refresh token ends by revocation, or after its own time (as for apps in testing).
 * Tokens are drawn from the seed, so that a simulator that is started again knows those it gave out first.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { FaultEffect } from './fault-rules.ts'

export type Access = { token: string; address: string; scopes: readonly string[]; expiresAtMs: number }
export type Tokens = { access: Access; refreshToken?: string; refreshExpiresInS?: number }

type Code = {
  address: string
  scopes: readonly string[]
  redirectUri: string
  challenge?: string
  isOffline: boolean
  expiresAtMs: number
  usedFor?: string
}
type Refresh = { address: string; scopes: readonly string[]; expiresAtMs: number }
type AccessEntry = Access & { refreshToken?: string }

/** How long new tokens are good for. */
export type TokenTimes = {
  accessTokenMs: number
  /** Null: refresh tokens never end by themselves. */
  refreshTokenMs: number | null
}

const CODE_MS = 10 * 60_000
/** The oldest are forgotten, which a client sees as expired. */
const TOKENS_MAX = 20_000
const TOKEN_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

export class Grants {
  readonly #clock: Clock
  readonly #random: Random
  readonly #times: TokenTimes
  readonly #codes = new Map<string, Code>()
  readonly #access = new Map<string, AccessEntry>()
  readonly #refresh = new Map<string, Refresh>()

  constructor(options: { clock: Clock; random: Random; times: TokenTimes }) {
    this.#clock = options.clock
    this.#random = options.random
    this.#times = options.times
  }

  issue(input: { address: string; scopes: readonly string[]; isOffline: boolean }): Tokens {
    const { address, scopes } = input
    if (!input.isOffline) return { access: this.#issueAccess({ address, scopes }) }
    const refreshToken = `1//0sim${this.#text(60)}`
    const nowMs = this.#clock.now()
    const expiresAtMs =
      this.#times.refreshTokenMs === null ? Number.POSITIVE_INFINITY : nowMs + this.#times.refreshTokenMs
    remember(this.#refresh, refreshToken, { address, scopes, expiresAtMs })
    const tokens: Tokens = { access: this.#issueAccess({ address, scopes, refreshToken }), refreshToken }
    if (this.#times.refreshTokenMs !== null)
      tokens.refreshExpiresInS = Math.floor(this.#times.refreshTokenMs / 1000)
    return tokens
  }

  issueCode(input: Omit<Code, 'expiresAtMs' | 'usedFor'>): string {
    const code = `4/0sim${this.#text(56)}`
    remember(this.#codes, code, { ...input, expiresAtMs: this.#clock.now() + CODE_MS })
    return code
  }

  /** The tokens, or why there are none. */
  redeem(input: { code: string; redirectUri: string; verifier?: string }): Tokens | string {
    const code = this.#codes.get(input.code)
    if (!code || code.expiresAtMs <= this.#clock.now()) return 'Malformed auth code.'
    if (code.usedFor !== undefined) {
      // Somebody else may have used it first: what it gave is taken back (RFC 6749, 4.1.2).
      this.revoke(code.usedFor)
      return 'Bad Request'
    }
    if (code.redirectUri !== input.redirectUri) return 'redirect_uri_mismatch'
    if (code.challenge !== undefined) {
      if (!input.verifier) return 'Missing code verifier.'
      const digest = createHash('sha256').update(input.verifier).digest('base64url')
      if (digest !== code.challenge) return 'Invalid code verifier.'
    }
    const tokens = this.issue(code)
    code.usedFor = tokens.refreshToken ?? tokens.access.token
    return tokens
  }

  refresh(refreshToken: string): Access | undefined {
    const entry = this.#refresh.get(refreshToken)
    if (!entry || entry.expiresAtMs <= this.#clock.now()) return undefined
    return this.#issueAccess({ address: entry.address, scopes: entry.scopes, refreshToken })
  }

  /** A new pair, as services do it that give a new refresh token every time; the old one may go on or end. */
  rotate(refreshToken: string, { endsOld = false } = {}): Tokens | undefined {
    const entry = this.#refresh.get(refreshToken)
    if (!entry || entry.expiresAtMs <= this.#clock.now()) return undefined
    const tokens = this.issue({ address: entry.address, scopes: entry.scopes, isOffline: true })
    if (endsOld) this.#refresh.delete(refreshToken)
    return tokens
  }

  access(token: string): Access | undefined {
    const entry = this.#access.get(token)
    return entry && entry.expiresAtMs > this.#clock.now() ? entry : undefined
  }

  /** Either of a pair ends both; false when nobody knows it. */
  revoke(token: string): boolean {
    const refreshToken = this.#refresh.has(token) ? token : this.#access.get(token)?.refreshToken
    const known = refreshToken !== undefined || this.#access.has(token)
    this.#access.delete(token)
    if (refreshToken === undefined) return known
    this.#refresh.delete(refreshToken)
    for (const [key, entry] of this.#access) {
      if (entry.refreshToken === refreshToken) this.#access.delete(key)
    }
    return known
  }

  /** Everything the account gave: the user took the app's access away. */
  revokeAccount(address: string): number {
    const ended = this.expireAccess(address)
    for (const [key, entry] of this.#refresh) if (entry.address === address) this.#refresh.delete(key)
    return ended
  }

  /** Refresh tokens stay good. */
  expireAccess(address: string): number {
    let ended = 0
    for (const [key, entry] of this.#access) {
      if (entry.address !== address) continue
      this.#access.delete(key)
      ended += 1
    }
    return ended
  }

  /** What a fault rule does to the tokens of an account; nothing where it is about something else. */
  suffer(address: string, effect: FaultEffect): void {
    if (effect.do === 'expire-access') this.expireAccess(address)
    if (effect.do === 'revoke-tokens') this.revokeAccount(address)
  }

  list(): { access: Access[]; refresh: (Refresh & { token: string })[] } {
    return {
      access: [...this.#access.values()],
      refresh: [...this.#refresh].map(([token, entry]) => ({ token, ...entry })),
    }
  }

  #issueAccess(input: { address: string; scopes: readonly string[]; refreshToken?: string }): Access {
    const token = `ya29.sim${this.#text(80)}`
    const entry: AccessEntry = { token, ...input, expiresAtMs: this.#clock.now() + this.#times.accessTokenMs }
    remember(this.#access, token, entry)
    return entry
  }

  #text(length: number): string {
    let text = ''
    for (let at = 0; at < length; at++) text += TOKEN_CHARACTERS[Math.floor(this.#random() * 64)]
    return text
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.set(key, value)
  if (map.size <= TOKENS_MAX) return
  const [oldest] = map.keys()
  if (oldest !== undefined) map.delete(oldest)
}
