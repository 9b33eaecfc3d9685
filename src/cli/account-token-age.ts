/** Tokens that end by themselves: those of Google Cloud projects whose consent screen is in testing. */
import type { GmailSecret } from '../cloud/gmail/auth.ts'
import { TESTING_HINT } from '../cloud/oauth-errors.ts'
import { formatDuration } from '../format.ts'

/** Something to tell about an account, and what to do about it. */
export type Concern = { code: string; text: string; hint?: string | undefined }

const DAY_MS = 86_400_000
const TESTING_LIFE_MS = 7 * DAY_MS
/** From here on somebody should have heard of it. */
const TESTING_WARN_MS = 5 * DAY_MS

export function tokenConcerns(secret: GmailSecret, nowMs: number): Concern[] {
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
