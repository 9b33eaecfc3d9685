/** What the accounts of all of Google's services have in common: how they are signed in to, looked at and withdrawn. */
import type { Config } from '../../config/settings.ts'
import type { AccountService, NewSecret } from '../account-service.ts'
import type { ServiceCalls } from '../client-setup.ts'
import {
  authorizationUrl,
  exchangeCode,
  type OAuthCalls,
  revokeToken,
  serviceAccountTokens,
} from '../oauth.ts'
import { TESTING_HINT } from '../oauth-errors.ts'
import { type GoogleSetupInput, googleClientSetup } from './client-setup.ts'
import {
  type GoogleSecret,
  googleNotes,
  googleSecretOf,
  lookAtGoogleSecret,
  openGoogleTokens,
  readServiceAccount,
} from './sign-in.ts'

type GoogleSettings = {
  auth_url: string
  token_url: string
  revoke_url: string
}

export type GoogleServiceInput = {
  /** `Google Drive` */
  title: string
  settings: (config: Config) => GoogleSettings
  parse: (text: string) => GoogleSecret
  /** For which scope is asked, and whether those that were given are enough. */
  scopeOf: (level: string) => string
  isEnough: (scopes: readonly string[], level: string) => boolean
  /** There are no device codes for what it reads. */
  deviceText: string
  /** How to come to an OAuth client: which API must be enabled, and the level for which a check asks. */
  setup: Omit<GoogleSetupInput, 'scope' | 'urls'> & { level: string }
}

type Common =
  | 'company'
  | 'endHint'
  | 'signIn'
  | 'parse'
  | 'requireLevel'
  | 'look'
  | 'tokens'
  | 'settingsOf'
  | 'withdrawal'
  | 'revoke'

const BLOCKED =
  'allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.'
const CHECK_CLIENT = 'Check the OAuth client in the Google Cloud console'

export function googleAccounts(input: GoogleServiceInput): Pick<AccountService<GoogleSecret>, Common> {
  const { settings, parse } = input
  return {
    company: 'Google',
    endHint: TESTING_HINT,
    signIn: googleSignIn(input),
    parse,
    // What a sign-in brings is looked at when it is made a secret; a key has what its domain delegates.
    requireLevel: () => {},
    look: lookAtGoogleSecret,
    tokens: (account, calls) => openGoogleTokens({ ...account, ...oauthCalls(input, calls) }, parse),
    settingsOf: () => ({}),
    withdrawal: ({ name }) => `https://myaccount.google.com/permissions, signed in as ${name}`,
    async revoke(secret, { config, fetch, clock }) {
      if (secret.kind !== 'oauth') return { outcome: 'none' }
      await revokeToken({ fetch, clock, revokeUrl: settings(config).revoke_url }, secret.refreshToken)
      return { outcome: 'done' }
    },
  }
}

function googleSignIn(input: GoogleServiceInput): AccountService<GoogleSecret>['signIn'] {
  const { title, settings, scopeOf, isEnough } = input
  return {
    host: '127.0.0.1',
    hints: {
      denied: `Run the command again and ${BLOCKED}`,
      refused: `${CHECK_CLIENT}; it must be of the type "Desktop app".`,
      elsewhere: '--paste serves when the browser is on another machine.',
    },
    pageHints: {
      denied: `Begin again and ${BLOCKED}`,
      refused: `${CHECK_CLIENT}: it must allow the address of this server. The set-up on the page of settings says which.`,
    },
    refusals: {
      device: { text: input.deviceText, hint: 'On a machine without a browser use --paste.' },
    },
    setup: googleClientSetup({ ...input.setup, scope: scopeOf(input.setup.level), urls: settings }),
    url: (config, { client: { clientId }, level, redirectUri, pkce, user }) =>
      authorizationUrl({
        authUrl: settings(config).auth_url,
        clientId,
        redirectUri,
        pkce,
        scopes: [scopeOf(level)],
        // `consent` brings a refresh token also to who has allowed this client before.
        extra: { access_type: 'offline', prompt: 'consent', ...(user && { login_hint: user }) },
      }),
    async byCode(calls, { client, level, ...answer }) {
      const tokens = await exchangeCode(oauthCalls(input, calls), { ...client, ...answer })
      const secret = googleSecretOf(tokens, client, {
        scope: scopeOf(level),
        isEnough: (scopes) => isEnough(scopes, level),
        title,
        nowMs: calls.clock.now(),
      })
      return { secret, accessToken: tokens.accessToken, notes: googleNotes(secret) }
    },
    byKey(file) {
      const key = readServiceAccount(file)
      return async (calls, { user: subject, level }): Promise<NewSecret<GoogleSecret>> => {
        const secret = { kind: 'service-account' as const, ...key, subject, scopes: [scopeOf(level)] }
        const { accessToken } = await serviceAccountTokens(oauthCalls(input, calls), secret)
        return { secret, accessToken, notes: googleNotes(secret) }
      }
    },
  }
}

function oauthCalls(
  { settings }: GoogleServiceInput,
  { config, fetch, clock, signal }: ServiceCalls,
): OAuthCalls {
  return { fetch, clock, signal, tokenUrl: settings(config).token_url }
}
