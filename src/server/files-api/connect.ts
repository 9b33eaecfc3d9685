/**
 * Connecting a OneDrive account in the browser: the page asks for an address to go to, Microsoft sends the browser
 * back to this server with a code, and the code becomes a sealed secret. The way back carries no cookie (it comes
 * from another site), so the state is all that lets an answer in.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { createPkce, type OAuthClient, type Pkce, readRedirect } from '../../cloud/oauth.ts'
import { type OneDriveAccess, signInByCode, signInUrl } from '../../cloud/onedrive/auth.ts'
import { asTidemarkError } from '../../errors.ts'
import { redactText } from '../../redaction.ts'
import { type SignInPage, signInPage } from '../mail-api/sign-in-page.ts'
import {
  keepOneDriveAccount,
  newToken,
  ONEDRIVE_ACCESS_TEXT,
  readOneDriveProfile,
  requireApp,
} from '../onedrive-account.ts'
import { conflict } from '../problem.ts'
import { defineDownload, defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { looksAt } from '../shared-looks.ts'
import { PendingSignIns } from './pending-sign-ins.ts'

export const CALLBACK_PATH = '/oauth/onedrive/callback'

type Pending = { pkce: Pkce; client: OAuthClient; access: OneDriveAccess; redirectUri: string }

const pendingBy = new WeakMap<Services['files'], PendingSignIns<Pending>>()

function pendingOf({ files, clock }: Services): PendingSignIns<Pending> {
  const known = pendingBy.get(files) ?? new PendingSignIns<Pending>(clock)
  pendingBy.set(files, known)
  return known
}

const connect = defineRoute(
  {
    ...{ method: 'post', path: '/api/files/accounts/connect', tag: 'files', access: 'write' },
    summary: 'Begins a sign-in: the address at which the user allows the access',
    description: '409: no app registration is configured. What was begun waits for ten minutes.',
    errors: [409],
    body: z.strictObject({
      access: z
        .enum(['readonly', 'readwrite'])
        .default('readwrite')
        .describe('What is asked for: to read, or also to change files'),
    }),
    answer: z.object({ url: z.string(), state: z.string() }),
  },
  async ({ body: { access }, origin }, services) => {
    const client = clientOf(services)
    const pkce = createPkce((n) => randomBytes(n))
    const redirectUri = redirectOf(origin)
    pendingOf(services).remember(pkce.state, { pkce, client, access, redirectUri })
    const { auth_url: authUrl } = services.config.onedrive
    const url = signInUrl({ authUrl, clientId: client.clientId, redirectUri, access, pkce })
    return { url, state: pkce.state }
  },
)

/** An app registration for this machine knows `http://localhost`, with any port, and no number of it. */
function redirectOf(origin: string): string {
  const url = new URL(CALLBACK_PATH, origin)
  if (url.hostname === '127.0.0.1' || url.hostname === '[::1]') url.hostname = 'localhost'
  return url.href
}

/** Without one nobody can sign in here, whatever is asked for. */
function clientOf({ config }: Services): OAuthClient {
  try {
    return requireApp(config.onedrive, 'the configuration file')
  } catch (thrown) {
    const { code = 'no-client', hint, message } = asTidemarkError(thrown)
    throw conflict(message, { code, cause: thrown, ...(hint === undefined ? {} : { hint }) })
  }
}

const callback = defineDownload(
  {
    ...{ method: 'get', path: CALLBACK_PATH, tag: 'files', access: 'read', contentType: 'text/html' },
    summary: 'Where Microsoft sends the browser back to after a sign-in',
    description: 'Answers with a page for people: 404 where nobody waits for it, 422 where it did not work.',
    errorPages: [404, 422],
    // Loose: services add parameters as they like.
    query: z.looseObject({
      state: z.string().max(200).optional().describe('That of the sign-in that was begun'),
      code: z.string().max(8_000).optional().describe('What is exchanged for the access'),
      error: z.string().max(200).optional().describe('Why the service refused'),
    }),
  },
  async ({ query: { state = '', code, error } }, services) => {
    const pending = pendingOf(services).take(state)
    if (!pending) return signInPage(STRANGE)
    const answer = new URLSearchParams({
      state,
      ...(code !== undefined && { code }),
      ...(error !== undefined && { error }),
    })
    const redirect = readRedirect(answer, pending.pkce.state)
    if (redirect.kind === 'strange') return signInPage(STRANGE)
    if (redirect.kind === 'refused') return signInPage(refused(redirect.error))
    try {
      return signInPage(await finish(services, pending, redirect.code))
    } catch (thrown) {
      const { kind, message, hint } = asTidemarkError(thrown)
      if (kind === 'bug') throw thrown
      return signInPage({ status: 422, title: 'That did not work', text: redactText(message), hint })
    }
  },
)

const STRANGE: SignInPage = {
  status: 404,
  title: 'Nothing here',
  text: 'No sign-in waits for this answer: it was finished, or it was begun more than ten minutes ago.',
  hint: 'Begin again on the page of settings.',
}

function refused(error: string): SignInPage {
  const isDenied = error === 'access_denied'
  return {
    status: 422,
    title: 'Not connected',
    text: isDenied ? 'The access was not allowed.' : `The service refused the sign-in (${error}).`,
    hint: isDenied
      ? 'Begin again and allow it. An account of work or school may need its administrator for that.'
      : 'Check the app registration at Microsoft: its redirect must be http://localhost, for "Mobile and desktop applications".',
  }
}

async function finish(services: Services, pending: Pending, code: string): Promise<SignInPage> {
  const { accounts, vault, clock, config, ledger, files } = services
  const { client, access, redirectUri, pkce } = pending
  const calls = { fetch: globalThis.fetch, clock, tokenUrl: config.onedrive.token_url }
  const secret = await signInByCode(calls, { ...client, code, verifier: pkce.verifier, redirectUri })
  const profile = await readOneDriveProfile(config.onedrive.api_url, newToken(secret))
  const { name, before } = await keepOneDriveAccount({ accounts, vault }, { profile, secret, access })
  await files.drives.reload()
  looksAt(ledger).forget()
  return {
    status: 200,
    title: before ? 'Connected again' : 'Connected',
    text: `Tidemark may work with the OneDrive of ${name} now (${ONEDRIVE_ACCESS_TEXT[access]}).`,
    hint: before ? undefined : 'Choose a folder for it on the page of settings.',
  }
}

export const connectRoutes = [connect, callback]
