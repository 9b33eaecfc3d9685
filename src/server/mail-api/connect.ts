/**
 * Connecting an account in the browser: the page asks for an address to go to, the service sends the browser back
 * to this server with a code, and the code becomes a sealed secret.
 *
 * A sign-in that was begun is known by its state, which only who began it has. It is there for ten minutes, for one
 * answer, in the process that began it. The way back carries no cookie (it comes from another site), so the state is
 * all that lets an answer in.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { GMAIL_SCOPES, type GmailAccess } from '../../cloud/gmail/auth.ts'
import {
  authorizationUrl,
  createPkce,
  exchangeCode,
  type OAuthClient,
  type Pkce,
  readRedirect,
} from '../../cloud/oauth.ts'
import { asTidemarkError } from '../../errors.ts'
import { formatCount } from '../../format.ts'
import { redactText } from '../../redaction.ts'
import { startAccounts } from '../account-work.ts'
import { ACCESS_TEXT, keepGmailAccount, oauthSecret, readProfile, requireClient } from '../gmail-account.ts'
import { conflict } from '../problem.ts'
import { defineDownload, defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { type SignInPage, signInPage } from './sign-in-page.ts'

export const CALLBACK_PATH = '/oauth/gmail/callback'
const KEPT_MS = 600_000
const PENDING_MAX = 50

type Pending = {
  pkce: Pkce
  client: OAuthClient
  access: GmailAccess
  choices: { spam?: boolean; trash?: boolean }
  redirectUri: string
  begunMs: number
}

/** Oldest first. */
const pendingBy = new WeakMap<Services['mail'], Map<string, Pending>>()

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
    const { config, clock } = services
    const client = clientOf(services)
    const pkce = createPkce((n) => randomBytes(n))
    const { access, spam, trash } = body
    const choices = { ...(spam !== undefined && { spam }), ...(trash !== undefined && { trash }) }
    const redirectUri = `${origin}${CALLBACK_PATH}`
    remember(services, { pkce, client, access, choices, redirectUri, begunMs: clock.monotonicMs() })
    const url = authorizationUrl({
      ...{ authUrl: config.gmail.auth_url, clientId: client.clientId, redirectUri, pkce },
      scopes: [GMAIL_SCOPES[access]],
      // `consent` brings a refresh token also to who has allowed this client before.
      extra: { access_type: 'offline', prompt: 'consent' },
    })
    return { url, state: pkce.state }
  },
)

/** Without one nobody can sign in here, whatever is asked for. */
function clientOf({ config }: Services): OAuthClient {
  try {
    return requireClient(config.gmail, 'the configuration file')
  } catch (thrown) {
    const { code = 'no-client', hint, message } = asTidemarkError(thrown)
    throw conflict(message, { code, cause: thrown, ...(hint === undefined ? {} : { hint }) })
  }
}

const callback = defineDownload(
  {
    ...{ method: 'get', path: CALLBACK_PATH, tag: 'mail', access: 'read', contentType: 'text/html' },
    summary: 'Where the service sends the browser back to after a sign-in',
    description: 'Answers with a page for people: 404 where nobody waits for it, 422 where it did not work.',
    errorPages: [404, 422],
    // Loose: services add parameters as they like.
    query: z.looseObject({
      state: z.string().max(200).optional().describe('That of the sign-in that was begun'),
      code: z.string().max(4_000).optional().describe('What is exchanged for the access'),
      error: z.string().max(200).optional().describe('Why the service refused'),
    }),
  },
  async ({ query: { state, code, error } }, services) => {
    const pending = take(services, state ?? '')
    if (!pending) return signInPage(STRANGE)
    const answer = new URLSearchParams({
      state: state ?? '',
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
      ? 'Begin again and allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.'
      : 'Check the OAuth client in the Google Cloud console: it must allow the address of this server.',
  }
}

async function finish(services: Services, pending: Pending, code: string): Promise<SignInPage> {
  const { accounts, vault, clock, config } = services
  const { client, access, redirectUri, choices } = pending
  const calls = { fetch: globalThis.fetch, clock, tokenUrl: config.gmail.token_url }
  const tokens = await exchangeCode(calls, { ...client, code, verifier: pending.pkce.verifier, redirectUri })
  const secret = oauthSecret(tokens, client, { access, nowMs: clock.now() })
  const { address, messages } = await readProfile(config.gmail.api_url, tokens.accessToken)
  const { before } = await keepGmailAccount({ accounts, vault }, { address, secret, choices })
  await startAccounts(services)
  const much = messages === undefined ? '' : `, ${formatCount(messages)} messages`
  return {
    status: 200,
    title: before ? 'Connected again' : 'Connected',
    text: `Tidemark works for ${address} now (${ACCESS_TEXT[access]}${much}).`,
  }
}

function pendingOf({ mail }: Services): Map<string, Pending> {
  const known = pendingBy.get(mail) ?? new Map<string, Pending>()
  pendingBy.set(mail, known)
  return known
}

function remember(services: Services, pending: Pending): void {
  const all = pendingOf(services)
  for (const [state, { begunMs }] of all) {
    if (all.size >= PENDING_MAX || isOver(services, begunMs)) all.delete(state)
  }
  all.set(pending.pkce.state, pending)
}

/** For one answer: whoever comes second finds nothing. */
function take(services: Services, state: string): Pending | undefined {
  const all = pendingOf(services)
  const pending = all.get(state)
  all.delete(state)
  return pending && !isOver(services, pending.begunMs) ? pending : undefined
}

function isOver({ clock }: Services, begunMs: number): boolean {
  return clock.monotonicMs() - begunMs > KEPT_MS
}

export const connectRoutes = [connect, callback]
