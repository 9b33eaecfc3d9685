/** OneDrive, as the commands about accounts see it. */
import type { DriveRow } from '../apps/file-sync/store/contract.ts'
import { systemClock } from '../clock.ts'
import { openAccountTokens } from '../cloud/onedrive/account-tokens.ts'
import { UsageError } from '../errors.ts'
import { formatBytes } from '../format.ts'
import type { Account } from '../ledger/accounts.ts'
import {
  foldersOf,
  ONEDRIVE,
  ONEDRIVE_ACCESS_TEXT,
  type OneDriveProfile,
  oneDriveAccess,
  readOneDriveProfile,
  readOneDriveSecret,
} from '../server/onedrive-account.ts'
import { plural } from '../wording.ts'
import type { AccountService } from './account-service.ts'

export const oneDriveService: AccountService = {
  service: ONEDRIVE,
  title: 'OneDrive',
  company: 'Microsoft',
  needs: 'the permission to read files',
  endHint:
    'A sign-in ends when the password changes, when access is withdrawn, or after 90 days without use.',
  unknownDetails: { drive: null },

  // Without it more is asked for than the account has now.
  flagsOf: (access) => (access?.level === 'readonly' ? ' --read-only' : ''),

  clientOf: ({ onedrive }) => ({ key: 'onedrive.client_id', id: onedrive.client_id }),

  async look(input) {
    const secret = await readOneDriveSecret(input)
    const level = oneDriveAccess(input.account, secret)
    return {
      access: level && { level, text: ONEDRIVE_ACCESS_TEXT[level] },
      clientId: secret.clientId,
      accessToken: secret.accessToken ?? '',
      obtainedAtMs: secret.obtainedAtMs,
      // Each refresh brings a new token: when somebody signed in is not known any more.
      signIn: undefined,
      concerns: [],
    }
  },

  tokens: (input, { onedrive }) =>
    openAccountTokens({ ...input, fetch, clock: systemClock, tokenUrl: onedrive.token_url }),

  async profile({ onedrive }, tokens) {
    const profile = await readOneDriveProfile(onedrive.api_url, tokens)
    const { type, quota } = profile.drive
    const drive = { type, usedBytes: quota?.usedBytes ?? null, totalBytes: quota?.totalBytes ?? null }
    return { name: profile.name, facts: driveFacts(profile), details: { drive } }
  },

  limitOf: ({ level }) => (level === 'readonly' ? 'nothing can be uploaded with that' : ''),

  async keeps(account, ledger) {
    const folders = await foldersOf(ledger, account)
    return folders.length === 0 ? 'no folder' : namesOf(folders)
  },

  async remains(account, { ledger }) {
    const folders = await foldersOf(ledger, account)
    return {
      question: 'All files stay, here and in OneDrive.',
      text:
        folders.length === 0
          ? 'No folder was kept in step with it.'
          : `${themOf(folders)} ${plural(folders.length, 'stays as it is', 'stay as they are')}, and so do the files in OneDrive; until the account is connected again, neither side hears of the other.`,
      details: { folders: folders.map(({ name, root }) => ({ name, root })) },
      inUse: folders.length === 0 ? undefined : inUse(account, folders),
    }
  },

  withdrawal: () =>
    'https://account.live.com/consent/Manage, or for an account of work or school https://myapplications.microsoft.com',

  // Microsoft has no address to which a program could give a token back.
  prepareRevocation: async () => async () => ({ outcome: 'by-hand' }),
}

/** What is said of a drive: its type, and how full it is. */
export function driveFacts({ drive: { type, quota } }: Pick<OneDriveProfile, 'drive'>): string[] {
  const { usedBytes, totalBytes } = quota ?? {}
  const used = usedBytes === undefined ? [] : [formatBytes(usedBytes)]
  const total = totalBytes === undefined || totalBytes === 0 ? [] : [`of ${formatBytes(totalBytes)}`]
  return [
    ...(type === 'unknown' ? [] : [type === 'documentLibrary' ? 'a document library' : `a ${type} drive`]),
    ...(used.length === 0 ? [] : [`${[...used, ...total].join(' ')} used`]),
  ]
}

function inUse(account: Account, folders: readonly DriveRow[]): UsageError {
  const them = themOf(folders)
  return new UsageError(`${them} ${plural(folders.length, 'is', 'are')} kept in step with ${account.name}.`, {
    code: 'account-in-use',
    hint: 'With --force the account is forgotten all the same: nothing happens to any file, here or in OneDrive, but the two are no longer kept in step.',
  })
}

function themOf(folders: readonly DriveRow[]): string {
  return `The ${plural(folders.length, 'folder')} ${namesOf(folders)}`
}

function namesOf(folders: readonly DriveRow[]): string {
  return folders.map(({ name, root }) => `${name} (${root})`).join(', ')
}
