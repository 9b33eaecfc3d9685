/**
 * Where a service sends the browser back to after a sign-in. The way back carries no session (it comes from another
 * site), so the state is all that lets an answer in; it is good for one answer.
 */
import { z } from 'zod'
import { asTidemarkError } from '../../base/errors.ts'
import { redactText } from '../../base/redaction.ts'
import type { AccountService } from '../../cloud/account-service.ts'
import { type Pkce, readRedirect } from '../../cloud/oauth.ts'
import { type AnyRoute, download } from '../route.ts'
import type { Services } from '../services.ts'
import { type SignInPage, signInPage } from './sign-in-page.ts'

/** Microsoft's codes are the longest. */
const CODE_CHARS_MAX = 8_000

export function callbackPath(service: string): `/oauth/${string}` {
  return `/oauth/${service}/callback`
}

export function defineSignInCallback<Pending extends { pkce: Pkce }>(
  { name, company, signIn: { pageHints } }: AccountService,
  handlers: {
    take: (services: Services, state: string) => Pending | undefined
    /** Exchanges the code and keeps what it gives. */
    finish: (services: Services, pending: Pending, code: string) => Promise<SignInPage>
  },
): AnyRoute {
  return download(`GET ${callbackPath(name)}`, {
    tag: 'accounts',
    contentType: 'text/html',
    summary: `Where ${company} sends the browser back to after a sign-in`,
    description: 'Answers with a page for people: 404 where nobody waits for it, 422 where it did not work.',
    errorPages: [404, 422],
    // Loose: services add parameters as they like.
    query: z.looseObject({
      state: z.string().max(200).optional().describe('That of the sign-in that was begun'),
      code: z.string().max(CODE_CHARS_MAX).optional().describe('What is exchanged for the access'),
      error: z.string().max(200).optional().describe('Why the service refused'),
    }),
    handle: async ({ query: { state = '', code, error } }, services: Services) => {
      const pending = handlers.take(services, state)
      if (!pending) return signInPage(STRANGE)
      const answer = new URLSearchParams({
        state,
        ...(code !== undefined && { code }),
        ...(error !== undefined && { error }),
      })
      const redirect = readRedirect(answer, pending.pkce.state)
      if (redirect.kind === 'strange') return signInPage(STRANGE)
      if (redirect.kind === 'refused') return signInPage(refused(redirect.error, pageHints))
      try {
        return signInPage(await handlers.finish(services, pending, redirect.code))
      } catch (thrown) {
        const { kind, message, hint } = asTidemarkError(thrown)
        if (kind === 'bug') throw thrown
        return signInPage({ status: 422, title: 'That did not work', text: redactText(message), hint })
      }
    },
  })
}

const STRANGE: SignInPage = {
  status: 404,
  title: 'Nothing here',
  text: 'No sign-in waits for this answer: it was finished, or it was begun more than ten minutes ago.',
  hint: 'Begin again on the page of settings.',
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
