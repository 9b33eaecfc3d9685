/**
 * Access to one OneDrive account: how it is asked for, what is kept secret about it, and what access tokens are made
 * from. Microsoft gives a new refresh token with every refresh, and the one before ends some time later.
 */

import { TidemarkError } from '../../base/errors.ts'
import { type AccountTokensInput, openGrantedTokens } from '../account-tokens.ts'
import { awaitDeviceCode, type DeviceCode, startDeviceCode } from '../device-code.ts'
import {
  authorizationUrl,
  exchangeCode,
  type OAuthCalls,
  type OAuthClient,
  type Pkce,
  refreshTokens,
  type Tokens,
} from '../oauth.ts'
import {
  type Grant,
  isSameOAuthGrant,
  keptOAuthToken,
  newOAuthSecret,
  type OAuthSecret,
  oauthSecretSchema,
  parseSecret,
  renewOAuthSecret,
  type TokenSource,
} from '../token-source.ts'

/** Each includes those before it. `shared`: folders of others and libraries of SharePoint, too. */
export const ONEDRIVE_LEVELS = ['readonly', 'readwrite', 'shared'] as const
export type OneDriveAccess = (typeof ONEDRIVE_LEVELS)[number]

/** Without `offline_access` there is no refresh token. */
export const ONEDRIVE_SCOPES: Record<OneDriveAccess, readonly string[]> = {
  readwrite: ['Files.ReadWrite', 'offline_access', 'User.Read'],
  readonly: ['Files.Read', 'offline_access', 'User.Read'],
  shared: ['Files.ReadWrite.All', 'Sites.Read.All', 'offline_access', 'User.Read'],
}

const CLIENT_HINT =
  'Check client_id in the configuration: it must be that of an app registration for "Mobile and desktop applications", for accounts of the kind that you sign in with.'
const RECONNECT_HINT =
  'Connect the account again with: tidemark account add onedrive, and with --shared or --read-only where it had that (tidemark account list tells). A sign-in ends when the password changes, when access is withdrawn, or after 90 days without use.'

/** What can be done about errors of Microsoft's sign-in. */
const HINTS = {
  invalid_grant: RECONNECT_HINT,
  interaction_required: RECONNECT_HINT,
  consent_required: RECONNECT_HINT,
  access_denied: RECONNECT_HINT,
  authorization_declined: 'Run the command again and allow it.',
  invalid_client: `${CLIENT_HINT} It needs no client_secret unless it is a web application.`,
  unauthorized_client: `${CLIENT_HINT} For the device code, "Allow public client flows" must be on.`,
  redirect_uri_mismatch: `${CLIENT_HINT} Its redirect must be http://localhost.`,
}

/** The most that these scopes allow; undefined if they do not even allow reading. Graph may write them in full. */
export function accessOf(scopes: readonly string[]): OneDriveAccess | undefined {
  const names = scopes.map((scope) => scope.split('/').at(-1)!.toLowerCase())
  // Personal accounts have no sites, and are not given a permission for them.
  if (names.includes('files.readwrite.all')) return 'shared'
  if (names.some((name) => /^files\.readwrite(?:\.all)?$/.test(name))) return 'readwrite'
  return names.some((name) => /^files\.read(?:\.all)?$/.test(name)) ? 'readonly' : undefined
}

/** Where the person signs in; the answer comes to `redirectUri`, on this machine. */
export function signInUrl(input: {
  authUrl: string
  clientId: string
  redirectUri: string
  access: OneDriveAccess
  pkce: Pkce
  /** The address that is expected to sign in. */
  user?: string | undefined
}): string {
  const { access, user, ...rest } = input
  const extra = { response_mode: 'query', prompt: 'select_account', ...(user && { login_hint: user }) }
  return authorizationUrl({ ...rest, scopes: ONEDRIVE_SCOPES[access], extra })
}

export async function signInByCode(
  calls: OAuthCalls,
  input: OAuthClient & { code: string; verifier: string; redirectUri: string },
): Promise<OneDriveSecret> {
  return secretOf(input, await exchangeCode({ ...calls, hints: HINTS }, input), calls.clock.now())
}

/** The code for the person to type, and what waits until that was done. */
export async function signInByDevice(
  calls: OAuthCalls & { deviceUrl: string },
  input: OAuthClient & { access: OneDriveAccess },
): Promise<{ code: DeviceCode; finish: () => Promise<OneDriveSecret> }> {
  const hinted = { ...calls, hints: HINTS }
  const code = await startDeviceCode(hinted, {
    clientId: input.clientId,
    scopes: ONEDRIVE_SCOPES[input.access],
  })
  const finish = async (): Promise<OneDriveSecret> =>
    secretOf(input, await awaitDeviceCode(hinted, input, code), calls.clock.now())
  return { code, finish }
}

export type OneDriveSecret = OAuthSecret

export function parseOneDriveSecret(text: string): OneDriveSecret {
  return parseSecret(oauthSecretSchema, text, 'onedrive')
}

function secretOf(client: OAuthClient, tokens: Tokens, nowMs: number): OneDriveSecret {
  const { refreshToken, scopes = [] } = tokens
  if (refreshToken === undefined || accessOf(scopes) === undefined) {
    throw new TidemarkError('The sign-in worked, but not everything that is needed was allowed.', {
      kind: 'auth',
      code: 'scope-missing',
      hint: 'Sign in again, and allow access to files and that it is kept.',
    })
  }
  return newOAuthSecret(client, { ...tokens, refreshToken, scopes }, nowMs)
}

export function oneDriveGrant({ fetch, clock, tokenUrl }: OAuthCalls): Grant<OneDriveSecret> {
  return {
    ask: (secret) => refreshTokens({ fetch, clock, tokenUrl, hints: HINTS }, secret),
    keptToken: keptOAuthToken,
    renew: renewOAuthSecret,
    isSame: isSameOAuthGrant,
  }
}

/** The token source of an account that the ledger knows. */
export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGrantedTokens({
    ...input,
    grant: oneDriveGrant(input),
    parse: parseOneDriveSecret,
    refreshTokenOf: ({ refreshToken }) => refreshToken,
  })
}
