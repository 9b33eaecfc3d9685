/** Google Drive accounts: the OAuth client, whose account a token is of, and what a secret allows. */
import { UsageError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format.ts'
import type { Config } from '../../config/settings.ts'
import type { AccountService, NewSecret, ServiceCalls } from '../account-service.ts'
import { ADDRESS } from '../account-store.ts'
import {
  type GoogleSecret,
  googleNotes,
  googleSecretOf,
  lookAtGoogleSecret,
  readServiceAccount,
} from '../google/sign-in.ts'
import {
  authorizationUrl,
  exchangeCode,
  type OAuthCalls,
  type OAuthClient,
  revokeToken,
  serviceAccountTokens,
} from '../oauth.ts'
import { TESTING_HINT } from '../oauth-errors.ts'
import { allowsReading, DRIVE_SCOPE, openAccountTokens, parseDriveSecret } from './auth.ts'
import { DriveClient } from './client.ts'
import { damagedAnswer } from './errors.ts'

export const DRIVE = 'drive'
const READONLY = 'readonly'

export const driveService: AccountService<GoogleSecret> = {
  name: DRIVE,
  title: 'Google Drive',
  company: 'Google',
  levels: [
    {
      level: READONLY,
      text: 'read only',
      may: 'May read only',
      flag: 'readOnly',
      choice: {
        title: 'Read only',
        hint: 'All that is needed to index and search; nothing is ever changed.',
      },
    },
  ],
  defaults: { command: READONLY, page: READONLY },
  keepsLevel: false,
  needs: 'the permission to read files',
  endHint: TESTING_HINT,
  unknownDetails: { usedBytes: null },

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
        text: 'Google gives no device codes for reading a Drive.',
        hint: 'On a machine without a browser use --paste.',
      },
    },
    client: ({ google_drive }, configFile) => requireClient(google_drive, configFile),
    url: ({ google_drive }, { client: { clientId }, redirectUri, pkce, user }) =>
      authorizationUrl({
        authUrl: google_drive.auth_url,
        clientId,
        redirectUri,
        pkce,
        scopes: [DRIVE_SCOPE],
        // `consent` brings a refresh token also to who has allowed this client before.
        extra: { access_type: 'offline', prompt: 'consent', ...(user && { login_hint: user }) },
      }),
    async byCode(calls, { client, ...answer }) {
      const tokens = await exchangeCode(oauthCalls(calls), { ...client, ...answer })
      const secret = googleSecretOf(tokens, client, {
        scope: DRIVE_SCOPE,
        isEnough: allowsReading,
        title: 'Google Drive',
        nowMs: calls.clock.now(),
      })
      return { secret, accessToken: tokens.accessToken, notes: googleNotes(secret) }
    },
    byKey(file) {
      const key = readServiceAccount(file)
      return async (calls, { user: subject }): Promise<NewSecret<GoogleSecret>> => {
        const secret = { kind: 'service-account' as const, ...key, subject, scopes: [DRIVE_SCOPE] }
        const { accessToken } = await serviceAccountTokens(oauthCalls(calls), secret)
        return { secret, accessToken, notes: googleNotes(secret) }
      }
    },
  },

  called: (name) => ({ inText: `the Drive of ${name}`, asTitle: name }),
  clientOf: ({ google_drive }) => ({ key: 'google_drive.client_id', id: google_drive.client_id }),
  parse: parseDriveSecret,
  levelOf: ({ scopes }) => (allowsReading(scopes) ? READONLY : undefined),
  // What a sign-in brings is looked at when it is made a secret; a key has what its domain delegates.
  requireLevel: () => {},
  look: lookAtGoogleSecret,
  tokens: (input, calls) => openAccountTokens({ ...input, ...oauthCalls(calls) }),

  async profile({ config, fetch, clock, signal }, token) {
    const client = new DriveClient({
      fetch,
      clock,
      token,
      apiUrl: config.google_drive.api_url,
      pace: (_call, run) => run(),
    })
    const { address, usedBytes } = await client.about({ signal })
    if (!ADDRESS.test(address)) throw damagedAnswer('the account', 'it does not say whose it is')
    return {
      name: address,
      facts: usedBytes === undefined ? [] : [`${formatBytes(usedBytes)} used`],
      details: { usedBytes: usedBytes ?? null },
      brief: {},
    }
  },

  settingsOf: () => ({}),
  withdrawal: ({ name }) => `https://myaccount.google.com/permissions, signed in as ${name}`,

  async revoke(secret, { config, fetch, clock }) {
    if (secret.kind !== 'oauth') return { outcome: 'none' }
    await revokeToken({ fetch, clock, revokeUrl: config.google_drive.revoke_url }, secret.refreshToken)
    return { outcome: 'done' }
  },
}

function oauthCalls({ config, fetch, clock, signal }: ServiceCalls): OAuthCalls {
  return { fetch, clock, signal, tokenUrl: config.google_drive.token_url }
}

/** The OAuth client, or the way to one. */
function requireClient(settings: Config['google_drive'], configFile: string): OAuthClient {
  if (settings.client_id !== undefined) {
    return { clientId: settings.client_id, clientSecret: settings.client_secret }
  }
  throw new UsageError('There is no OAuth client to sign in with: google_drive.client_id is not set.', {
    code: 'no-client',
    hint: [
      'Google lets a program in only as a client of a project of your own; one that reads Gmail serves, too:',
      '1. Make a project at https://console.cloud.google.com/projectcreate',
      '2. Enable the Drive API: https://console.cloud.google.com/apis/library/drive.googleapis.com',
      '3. Under "Google Auth Platform" name the app; as audience choose "Internal" for your own organisation, or',
      '   "External", then "Publish app" (left in "Testing", it must be connected again every 7 days)',
      '4. Under "Clients" create one of the type "Desktop app"',
      `5. Write its id and secret into ${configFile}:`,
      '   [google_drive]',
      '   client_id = "….apps.googleusercontent.com"',
      '   client_secret = "…"',
    ].join('\n'),
  })
}
