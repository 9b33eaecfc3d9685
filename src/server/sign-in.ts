/**
 * Signing a page in: with a token, or with a code that `serve`, `tidemark sign-in` and `tidemark users sign-in` print,
 * for a session. The page
 * keeps the session in its own storage, which belongs to this server's port alone, and sends it with every request.
 */
import { z } from 'zod'
import { notFound, ProblemError } from '../app/problem.ts'
import { placed, type Route } from '../app/route.ts'
import { OWNER, type RequestUser } from '../app/user.ts'
import type { Clock } from '../base/clock.ts'
import { OWNER_ID } from '../ledger/accounts.ts'
import type { Users } from '../ledger/users.ts'
import { honoPath } from './app.ts'
import { type App, clientAddress } from './app-env.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { readInput } from './request-input.ts'
import { bearerOf, type Security, WRONG_TOKEN } from './security.ts'
import type { SessionOf } from './sessions.ts'
import { CODE_MS, makeSignInCode, SignInCodes } from './sign-in-code.ts'

const WRONG_MAX = 10
const WRONG_WINDOW_MS = 60_000

const credentials = z
  .object({
    token: z.string().min(1).max(4_096).optional().describe("The server's token, or a user's own"),
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
    answer: z.object({
      session: z.string(),
      user: z.object({ id: z.number(), name: z.string(), role: z.enum(['admin', 'member']) }),
    }),
    errors: [401, 429],
  },
  signOut: {
    ...placed('POST /api/sign-out'),
    tag: 'sign-in',
    access: 'member',
    summary: 'End the session with which this is asked',
    answer: z.object({ signedIn: z.literal(false) }),
  },
  makeAddress: {
    ...placed('POST /api/users/{id}/sign-in'),
    params: z.object({ id: z.coerce.number().int().min(1).describe('The number of the user') }),
    summary: 'An address that signs a user in to a browser, once',
    description: 'Whoever opens it is that user: hand it to nobody else. It works for 15 minutes.',
    answer: z.object({ href: z.string(), validMs: z.number() }),
  },
} as const satisfies Record<string, Route['spec']>

type SignInOptions = { security: Security; clock: Clock; token: string; users: Users }

export function addSignIn(app: App, { security, clock, token: expected, users }: SignInOptions): void {
  const wrong = new AttemptLimit({ clock, max: WRONG_MAX, windowMs: WRONG_WINDOW_MS })
  const codes = new SignInCodes({ token: expected, clock })
  app.post(signInSpecs.signIn.path, async (c) => {
    const { body } = await readInput(c.req.raw, { body: credentials }, {})
    const { token, code } = body as z.output<typeof credentials>
    const of =
      token === undefined ? await byCode(codes.take(code ?? ''), users) : await byToken(security, token)
    if (!of) {
      security.noteWrong(c, 'sign-in')
      // Nobody is locked out: whoever has the right one is let in before anything is counted.
      const waitMs = wrong.take(clientAddress(c))
      throw waitMs > 0 ? tooMany(waitMs) : refused(token === undefined)
    }
    c.header('cache-control', 'no-store')
    const { userId, tokenId, user } = of
    return c.json({ session: security.sessions.start({ userId, tokenId }), user })
  })
  app.post(signInSpecs.signOut.path, (c) => {
    security.sessions.end(bearerOf(c) ?? '')
    c.header('cache-control', 'no-store')
    return c.json({ signedIn: false })
  })
  app.post(honoPath(signInSpecs.makeAddress.path), async (c) => {
    const given = await readInput(c.req.raw, signInSpecs.makeAddress, { id: c.req.param('id') ?? '' })
    const { id } = given.params as { id: number }
    const user = await users.active(id)
    if (!user) throw notFound(`There is no active user #${id}.`)
    await users.note(c.get('identity')!.user, 'sign-in-made', user.name)
    c.header('cache-control', 'no-store')
    return c.json({ href: `/sign-in#${makeSignInCode(expected, clock.now(), id)}`, validMs: CODE_MS })
  })
}

/** Whose the session will be. */
type SignedIn = SessionOf & { user: RequestUser }

async function byCode(userId: number | undefined, users: Users): Promise<SignedIn | undefined> {
  // The owner is always there, also while the database is away.
  if (userId === undefined || userId === OWNER_ID)
    return userId === undefined ? undefined : { userId, user: OWNER }
  const user = await users.active(userId)
  return user && { userId: user.id, user: { id: user.id, name: user.name, role: user.role } }
}

async function byToken(security: Security, token: string): Promise<SignedIn | undefined> {
  const identity = await security.byToken(token)
  return identity && { userId: identity.user.id, tokenId: identity.tokenId, user: identity.user }
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
