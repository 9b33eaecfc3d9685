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
    settings: ({ google_drive }) => google_drive,
    parse: parseDriveSecret,
    scopeOf: () => DRIVE_SCOPE,
    isEnough: allowsReading,
    deviceText: 'Google gives no device codes for reading a Drive.',
    setup: { section: 'google_drive', api: 'drive', apiTitle: 'Google Drive API', level: READONLY },
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
  defaultLevel: READONLY,
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
