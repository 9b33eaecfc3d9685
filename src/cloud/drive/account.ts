/** Google Drive accounts: the OAuth client, whose account a token is of, and what a secret allows. */
import { formatBytes } from '../../base/format.ts'
import type { AccountService } from '../account-service.ts'
import { ADDRESS } from '../account-store.ts'
import { googleAccounts } from '../google/account.ts'
import type { GoogleSecret } from '../google/sign-in.ts'
import { allowsReading, DRIVE_SCOPE, parseDriveSecret } from './auth.ts'
import { DriveClient } from './client.ts'
import { damagedAnswer } from './errors.ts'

export const DRIVE = 'drive'
const READONLY = 'readonly'

export const driveService: AccountService<GoogleSecret> = {
  ...googleAccounts({
    title: 'Google Drive',
    section: 'google_drive',
    settings: ({ google_drive }) => google_drive,
    parse: parseDriveSecret,
    scopeOf: () => DRIVE_SCOPE,
    isEnough: allowsReading,
    deviceText: 'Google gives no device codes for reading a Drive.',
    client: {
      intro:
        'Google lets a program in only as a client of a project of your own; one that reads Gmail serves, too:',
      api: 'drive',
      apiTitle: 'Drive API',
      audience: [
        '3. Under "Google Auth Platform" name the app; as audience choose "Internal" for your own organisation, or',
        '   "External", then "Publish app" (left in "Testing", it must be connected again every 7 days)',
      ],
    },
  }),
  name: DRIVE,
  title: 'Google Drive',
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
  unknownDetails: { usedBytes: null },

  called: (name) => ({ inText: `the Drive of ${name}`, asTitle: name }),
  levelOf: ({ scopes }) => (allowsReading(scopes) ? READONLY : undefined),
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
}
