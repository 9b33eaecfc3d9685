/** Gmail accounts: the OAuth client, whose account a token is of, what a secret allows, and how long it lasts. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import type { Config } from '../../config/settings.ts'
import type { AccountService, NewSecret, ServiceCalls } from '../account-service.ts'
import { ADDRESS, openSecret, type StoredAccount } from '../account-store.ts'
import { googleNotes, googleSecretOf, lookAtGoogleSecret, readServiceAccount } from '../google/sign-in.ts'
import {
  authorizationUrl,
  exchangeCode,
  type Fetch,
  type OAuthCalls,
  type OAuthClient,
  readText,
  revokeToken,
  serviceAccountTokens,
} from '../oauth.ts'
import { TESTING_HINT } from '../oauth-errors.ts'
import {
  accessOf,
  allows,
  GMAIL_SCOPES,
  type GmailAccess,
  type GmailAction,
  type GmailSecret,
  openAccountTokens,
  parseGmailSecret,
} from './auth.ts'
import { classify, timedOut, unreachable } from './errors.ts'

export const GMAIL = 'gmail'

export const gmailService: AccountService<GmailSecret> = {
  name: GMAIL,
  title: 'Gmail',
  company: 'Google',
  levels: [
    {
      level: 'readonly',
      text: 'read only',
      may: 'May read only',
      flag: 'readOnly',
      choice: { title: 'Read only', hint: 'Enough to copy, search and read.' },
    },
    {
      level: 'modify',
      text: 'read, label and trash',
      may: 'May read, move and trash',
      choice: {
        title: 'Read and move',
        hint: 'Also to take old mail out of the inbox, or to the trash.',
      },
    },
    {
      level: 'full',
      text: 'everything, also deleting permanently',
      flag: 'full',
      may: 'May do everything, also delete for good',
      choice: { title: 'Everything', hint: 'Also to delete for good, which frees space.' },
    },
  ],
  defaults: { command: 'modify', page: 'readonly' },
  keepsLevel: true,
  needs: 'the permission to read mail',
  endHint: TESTING_HINT,
  unknownDetails: { messages: null },

  signIn: {
    host: '127.0.0.1',
    hints: {
      denied:
        'Run the command again and allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.',
      refused: 'Check the OAuth client in the Google Cloud console; it must be of the type "Desktop app".',
      elsewhere: '--paste serves when the browser is on another machine.',
    },
    pageHints: {
      denied:
        'Begin again and allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.',
      refused:
        'Check the OAuth client in the Google Cloud console: it must allow the address of this server.',
    },
    refusals: {
      device: {
        text: 'Google gives no device codes for mail.',
        hint: 'On a machine without a browser use --paste.',
      },
    },
    client: ({ gmail }, configFile) => requireClient(gmail, configFile),
    url: ({ gmail }, { client: { clientId }, level, redirectUri, pkce, user }) =>
      authorizationUrl({
        authUrl: gmail.auth_url,
        clientId,
        redirectUri,
        pkce,
        scopes: [scopeOf(level)],
        // `consent` brings a refresh token also to who has allowed this client before.
        extra: { access_type: 'offline', prompt: 'consent', ...(user && { login_hint: user }) },
      }),
    async byCode(calls, { client, level, ...answer }) {
      const tokens = await exchangeCode(oauthCalls(calls), { ...client, ...answer })
      const secret = googleSecretOf(tokens, client, {
        scope: scopeOf(level),
        isEnough: (scopes) => allows(scopes, LEVEL_ACTION[level as GmailAccess]),
        title: 'Gmail',
        nowMs: calls.clock.now(),
      })
      return { secret, accessToken: tokens.accessToken, notes: googleNotes(secret) }
    },
    byKey(file) {
      const key = readServiceAccount(file)
      return async (calls, { user: subject, level }): Promise<NewSecret<GmailSecret>> => {
        const secret = { kind: 'service-account' as const, ...key, subject, scopes: [scopeOf(level)] }
        const { accessToken } = await serviceAccountTokens(oauthCalls(calls), secret)
        return { secret, accessToken, notes: googleNotes(secret) }
      }
    },
  },

  called: (name) => ({ inText: name, asTitle: name }),
  clientOf: ({ gmail }) => ({ key: 'gmail.client_id', id: gmail.client_id }),
  parse: parseGmailSecret,
  levelOf: ({ scopes }) => accessOf(scopes),
  // What a sign-in brings is looked at when it is made a secret; a key has what its domain delegates.
  requireLevel: () => {},

  look: lookAtGoogleSecret,

  tokens: (input, calls) => openAccountTokens({ ...input, ...oauthCalls(calls) }),

  async profile(calls, tokens) {
    const accessToken = await tokens.access()
    const { address, messages } = await readProfile(calls, {
      apiUrl: calls.config.gmail.api_url,
      accessToken,
    })
    return {
      name: address,
      facts: messages === undefined ? [] : [`${formatCount(messages)} messages`],
      details: { messages: messages ?? null },
      brief: {},
    }
  },

  settingsOf: () => ({}),
  withdrawal: ({ name }) => `https://myaccount.google.com/permissions, signed in as ${name}`,

  async revoke(secret, { config, fetch, clock }) {
    if (secret.kind !== 'oauth') return { outcome: 'none' }
    await revokeToken({ fetch, clock, revokeUrl: config.gmail.revoke_url }, secret.refreshToken)
    return { outcome: 'done' }
  },

  quota: ({ gmail }) => quotaOf(gmail),
}

function oauthCalls({ config, fetch, clock, signal }: ServiceCalls): OAuthCalls {
  return { fetch, clock, signal, tokenUrl: config.gmail.token_url }
}

function scopeOf(level: string): string {
  return GMAIL_SCOPES[level as GmailAccess]
}

const PROFILE_TIMEOUT_MS = 30_000

/** The OAuth client, or the way to one. */
function requireClient(gmail: Config['gmail'], configFile: string): OAuthClient {
  if (gmail.client_id !== undefined) {
    return { clientId: gmail.client_id, clientSecret: gmail.client_secret }
  }
  throw new UsageError('There is no OAuth client to sign in with: gmail.client_id is not set.', {
    code: 'no-client',
    hint: [
      'Google lets a program in only as a client of a project of your own. Once, in five minutes:',
      '1. Make a project at https://console.cloud.google.com/projectcreate',
      '2. Enable the Gmail API: https://console.cloud.google.com/apis/library/gmail.googleapis.com',
      '3. Under "Google Auth Platform" name the app; as audience choose "External", then "Publish app"',
      '   (left in "Testing", it must be connected again every 7 days)',
      '4. Under "Clients" create one of the type "Desktop app"',
      `5. Write its id and secret into ${configFile}:`,
      '   [gmail]',
      '   client_id = "….apps.googleusercontent.com"',
      '   client_secret = "…"',
    ].join('\n'),
  })
}

type GmailProfile = { address: string; messages: number | undefined }

const profileSchema = z.object({
  emailAddress: z.string().regex(ADDRESS),
  messagesTotal: z.number().optional().catch(undefined),
})

/** Whose account it is: the first call with a new token. */
export async function readProfile(
  { fetch, clock }: { fetch: Fetch; clock: Clock },
  { apiUrl, accessToken }: { apiUrl: string; accessToken: string },
): Promise<GmailProfile> {
  const late = new AbortController()
  const cancel = clock.timer(PROFILE_TIMEOUT_MS, () => late.abort(new DOMException('late', 'TimeoutError')))
  let response: Response
  let body: string
  try {
    response = await fetch(`${apiUrl.replace(/\/+$/, '')}/gmail/v1/users/me/profile`, {
      headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json' },
      redirect: 'error',
      signal: late.signal,
    })
    body = await readText(response)
  } catch (thrown) {
    throw (thrown as Error).name === 'TimeoutError' ? timedOut(PROFILE_TIMEOUT_MS) : unreachable(thrown)
  } finally {
    cancel()
  }
  if (response.status !== 200) {
    throw classify({ status: response.status, body, headers: response.headers, nowMs: clock.now() })
  }
  const parsed = profileSchema.safeParse(jsonOf(body))
  if (!parsed.success) {
    throw new TidemarkError('Gmail did not say whose account this is.', {
      kind: 'transient',
      code: 'not-gmail',
    })
  }
  return { address: parsed.data.emailAddress.toLowerCase(), messages: parsed.data.messagesTotal }
}

export async function readSecret(input: StoredAccount): Promise<GmailSecret> {
  return parseGmailSecret(await openSecret(input))
}

const LEVEL_ACTION: Record<GmailAccess, GmailAction> = { readonly: 'read', modify: 'trash', full: 'delete' }

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const UNITS_NEW = 6_000
const UNITS_OLD = 15_000
const PRICE_NEW = 20

/** Google does not tell: what is configured is compared with what is documented. */
function quotaOf(gmail: Config['gmail']): ReturnType<NonNullable<AccountService['quota']>> {
  const { units_per_minute: units, price_of_get: price } = gmail
  const text = `gmail.units_per_minute is ${formatCount(units)}`
  const tiers = `Projects have ${formatCount(UNITS_NEW)} units a minute for each user; those that used the API from November 2025 to April 2026 have ${formatCount(UNITS_OLD)}.`
  const quotas = 'Yours is under "Quotas" of the Gmail API in the Google Cloud console.'
  if (units > UNITS_OLD) {
    const hint = `${tiers} More leads to throttling, unless Google has raised your quota. ${quotas}`
    return { level: 'warning', text: `${text}, more than is documented`, hint }
  }
  if (units > UNITS_NEW)
    return { level: 'ok', text: `${text}, right for older projects only`, hint: `${tiers} ${quotas}` }
  if (units < UNITS_NEW)
    return { level: 'ok', text: `${text}, less than any project has: it is slower than need be` }
  const perSecond = units / 60 / Math.max(price, 1)
  const older = price === PRICE_NEW ? `; older projects can set ${formatCount(UNITS_OLD)}` : ''
  return { level: 'ok', text: `${text}, some ${formatCount(perSecond)} messages a second${older}` }
}
