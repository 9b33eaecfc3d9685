/**
 * Where a service sends the browser back to after a sign-in. The way back carries no cookie (it comes from another
 * site), so the state is all that lets an answer in; it is good for one answer.
 */
import { z } from 'zod'
import { type OAuthClient, type Pkce, readRedirect } from '../cloud/oauth.ts'
import { asTidemarkError } from '../errors.ts'
import { redactText } from '../redaction.ts'
import { conflict } from './problem.ts'
import { type AnyRoute, defineDownload } from './route.ts'
import type { Services } from './services.ts'
import { type SignInPage, signInPage } from './sign-in-page.ts'

export type SignInCallback<Pending> = {
  path: string
  tag: string
  summary: string
  /** Of the code that is exchanged for the access. */
  codeCharsMax: number
  take: (services: Services, state: string) => Pending | undefined
  /** Exchanges the code and keeps what it gives. */
  finish: (services: Services, pending: Pending, code: string) => Promise<SignInPage>
  /** What to do where the person said no, and where the service did. */
  hints: { denied: string; refused: string }
}

export function defineSignInCallback<Pending extends { pkce: Pkce }>(
  service: SignInCallback<Pending>,
): AnyRoute {
  const { path, tag, summary, take, finish } = service
  return defineDownload(
    {
      ...{ method: 'get', path, tag, access: 'read', contentType: 'text/html', summary },
      description:
        'Answers with a page for people: 404 where nobody waits for it, 422 where it did not work.',
      errorPages: [404, 422],
      // Loose: services add parameters as they like.
      query: z.looseObject({
        state: z.string().max(200).optional().describe('That of the sign-in that was begun'),
        code: z.string().max(service.codeCharsMax).optional().describe('What is exchanged for the access'),
        error: z.string().max(200).optional().describe('Why the service refused'),
      }),
    },
    async ({ query: { state = '', code, error } }, services) => {
      const pending = take(services, state)
      if (!pending) return signInPage(STRANGE)
      const answer = new URLSearchParams({
        state,
        ...(code !== undefined && { code }),
        ...(error !== undefined && { error }),
      })
      const redirect = readRedirect(answer, pending.pkce.state)
      if (redirect.kind === 'strange') return signInPage(STRANGE)
      if (redirect.kind === 'refused') return signInPage(refused(redirect.error, service.hints))
      try {
        return signInPage(await finish(services, pending, redirect.code))
      } catch (thrown) {
        const { kind, message, hint } = asTidemarkError(thrown)
        if (kind === 'bug') throw thrown
        return signInPage({ status: 422, title: 'That did not work', text: redactText(message), hint })
      }
    },
  )
}

/** Without a client nobody can sign in here, whatever is asked for. */
export function clientOrConflict(require: (configFile: string) => OAuthClient): OAuthClient {
  try {
    return require('the configuration file')
  } catch (thrown) {
    const { code = 'no-client', hint, message } = asTidemarkError(thrown)
    throw conflict(message, { code, cause: thrown, ...(hint === undefined ? {} : { hint }) })
  }
}

const STRANGE: SignInPage = {
  status: 404,
  title: 'Nothing here',
  text: 'No sign-in waits for this answer: it was finished, or it was begun more than ten minutes ago.',
  hint: 'Begin again on the page of settings.',
}

function refused(error: string, hints: SignInCallback<unknown>['hints']): SignInPage {
  const isDenied = error === 'access_denied'
  return {
    status: 422,
    title: 'Not connected',
    text: isDenied ? 'The access was not allowed.' : `The service refused the sign-in (${error}).`,
    hint: isDenied ? hints.denied : hints.refused,
  }
}
