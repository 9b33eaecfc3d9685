/**
 * Signing in with a browser on the same machine: a server on 127.0.0.1, on a port that the system chooses, to which
 * the service sends the browser back with a code.
 *
 * It answers only this machine, only while it waits, and only the request that brings the state that was sent;
 * anything else gets a page that says so and changes nothing. Whoever runs the command has the ledger, and so all that is
 * kept: unlike on the pages of a server, there is nobody whom the one who began could cheat. The browser sees the last page when the sign-in has really
 * worked, not before.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { formatDuration } from '../../base/format.ts'
import type { SignInHints } from '../../cloud/account-service.ts'
import { type Redirect, readRedirect } from '../../cloud/oauth.ts'

export type SignInSteps<T> = {
  state: string
  /** The name by which the browser comes back; the service must have been told of it. 127.0.0.1 if left out. */
  host?: '127.0.0.1' | 'localhost'
  hints: SignInHints
  /** Shows the person where to go, given where the browser will be sent back to. */
  ask: (redirectUri: string) => void
  /** Makes the account of the code. */
  finish: (code: string, redirectUri: string) => Promise<T>
}

const LOOPBACK = '127.0.0.1'

export async function signInByLoopback<T>(steps: SignInSteps<T>, waitMs: number): Promise<T> {
  const server = createServer()
  const redirectUri = `http://${steps.host ?? LOOPBACK}:${await listen(server)}`
  try {
    return await new Promise<T>((resolve, reject) => {
      const cancel = systemClock.timer(waitMs, () => reject(waitedTooLong(waitMs, steps.hints)), {
        keepAlive: true,
      })
      let isTaken = false
      server.on('request', (request, response: ServerResponse) => {
        const redirect = redirectOf(request, redirectUri, steps.state)
        if (redirect.kind === 'strange') return answer(response, PAGES.strange)
        if (isTaken) return answer(response, PAGES.taken)
        isTaken = true
        cancel()
        const work =
          redirect.kind === 'code'
            ? steps.finish(redirect.code, redirectUri)
            : Promise.reject(refusedError(redirect.error, steps.hints))
        work.then(
          (made) => answer(response, PAGES.done, () => resolve(made)),
          (thrown: unknown) => answer(response, PAGES.failed, () => reject(thrown)),
        )
      })
      steps.ask(redirectUri)
    })
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

/** Under another name than its own it is spoken to by a page that has made that name point here. */
function redirectOf({ method, url, headers }: IncomingMessage, redirectUri: string, state: string): Redirect {
  // What stands in a request line need not be an address.
  const asked = URL.parse(url ?? '/', redirectUri)
  const isMeant =
    method === 'GET' && asked?.origin === redirectUri && `http://${headers.host}` === redirectUri
  return isMeant ? readRedirect(asked.searchParams, state) : { kind: 'strange' }
}

export function refusedError(error: string, hints: SignInHints): TidemarkError {
  const denied = error === 'access_denied'
  return new TidemarkError(
    denied ? 'The access was not allowed.' : `The service refused the sign-in (${error}).`,
    { kind: 'auth', code: error, hint: denied ? hints.denied : hints.refused },
  )
}

export function waitedTooLong(waitMs: number, { elsewhere }: Pick<SignInHints, 'elsewhere'>): TidemarkError {
  return new TidemarkError(`Nobody signed in within ${formatDuration(waitMs)}.`, {
    kind: 'auth',
    code: 'sign-in-timeout',
    hint: `Run the command again; --wait 1h waits longer, and ${elsewhere}`,
  })
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, LOOPBACK, () => resolve((server.address() as AddressInfo).port))
  })
}

type Page = { status: number; title: string; text: string }

const PAGES = {
  done: { status: 200, title: 'Connected', text: 'Tidemark has what it needs. You can close this page.' },
  failed: {
    status: 200,
    title: 'That did not work',
    text: 'The terminal says why. You can close this page.',
  },
  taken: {
    status: 200,
    title: 'One moment',
    text: 'This sign-in is already being finished in the terminal.',
  },
  strange: {
    status: 404,
    title: 'Nothing here',
    text: 'This page waits for a sign-in that was started elsewhere.',
  },
} satisfies Record<string, Page>

/** `then` runs when the page is on its way, or the browser is gone: the answer never waits for it. */
function answer(response: ServerResponse, page: Page, then: () => void = () => {}): void {
  response.once('close', then)
  response.writeHead(page.status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    connection: 'close',
  })
  response.end(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tidemark: ${page.title}</title>
<style>body { font: 18px/1.5 system-ui, sans-serif; max-width: 32em; margin: 20vh auto; padding: 0 1em }</style>
<h1>${page.title}</h1><p>${page.text}</p>
</html>
`)
}
