/**
 * Codes that sign one browser in, once. Whoever can read the token can make one without asking the server, so that
 * neither the token nor anything that lasts stands in an address, in a process list or in a log:
 *
 *   code = time of making . nonce [. user] . HMAC-SHA256(token, time . nonce [. user])
 *
 * Without a user it is the owner's. A server takes each code once, for a quarter of an hour, and none that was made before it started: it does not
 * remember which of those were used.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { OWNER_ID } from '../ledger/accounts.ts'
import { sameSecret } from './sessions.ts'

export const CODE_MS = 15 * 60_000
const NONCE_BYTES = 12
const CODE = /^([0-9a-z]{1,11})\.([\w-]{16})(?:\.([1-9]\d{0,14}))?\.([\w-]{43})$/

export function makeSignInCode(token: string, nowMs: number, userId = OWNER_ID): string {
  const of = userId === OWNER_ID ? '' : `.${userId}`
  const said = `${nowMs.toString(36)}.${randomBytes(NONCE_BYTES).toString('base64url')}${of}`
  return `${said}.${signatureOf(token, said)}`
}

/** The code stands behind the #: browsers send that to nobody. */
export function signInUrl(serverUrl: string, token: string, nowMs: number, userId = OWNER_ID): string {
  return `${serverUrl}/sign-in#${makeSignInCode(token, nowMs, userId)}`
}

export class SignInCodes {
  readonly #token: string
  readonly #clock: Clock
  readonly #startedMs: number
  /** Nonces by the time of their code; only who has the token can add to them. */
  readonly #used = new Map<string, number>()

  constructor({ token, clock }: { token: string; clock: Clock }) {
    this.#token = token
    this.#clock = clock
    this.#startedMs = clock.now()
  }

  /** Which user it signs in; the same code never does so again. */
  take(code: string): number | undefined {
    const [, time = '', nonce = '', user, signature = ''] = CODE.exec(code) ?? []
    const said = user === undefined ? `${time}.${nonce}` : `${time}.${nonce}.${user}`
    if (time === '' || !sameSecret(signature, signatureOf(this.#token, said))) return undefined
    const madeMs = Number.parseInt(time, 36)
    const nowMs = this.#clock.now()
    for (const [used, usedMs] of this.#used) if (nowMs - usedMs > CODE_MS) this.#used.delete(used)
    const isFresh = madeMs >= this.#startedMs && madeMs <= nowMs && nowMs - madeMs <= CODE_MS
    if (!isFresh || this.#used.has(nonce)) return undefined
    this.#used.set(nonce, madeMs)
    return user === undefined ? OWNER_ID : Number(user)
  }
}

function signatureOf(token: string, said: string): string {
  return createHmac('sha256', token).update(`tidemark sign-in code\0${said}`).digest('base64url')
}
