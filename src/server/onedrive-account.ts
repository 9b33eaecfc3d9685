/** OneDrive accounts: the app registration, whose account a token is of, what it allows, and keeping it sealed. */
import { z } from 'zod'
import { SERVICE } from '../apps/file-sync/drive.ts'
import type { DriveRow } from '../apps/file-sync/store/contract.ts'
import { FileStore } from '../apps/file-sync/store/file-store.ts'
import { systemClock } from '../clock.ts'
import type { OAuthClient } from '../cloud/oauth.ts'
import {
  accessOf,
  type OneDriveAccess,
  type OneDriveSecret,
  parseOneDriveSecret,
} from '../cloud/onedrive/auth.ts'
import { type Drive, OneDriveClient, type Person } from '../cloud/onedrive/client.ts'
import type { TokenSource } from '../cloud/token-source.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { createHttpExchange } from '../http-exchange.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { ADDRESS, openSecret, type Shelf, type ShelvedAccount, shelve } from './account-shelf.ts'

export const ONEDRIVE = SERVICE

export const ONEDRIVE_ACCESS_TEXT: Record<OneDriveAccess, string> = {
  readonly: 'read only',
  readwrite: 'read and write',
}

const PROFILE_TIMEOUT_MS = 30_000

/** Where Microsoft sends the browser back to. */
export const CALLBACK_PATH = '/oauth/onedrive/callback'
/** Microsoft takes any port for it, and no other name of this machine. */
export const BROWSER_REDIRECT = `http://localhost${CALLBACK_PATH}`

/** The app registration, or the way to one. */
export function requireApp({ client_id: clientId }: Config['onedrive'], configFile: string): OAuthClient {
  if (clientId !== undefined) return { clientId }
  throw new UsageError('There is no app to sign in with: onedrive.client_id is not set.', {
    code: 'no-client',
    hint: [
      'Microsoft lets a program in only as an app that is registered. Once, in five minutes:',
      '1. At https://entra.microsoft.com, under "App registrations", choose "New registration"',
      '2. For the supported accounts choose any directory and personal Microsoft accounts',
      '3. As redirect choose "Public client/native (mobile & desktop)" and http://localhost',
      '   To connect in the browser (tidemark serve), add one more of the same kind, whatever the port is:',
      `   ${BROWSER_REDIRECT}`,
      '4. Under "Authentication" switch "Allow public client flows" on',
      `5. Write its "Application (client) ID" into ${configFile}:`,
      '   [onedrive]',
      '   client_id = "…"',
    ].join('\n'),
  })
}

export type OneDriveProfile = {
  /** Stays the same when the address changes. */
  userId: string
  /** The mail address, or the user's id where there is none. */
  name: string
  drive: Pick<Drive, 'id' | 'type' | 'quota'>
}

/** Whose account it is, and its drive: the first calls with a new token. */
export async function readOneDriveProfile(apiUrl: string, token: TokenSource): Promise<OneDriveProfile> {
  const exchange = createHttpExchange()
  const client = new OneDriveClient({
    ...{ exchange, clock: systemClock, apiUrl, token, timeoutMs: PROFILE_TIMEOUT_MS },
    pace: (call, fn) => fn(call.signal),
  })
  try {
    const person = await client.me()
    const { id, type, quota } = await client.drive().catch((thrown: unknown) => {
      throw thrown instanceof TidemarkError && thrown.kind === 'gone' ? noDrive(person, thrown) : thrown
    })
    return { userId: person.id, name: nameOf(person), drive: { id, type, quota } }
  } finally {
    exchange.close()
  }
}

/** A token that is new, and not kept anywhere yet. */
export function newToken({ accessToken }: OneDriveSecret): TokenSource {
  return { access: async () => accessToken ?? '', refused: () => {} }
}

/** What stands there is part of commands that people are told to type. */
function nameOf({ id, address }: Person): string {
  if (address !== undefined && ADDRESS.test(address)) return address.toLowerCase()
  if (/^[\w.-]{1,128}$/.test(id)) return id.toLowerCase()
  throw new TidemarkError('OneDrive did not say whose account this is.', {
    kind: 'transient',
    code: 'not-onedrive',
  })
}

function noDrive(person: Person, cause: TidemarkError): TidemarkError {
  return new TidemarkError(`The account ${nameOf(person)} has no OneDrive.`, {
    ...{ kind: 'permanent', code: 'no-drive', cause },
    hint: 'Open OneDrive in a browser once with this account: that makes it. In an organisation it takes a licence for it.',
  })
}

const settingsSchema = z.object({
  userId: z.string().optional().catch(undefined),
  /** What was asked for: Microsoft also gives what was allowed on another occasion. */
  access: z.enum(['readonly', 'readwrite']).catch('readwrite'),
})

export async function readOneDriveSecret(input: ShelvedAccount): Promise<OneDriveSecret> {
  return parseOneDriveSecret(await openSecret(input))
}

/** Never more than was asked for. Undefined where not even reading is allowed. */
export function oneDriveAccess(
  { settings }: Pick<Account, 'settings'>,
  { scopes }: Pick<OneDriveSecret, 'scopes'>,
): OneDriveAccess | undefined {
  const given = accessOf(scopes)
  return given === 'readwrite' ? settingsSchema.parse(settings).access : given
}

/** An error where the sign-in brings less than was asked for. */
export function requireAsked(secret: OneDriveSecret, asked: OneDriveAccess): void {
  if (asked === 'readonly' || accessOf(secret.scopes) === 'readwrite') return
  throw new TidemarkError('The permission to change files was not given. Nothing was kept.', {
    kind: 'auth',
    code: 'scope-missing',
    hint: 'Sign in once more and allow it, or ask for nothing but reading: --read-only',
  })
}

/** The account that this person has here already, though it may have had another address then. */
export async function knownOneDrive(
  accounts: Accounts,
  profile: Pick<OneDriveProfile, 'userId' | 'name'>,
): Promise<Account | undefined> {
  const all = await accounts.list(ONEDRIVE)
  const ofUser = (account: Account): string | undefined => settingsSchema.parse(account.settings).userId
  const same = all.find((account) => ofUser(account) === profile.userId)
  const namesake = all.find(({ name }) => name === profile.name)
  if (same || !namesake || ofUser(namesake) === undefined) return same ?? namesake
  // Its folders would be compared with the files of somebody else.
  throw new TidemarkError(
    `${profile.name} was the address of another account when it was connected here. Nothing was kept.`,
    {
      ...{ kind: 'auth', code: 'other-account' },
      hint: `If the other one is not needed any more: tidemark account remove onedrive:${profile.name}`,
    },
  )
}

/** A new account, or a new secret for one that is there. */
export async function keepOneDriveAccount(
  shelf: Shelf,
  input: { profile: OneDriveProfile; secret: OneDriveSecret; access: OneDriveAccess },
): Promise<{ name: string; before: { access: OneDriveAccess | undefined } | undefined }> {
  const { profile, secret, access } = input
  requireAsked(secret, access)
  const known = await knownOneDrive(shelf.accounts, profile)
  const name = known?.name ?? profile.name
  const before = known && { access: await accessBefore({ ...shelf, account: known }) }
  const settings = { ...known?.settings, userId: profile.userId, access }
  await shelve(shelf, { service: ONEDRIVE, name, known, secret, settings })
  return { name, before }
}

async function accessBefore(input: ShelvedAccount): Promise<OneDriveAccess | undefined> {
  try {
    return oneDriveAccess(input.account, await readOneDriveSecret(input))
  } catch (thrown) {
    // Connecting anew is what mends a secret that cannot be opened.
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return undefined
    throw thrown
  }
}

/** The folders that are kept in step with an account, on any machine. */
export async function foldersOf(ledger: Ledger, { name }: Pick<Account, 'name'>): Promise<DriveRow[]> {
  const drives = await (await FileStore.open(ledger)).drives()
  return drives.filter(({ account }) => account === name)
}
