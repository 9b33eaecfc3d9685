/**
 * Where a service sends the browser back to after a sign-in. The way back carries no session (it comes from another
 * site), and whoever began may have sent the address to somebody else: what that one allows must not be connected for
 * who began. So nothing is exchanged here. The answer goes on to the page /connected, in the part of an address that is
 * sent to no server, and that page brings it with the session of whoever sits before it: see module.ts.
 */
import { z } from 'zod'
import { isLoopback } from '../../base/loopback.ts'
import type { AccountService } from '../../cloud/account-service.ts'
import { type Pkce, readRedirect } from '../../cloud/oauth.ts'
import { type AnyRoute, download } from '../route.ts'
import type { Services } from '../services.ts'
import { goOnPage, type SignInPage, signInPage } from './sign-in-page.ts'

/** Microsoft's codes are the longest. */
export const CODE_CHARS_MAX = 8_000

/** The page that connects: see web/src/pages/connected.tsx. */
const CONNECTED_PATH = '/connected'

export const NOBODY_WAITS =
  'No sign-in waits for this answer: it was finished, or it was begun more than ten minutes ago.'
export const BEGIN_AGAIN = 'Begin again on the page of settings.'

function callbackPath(service: string): `/oauth/${string}` {
  return `/oauth/${service}/callback`
}

/** A client for this machine may know it by one name alone. */
export function redirectOf({ name, signIn: { host } }: AccountService, origin: string): string {
  const url = new URL(callbackPath(name), origin)
  if (host === 'localhost' && isLoopback(url.hostname)) url.hostname = host
  return url.href
}

/** `origin`: of the page on which it was begun, which has the session; the service may know another name of this server. */
export type Begun = { pkce: Pkce; origin: string }

export function defineSignInCallback<Pending extends Begun>(
  { name, company, signIn: { pageHints } }: AccountService,
  handlers: {
    look: (services: Services, state: string) => Pending | undefined
    drop: (services: Services, state: string) => void
  },
): AnyRoute {
  return download(`GET ${callbackPath(name)}`, {
    tag: 'accounts',
    contentType: 'text/html',
    summary: `Where ${company} sends the browser back to after a sign-in`,
    description:
      'Answers with a page for people, which goes on to the one that connects the account: 404 where nobody waits for it, 422 where it was refused.',
    errorPages: [404, 422],
    // Loose: services add parameters as they like.
    query: z.looseObject({
      state: z.string().max(200).optional().describe('That of the sign-in that was begun'),
      code: z.string().max(CODE_CHARS_MAX).optional().describe('What is exchanged for the access'),
      error: z.string().max(200).optional().describe('Why the service refused'),
    }),
    handle: async ({ query: { state = '', code, error } }, services: Services) => {
      const pending = handlers.look(services, state)
      if (!pending) return signInPage(STRANGE)
      const answer = new URLSearchParams({
        state,
        ...(code !== undefined && { code }),
        ...(error !== undefined && { error }),
      })
      const redirect = readRedirect(answer, pending.pkce.state)
      if (redirect.kind === 'strange') return signInPage(STRANGE)
      if (redirect.kind === 'refused') {
        handlers.drop(services, state)
        return signInPage(refused(redirect.error, pageHints))
      }
      return goOnPage(
        `${pending.origin}${CONNECTED_PATH}#${new URLSearchParams({ state, code: redirect.code })}`,
      )
    },
  })
}

const STRANGE: SignInPage = {
  status: 404,
  title: 'Nothing here',
  text: NOBODY_WAITS,
  hint: BEGIN_AGAIN,
}

function refused(error: string, hints: AccountService['signIn']['pageHints']): SignInPage {
  const isDenied = error === 'access_denied'
  return {
    status: 422,
    title: 'Not connected',
    text: isDenied ? 'The access was not allowed.' : `The service refused the sign-in (${error}).`,
    hint: isDenied ? hints.denied : hints.refused,
  }
}
