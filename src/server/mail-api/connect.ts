/**
 * Connecting an account in the browser: the page asks for an address to go to, the service sends the browser back
 * to this server with a code, and the code becomes a sealed secret.
 * See sign-in-callback.ts and pending-sign-ins.ts for what lets an answer in.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { GMAIL_SCOPES, type GmailAccess } from '../../cloud/gmail/auth.ts'
import { authorizationUrl, createPkce, exchangeCode, type OAuthClient, type Pkce } from '../../cloud/oauth.ts'
import { formatCount } from '../../format.ts'
import { startAccounts } from '../account-work.ts'
import { ACCESS_TEXT, keepGmailAccount, oauthSecret, readProfile, requireClient } from '../gmail-account.ts'
import { PendingSignIns } from '../pending-sign-ins.ts'
import { defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { looksAt } from '../shared-looks.ts'
import { clientOrConflict, defineSignInCallback } from '../sign-in-callback.ts'
import type { SignInPage } from '../sign-in-page.ts'

export const CALLBACK_PATH = '/oauth/gmail/callback'

type Pending = {
  pkce: Pkce
  client: OAuthClient
  access: GmailAccess
  choices: { spam?: boolean; trash?: boolean }
  redirectUri: string
}

const pendingBy = new WeakMap<Services['mail'], PendingSignIns<Pending>>()

const connect = defineRoute(
  {
    ...{ method: 'post', path: '/api/mail/accounts/connect', tag: 'mail', access: 'write' },
    summary: 'Begins a sign-in: the address at which the user allows the access',
    body: z.strictObject({
      access: z
        .enum(['readonly', 'modify', 'full'])
        .describe('What is asked for: to read; also to label and trash; also to delete for good'),
      spam: z.boolean().optional().describe('Whether spam is kept too'),
      trash: z.boolean().optional().describe('Whether the trash is kept too'),
    }),
    description: '409: no OAuth client is configured. What was begun waits for ten minutes.',
    errors: [409],
    answer: z.object({ url: z.string(), state: z.string() }),
  },
  async ({ body, origin }, services) => {
    const { config } = services
    const client = clientOrConflict((file) => requireClient(config.gmail, file))
    const pkce = createPkce((n) => randomBytes(n))
    const { access, spam, trash } = body
    const choices = { ...(spam !== undefined && { spam }), ...(trash !== undefined && { trash }) }
    const redirectUri = `${origin}${CALLBACK_PATH}`
    pendingOf(services).remember(pkce.state, { pkce, client, access, choices, redirectUri })
    const url = authorizationUrl({
      ...{ authUrl: config.gmail.auth_url, clientId: client.clientId, redirectUri, pkce },
      scopes: [GMAIL_SCOPES[access]],
      // `consent` brings a refresh token also to who has allowed this client before.
      extra: { access_type: 'offline', prompt: 'consent' },
    })
    return { url, state: pkce.state }
  },
)

const callback = defineSignInCallback<Pending>({
  ...{ path: CALLBACK_PATH, tag: 'mail', codeCharsMax: 4_000 },
  summary: 'Where the service sends the browser back to after a sign-in',
  take: (services, state) => pendingOf(services).take(state),
  finish,
  hints: {
    denied:
      'Begin again and allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.',
    refused: 'Check the OAuth client in the Google Cloud console: it must allow the address of this server.',
  },
})

async function finish(services: Services, pending: Pending, code: string): Promise<SignInPage> {
  const { accounts, vault, clock, config } = services
  const { client, access, redirectUri, choices } = pending
  const calls = { fetch: globalThis.fetch, clock, tokenUrl: config.gmail.token_url }
  const tokens = await exchangeCode(calls, { ...client, code, verifier: pending.pkce.verifier, redirectUri })
  const secret = oauthSecret(tokens, client, { access, nowMs: clock.now() })
  const { address, messages } = await readProfile(config.gmail.api_url, tokens.accessToken)
  const { before } = await keepGmailAccount({ accounts, vault }, { address, secret, choices })
  await startAccounts(services)
  looksAt(services.ledger).forget()
  const much = messages === undefined ? '' : `, ${formatCount(messages)} messages`
  return {
    status: 200,
    title: before ? 'Connected again' : 'Connected',
    text: `Tidemark works for ${address} now (${ACCESS_TEXT[access]}${much}).`,
  }
}

function pendingOf({ mail, clock }: Services): PendingSignIns<Pending> {
  const known = pendingBy.get(mail) ?? new PendingSignIns<Pending>(clock)
  pendingBy.set(mail, known)
  return known
}

export const connectRoutes = [connect, callback]
