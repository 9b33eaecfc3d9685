/** What the account commands know about Gmail: the OAuth client, the profile, what a secret allows. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { systemClock } from '../clock.ts'
import { accessOf, type GmailAccess, type GmailSecret, parseGmailSecret } from '../cloud/gmail/auth.ts'
import { classify, timedOut, unreachable } from '../cloud/gmail/errors.ts'
import { type OAuthClient, readText } from '../cloud/oauth.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { type Account, type Accounts, accountKey } from '../ledger/accounts.ts'
import type { Vault } from '../vault.ts'

export const GMAIL = 'gmail'

export const ACCESS_TEXT: Record<GmailAccess, string> = {
  readonly: 'read only',
  modify: 'read, label and trash',
  full: 'everything, also deleting permanently',
}

const PROFILE_TIMEOUT_MS = 30_000
const SERVICE_ACCOUNT_BYTES_MAX = 65_536

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

const serviceAccountFile = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
})

export function readServiceAccount(path: string): { clientEmail: string; privateKey: string } {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new UsageError(`The service account file ${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  let parsed: z.output<typeof serviceAccountFile> | undefined
  try {
    if (text.length <= SERVICE_ACCOUNT_BYTES_MAX) parsed = serviceAccountFile.parse(JSON.parse(text))
  } catch {
    // Without its cause, which may quote the key.
  }
  if (parsed) return { clientEmail: parsed.client_email, privateKey: parsed.private_key }
  throw new UsageError(`${path} is not the key file of a service account.`, {
    hint: 'In the Google Cloud console, under the service account\'s "Keys", add a key of the type JSON: that file is meant.',
  })
}

export type Profile = { address: string; messages: number | undefined }

const profileSchema = z.object({
  // It becomes the account's name: part of commands that people are told to type.
  emailAddress: z.string().regex(/^[^\s\p{C}@]{1,200}@[^\s\p{C}@]{1,119}$/u),
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

export async function readSecret(input: {
  accounts: Accounts
  vault: Vault
  account: Account
}): Promise<GmailSecret> {
  const { accounts, vault, account } = input
  return parseGmailSecret(vault.open(accountKey(account), await accounts.sealed(account.id)))
}

/** What an account may do, for listings: undefined where its secret cannot be opened. */
export async function accessOfAccount(input: {
  accounts: Accounts
  vault: Vault
  account: Account
}): Promise<GmailAccess | undefined> {
  if (input.account.service !== GMAIL) return undefined
  try {
    return accessOf((await readSecret(input)).scopes)
  } catch (thrown) {
    // A listing shows what can be shown; `account check` and `doctor` say what is wrong.
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return undefined
    throw thrown
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
