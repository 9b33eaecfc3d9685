/**
 * Signing a page in: with the token, or with a code that `serve` and `tidemark sign-in` print, for a session. The page
 * keeps the session in its own storage, which belongs to this server's port alone, and sends it with every request.
 */
import { z } from 'zod'
import { ProblemError } from '../app/problem.ts'
import { placed, type Route } from '../app/route.ts'
import type { Clock } from '../base/clock.ts'
import { type App, clientAddress } from './app-env.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { readInput } from './request-input.ts'
import { bearerOf, type Security, WRONG_TOKEN } from './security.ts'
import { SignInCodes } from './sign-in-code.ts'

const WRONG_MAX = 10
const WRONG_WINDOW_MS = 60_000

const credentials = z
  .object({
    token: z.string().min(1).max(4_096).optional().describe("The server's token"),
    code: z.string().min(1).max(200).optional().describe('From an address that `tidemark sign-in` prints'),
  })
  .refine(({ token, code }) => (token === undefined) !== (code === undefined), 'give a token or a code')

export const signInSpecs = {
  signIn: {
    ...placed('POST /api/sign-in'),
    body: credentials,
    summary: 'Exchange the token, or a code, for a session',
    description:
      'The session is sent as the token is: `Authorization: Bearer SESSION`. A code works once. After many wrong ' +
      'tries the wrong ones are answered with 429; the right token always works.',
    answer: z.object({ session: z.string() }),
    errors: [401, 429],
  },
  signOut: {
    ...placed('POST /api/sign-out'),
    tag: 'sign-in',
    summary: 'End the session with which this is asked',
    answer: z.object({ signedIn: z.literal(false) }),
  },
} as const satisfies Record<string, Route['spec']>

type SignInOptions = { security: Security; clock: Clock; token: string }

export function addSignIn(app: App, { security, clock, token: expected }: SignInOptions): void {
  const wrong = new AttemptLimit({ clock, max: WRONG_MAX, windowMs: WRONG_WINDOW_MS })
  const codes = new SignInCodes({ token: expected, clock })
  app.post(signInSpecs.signIn.path, async (c) => {
    const { body } = await readInput(c.req.raw, { body: credentials }, {})
    const { token, code } = body as z.output<typeof credentials>
    const isRight = token === undefined ? codes.take(code ?? '') : security.isToken(token)
    if (!isRight) {
      security.noteWrong(c, 'sign-in')
      // Nobody is locked out: whoever has the right one is let in before anything is counted.
      const waitMs = wrong.take(clientAddress(c))
      throw waitMs > 0 ? tooMany(waitMs) : refused(token === undefined)
    }
    c.header('cache-control', 'no-store')
    return c.json({ session: security.sessions.start() })
  })
  app.post(signInSpecs.signOut.path, (c) => {
    security.sessions.end(bearerOf(c) ?? '')
    c.header('cache-control', 'no-store')
    return c.json({ signedIn: false })
  })
}

function refused(isCode: boolean): ProblemError {
  if (!isCode) return new ProblemError(401, WRONG_TOKEN, { code: 'sign-in' })
  return new ProblemError(401, 'This address has been used, or is too old.', {
    code: 'sign-in-code',
    hint: 'Print another one with: tidemark sign-in',
  })
}

function tooMany(waitMs: number): ProblemError {
  const waitS = Math.ceil(waitMs / 1_000)
  return new ProblemError(429, `Too many wrong tries to sign in. Wait ${waitS} s, then try again.`, {
    code: 'too-many-tries',
    headers: { 'retry-after': String(waitS) },
  })
}
