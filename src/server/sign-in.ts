/** Signing in with the token gives a cookie, so that a page needs to know neither. */
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { z } from 'zod'
import type { Clock } from '../clock.ts'
import { type App, type AppEnv, clientAddress } from './app-env.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { ProblemError } from './problem.ts'
import { readInput } from './request-input.ts'
import type { Route } from './route.ts'
import { SESSION_COOKIE, type Security } from './security.ts'

const TRIES_MAX = 10
const TRIES_WINDOW_MS = 60_000
const COOKIE_S = 30 * 86_400

export const sessionSchema = z.object({
  required: z.boolean().describe('Whether there is anything to sign in to'),
  signedIn: z.boolean(),
})
export type SessionView = z.output<typeof sessionSchema>

const credentials = z.object({ token: z.string().min(1).max(4_096).describe("The server's token") })
const about = { tag: 'sign-in', answer: sessionSchema } as const

export const signInSpecs = {
  session: {
    ...{ ...about, method: 'get', path: '/api/session', access: 'read' },
    summary: 'Whether a token is needed and given',
  },
  signIn: {
    ...{ ...about, method: 'post', path: '/api/sign-in', access: 'write', body: credentials },
    summary: 'Exchange the token for a cookie',
    description:
      'A page then needs to keep no secret. Whoever tries wrong tokens too often has to wait, also with the right one.',
    errors: [401, 429],
  },
  signOut: {
    ...{ ...about, method: 'post', path: '/api/sign-out', access: 'write' },
    summary: 'End the session of the cookie',
  },
} as const satisfies Record<string, Route['spec']>

export function addSignIn(app: App, { security, clock }: { security: Security; clock: Clock }): void {
  const tries = new AttemptLimit({ clock, max: TRIES_MAX, windowMs: TRIES_WINDOW_MS })
  const answer = (c: Context<AppEnv>, view: SessionView): Response => {
    c.header('cache-control', 'no-store')
    return c.json(view)
  }
  app.get(signInSpecs.session.path, (c) =>
    answer(c, { required: security.required, signedIn: security.identify(c) !== undefined }),
  )
  app.post(signInSpecs.signIn.path, async (c) => {
    if (!security.required) return answer(c, { required: false, signedIn: true })
    const waitMs = tries.take(clientAddress(c))
    if (waitMs > 0) throw tooMany(waitMs)
    const input = await readInput(c.req.raw, { body: credentials }, {})
    const { token } = input.body as z.output<typeof credentials>
    if (!security.isToken(token)) {
      throw new ProblemError(401, 'The token is not the right one.', { code: 'sign-in' })
    }
    tries.forget(clientAddress(c))
    endSession(c, security)
    setCookie(c, SESSION_COOKIE, security.sessions.start(), { ...cookieOf(c), maxAge: COOKIE_S })
    return answer(c, { required: true, signedIn: true })
  })
  app.post(signInSpecs.signOut.path, (c) => {
    endSession(c, security)
    deleteCookie(c, SESSION_COOKIE, cookieOf(c))
    return answer(c, { required: security.required, signedIn: !security.required })
  })
}

function endSession(c: Context<AppEnv>, security: Security): void {
  const old = getCookie(c, SESSION_COOKIE)
  if (old) security.sessions.end(old)
}

/** What something before the server says about https can only make the cookie stricter. */
function cookieOf(c: Context<AppEnv>) {
  const forwarded = c.req.header('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
  const secure = new URL(c.req.url).protocol === 'https:' || forwarded === 'https'
  return { path: '/', httpOnly: true, sameSite: 'Strict', secure } as const
}

function tooMany(waitMs: number): ProblemError {
  const waitS = Math.ceil(waitMs / 1_000)
  return new ProblemError(429, `Too many tries to sign in. Wait ${waitS} s, then try again.`, {
    code: 'too-many-tries',
    headers: { 'retry-after': String(waitS) },
  })
}
