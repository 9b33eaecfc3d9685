/**
 * Signing in on another machine (RFC 8628): the service gives a short code, the person types it into a browser
 * anywhere, and meanwhile we ask at the token endpoint whether it was done.
 */
import { z } from 'zod'
import { sleep } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import {
  clientFields,
  hostOf,
  type OAuthCalls,
  type OAuthClient,
  post,
  requestTokens,
  type Tokens,
} from './oauth.ts'
import { classifyAnswer, jsonOf } from './oauth-errors.ts'

export type DeviceCode = {
  /** For us alone. */
  deviceCode: string
  /** For the person to type. */
  userCode: string
  /** Where to type it. */
  verificationUrl: string
  expiresAtMs: number
  intervalMs: number
}

const INTERVAL_SECONDS_DEFAULT = 5
const INTERVAL_SECONDS_MAX = 60
const EXPIRES_SECONDS_MAX = 3_600
/** What `slow_down` adds, says the RFC. */
const SLOWER_MS = 5_000

const codeSchema = z.object({
  device_code: z.string().min(1).max(8_192),
  user_code: z.string().regex(/^[\w-]{1,32}$/),
  verification_uri: z.httpUrl().or(z.string().regex(/^http:\/\/(?:127\.0\.0\.1|localhost)[:/]/)),
  expires_in: z.coerce.number().positive().max(EXPIRES_SECONDS_MAX).catch(900),
  interval: z.coerce.number().positive().max(INTERVAL_SECONDS_MAX).catch(INTERVAL_SECONDS_DEFAULT),
})

export async function startDeviceCode(
  calls: OAuthCalls & { deviceUrl: string },
  input: { clientId: string; scopes: readonly string[] },
): Promise<DeviceCode> {
  const askedMs = calls.clock.now()
  const fields = { client_id: input.clientId, scope: input.scopes.join(' ') }
  const answer = await post(calls, { url: calls.deviceUrl, fields })
  if (answer.status !== 200) {
    throw classifyAnswer(answer, { sent: [], grant: 'device_code', hints: calls.hints })
  }
  const parsed = codeSchema.safeParse(jsonOf(answer.text))
  if (!parsed.success) {
    throw new TidemarkError(`${hostOf(calls.deviceUrl)} did not answer with a code.`, {
      kind: 'transient',
      code: 'oauth-answer',
    })
  }
  const { device_code, user_code, verification_uri, expires_in, interval } = parsed.data
  return {
    deviceCode: device_code,
    userCode: user_code,
    verificationUrl: verification_uri,
    expiresAtMs: askedMs + expires_in * 1_000,
    intervalMs: interval * 1_000,
  }
}

/** Waits until the person has signed in, has refused, or the code has ended. */
export async function awaitDeviceCode(
  calls: OAuthCalls,
  client: OAuthClient,
  code: DeviceCode,
): Promise<Tokens> {
  const { clock, signal } = calls
  let waitMs = code.intervalMs
  while (clock.now() < code.expiresAtMs) {
    await sleep(clock, waitMs, signal)
    try {
      return await requestTokens(calls, {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        device_code: code.deviceCode,
        ...clientFields(client),
      })
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error
      // A failure of the network ends nothing: the code is still good.
      if (error.kind !== 'transient' && error.kind !== 'throttled') throw error
      if (error.kind === 'throttled') waitMs = Math.max(waitMs + SLOWER_MS, error.retryAfterMs ?? 0)
    }
  }
  throw new TidemarkError('Nobody has signed in with the code in time.', {
    kind: 'auth',
    code: 'expired_token',
    hint: 'Start again, and type the code while it is valid.',
  })
}
