/**
 * Connecting a OneDrive account in the browser: the page asks for an address to go to, Microsoft sends the browser
 * back to this server with a code, and the code becomes a sealed secret. The way back carries no cookie (it comes
 * from another site), so the state is all that lets an answer in.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { createPkce, type OAuthClient, type Pkce } from '../../cloud/oauth.ts'
import { type OneDriveAccess, signInByCode, signInUrl } from '../../cloud/onedrive/auth.ts'
import { resumeSignedInDrives } from '../file-work.ts'
import {
  BROWSER_REDIRECT,
  CALLBACK_PATH,
  keepOneDriveAccount,
  newToken,
  ONEDRIVE_ACCESS_TEXT,
  readOneDriveProfile,
  requireApp,
} from '../onedrive-account.ts'
import { PendingSignIns } from '../pending-sign-ins.ts'
import { defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { looksAt } from '../shared-looks.ts'
import { clientOrConflict, defineSignInCallback } from '../sign-in-callback.ts'
import type { SignInPage } from '../sign-in-page.ts'

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
    const client = clientOrConflict((file) => requireApp(services.config.onedrive, file))
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

const callback = defineSignInCallback<Pending>({
  ...{ path: CALLBACK_PATH, tag: 'files', codeCharsMax: 8_000 },
  summary: 'Where Microsoft sends the browser back to after a sign-in',
  take: (services, state) => pendingOf(services).take(state),
  finish,
  hints: {
    denied: 'Begin again and allow it. An account of work or school may need its administrator for that.',
    refused: `Check the app registration at Microsoft: under "Mobile and desktop applications" it must have the redirect ${BROWSER_REDIRECT}, or that of the name under which you reach this server.`,
  },
})

async function finish(services: Services, pending: Pending, code: string): Promise<SignInPage> {
  const { accounts, vault, clock, config, ledger, files } = services
  const { client, access, redirectUri, pkce } = pending
  const calls = { fetch: globalThis.fetch, clock, tokenUrl: config.onedrive.token_url }
  const secret = await signInByCode(calls, { ...client, code, verifier: pkce.verifier, redirectUri })
  const profile = await readOneDriveProfile(config.onedrive.api_url, newToken(secret))
  const { name, before } = await keepOneDriveAccount({ accounts, vault }, { profile, secret, access })
  await files.drives.reload()
  await resumeSignedInDrives(services, files.drives.names())
  looksAt(ledger).forget()
  return {
    status: 200,
    title: before ? 'Connected again' : 'Connected',
    text: `Tidemark may work with the OneDrive of ${name} now (${ONEDRIVE_ACCESS_TEXT[access]}).`,
    hint: before ? undefined : 'Choose a folder for it on the page of settings.',
  }
}

export const connectRoutes = [connect, callback]
