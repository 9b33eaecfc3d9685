/** Gmail accounts: the OAuth client, whose account a token is of, what a secret allows, and keeping it sealed. */
import { z } from 'zod'
import { type MailChoices, mailChoices, SERVICE } from '../apps/mail-archive/account.ts'
import { systemClock } from '../clock.ts'
import {
  accessOf,
  allows,
  GMAIL_SCOPES,
  type GmailAccess,
  type GmailAction,
  type GmailSecret,
  parseGmailSecret,
} from '../cloud/gmail/auth.ts'
import { classify, timedOut, unreachable } from '../cloud/gmail/errors.ts'
import { type OAuthClient, readText, type Tokens } from '../cloud/oauth.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { ADDRESS, openSecret, type Shelf, type ShelvedAccount, shelve } from './account-shelf.ts'

export const GMAIL = SERVICE

export const ACCESS_TEXT: Record<GmailAccess, string> = {
  readonly: 'read only',
  modify: 'read, label and trash',
  full: 'everything, also deleting permanently',
}

const PROFILE_TIMEOUT_MS = 30_000

/** The OAuth client, or the way to one. */
export function requireClient(gmail: Config['gmail'], configFile: string): OAuthClient {
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

export type Profile = { address: string; messages: number | undefined }

const profileSchema = z.object({
  emailAddress: z.string().regex(ADDRESS),
  messagesTotal: z.number().optional().catch(undefined),
})

/** Whose account it is: the first call with a new token. */
export async function readProfile(apiUrl: string, accessToken: string): Promise<Profile> {
  let response: Response
  let body: string
  try {
    response = await fetch(`${apiUrl.replace(/\/+$/, '')}/gmail/v1/users/me/profile`, {
      headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(PROFILE_TIMEOUT_MS),
    })
    body = await readText(response)
  } catch (thrown) {
    throw (thrown as Error).name === 'TimeoutError' ? timedOut(PROFILE_TIMEOUT_MS) : unreachable(thrown)
  }
  if (response.status !== 200) {
    throw classify({ status: response.status, body, headers: response.headers, nowMs: systemClock.now() })
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

export async function readSecret(input: ShelvedAccount): Promise<GmailSecret> {
  return parseGmailSecret(await openSecret(input))
}

/** What an account may do, for listings: undefined where its secret cannot be opened. */
export async function accessOfAccount(input: ShelvedAccount): Promise<GmailAccess | undefined> {
  if (input.account.service !== GMAIL) return undefined
  try {
    return accessOf((await readSecret(input)).scopes)
  } catch (thrown) {
    // A listing shows what can be shown; `account check` and `doctor` say what is wrong.
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return undefined
    throw thrown
  }
}

const LEVEL_ACTION: Record<GmailAccess, GmailAction> = { readonly: 'read', modify: 'trash', full: 'delete' }

/** What is kept of a sign-in; an error where it does not bring what was asked for. */
export function oauthSecret(
  tokens: Tokens,
  client: OAuthClient,
  { access, nowMs }: { access: GmailAccess; nowMs: number },
): GmailSecret {
  const scopes = tokens.scopes ?? [GMAIL_SCOPES[access]]
  if (!allows(scopes, LEVEL_ACTION[access])) {
    throw new TidemarkError('The permission for Gmail was not given. Nothing was kept.', {
      kind: 'auth',
      code: 'scope-missing',
      hint: 'Sign in once more, and leave the box for Gmail ticked on the page that asks.',
    })
  }
  if (tokens.refreshToken === undefined) {
    throw new TidemarkError('The service gave no lasting access (no refresh token). Nothing was kept.', {
      kind: 'auth',
      code: 'no-refresh-token',
      hint: 'Remove the access of this client at https://myaccount.google.com/permissions and sign in once more.',
    })
  }
  const { accessToken, expiresAtMs, refreshToken, refreshExpiresAtMs } = tokens
  return {
    kind: 'oauth',
    clientId: client.clientId,
    ...(client.clientSecret !== undefined && { clientSecret: client.clientSecret }),
    ...{ accessToken, expiresAtMs, refreshToken, scopes },
    obtainedAtMs: nowMs,
    ...(refreshExpiresAtMs !== undefined && { refreshExpiresAtMs }),
  }
}

/** What an account was before; undefined for one that is new. */
export type KnownBefore = { choices: MailChoices; access: GmailAccess | undefined }

/** A new account, or a new secret for one that is there; what was chosen before holds where nothing else is said. */
export async function keepGmailAccount(
  shelf: Shelf,
  input: { address: string; secret: GmailSecret; choices: Partial<MailChoices> },
): Promise<{ settings: MailChoices; before: KnownBefore | undefined }> {
  const { address: name, secret } = input
  const known = await shelf.accounts.find(GMAIL, name)
  const settings = mailChoices.parse({ ...known?.settings, ...input.choices })
  const before = known && {
    choices: mailChoices.parse(known.settings),
    access: await accessOfAccount({ ...shelf, account: known }),
  }
  await shelve(shelf, { service: GMAIL, name, known, secret, settings })
  return { settings, before }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
