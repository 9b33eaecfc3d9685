/** OneDrive accounts: the app registration, whose account a token is of, and what it allows. */
import { z } from 'zod'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'
import type { AccountService, NewSecret, Profile } from '../account-service.ts'
import { ADDRESS } from '../account-store.ts'
import type { ServiceCalls } from '../client-setup.ts'
import type { OAuthCalls } from '../oauth.ts'
import type { TokenSource } from '../token-source.ts'
import {
  accessOf,
  ONEDRIVE_LEVELS,
  type OneDriveAccess,
  type OneDriveSecret,
  openAccountTokens,
  parseOneDriveSecret,
  signInByCode,
  signInByDevice,
  signInUrl,
} from './auth.ts'
import { type Drive, OneDriveClient, type Person } from './client.ts'
import { oneDriveClientSetup } from './client-setup.ts'

export const ONEDRIVE = 'onedrive'

/** Microsoft takes any port for it, and no other name of this machine. */
const BROWSER_REDIRECT = `http://localhost/oauth/${ONEDRIVE}/callback`

export const oneDriveService: AccountService<OneDriveSecret> = {
  name: ONEDRIVE,
  title: 'OneDrive',
  company: 'Microsoft',
  levels: [
    {
      level: 'readonly',
      text: 'read only',
      may: 'May read only',
      flag: 'readOnly',
      choice: { title: 'Reading', hint: 'What is in OneDrive comes here; nothing is changed there.' },
    },
    {
      level: 'readwrite',
      text: 'read and write',
      may: 'May read and write',
      choice: { title: 'Reading and writing', hint: 'What is changed here is changed there, too.' },
    },
    {
      level: 'shared',
      text: 'read and write, also shared folders and libraries of SharePoint',
      may: 'May read and write, also shared folders and libraries of SharePoint',
      flag: 'shared',
      choice: {
        title: 'Also what others share',
        hint: 'Folders of other people and libraries of SharePoint. At work or school an administrator may have to allow it.',
      },
    },
  ],
  defaultLevel: 'readwrite',
  keepsLevel: false,
  needs: 'the permission to read files',
  endHint:
    'A sign-in ends when the password changes, when access is withdrawn, or after 90 days without use.',
  unknownDetails: { drive: null },

  signIn: {
    // Of all addresses, Microsoft lets only this one have any port.
    host: 'localhost',
    hints: {
      denied:
        'Run the command again and allow it. In an organisation an administrator may have to allow the app first.',
      refused:
        'Check the app registration: its redirect must be http://localhost, for "Mobile and desktop applications".',
      elsewhere: '--device serves when the browser is on another machine.',
    },
    pageHints: {
      denied: 'Begin again and allow it. An account of work or school may need its administrator for that.',
      refused: `Check the app registration at Microsoft: under "Mobile and desktop applications" it must have the redirect ${BROWSER_REDIRECT}, or that of the name under which you reach this server.`,
    },
    refusals: {
      paste: {
        text: 'An account of OneDrive is not connected by pasting.',
        hint: 'On a machine without a browser use --device: it gives a code to type on another one.',
      },
    },
    setup: oneDriveClientSetup,
    url: ({ onedrive }, { client: { clientId }, level, ...rest }) =>
      signInUrl({ ...rest, authUrl: onedrive.auth_url, clientId, access: level as OneDriveAccess }),
    byCode: async (calls, { client, level: _, ...answer }) =>
      newSecret(await signInByCode(oauthCalls(calls), { ...client, ...answer })),
    async byDevice(calls, { client, level }) {
      const deviceCalls = { ...oauthCalls(calls), deviceUrl: calls.config.onedrive.device_url }
      const access = level as OneDriveAccess
      const { code, finish } = await signInByDevice(deviceCalls, { ...client, access })
      return { code, finish: async () => newSecret(await finish()) }
    },
  },

  called: (name) => ({ inText: `the OneDrive of ${name}`, asTitle: `OneDrive of ${name}` }),
  parse: parseOneDriveSecret,

  /** Never more than was asked for. */
  levelOf({ scopes }, settings) {
    const given = accessOf(scopes)
    if (given === undefined) return undefined
    const { access } = settingsSchema.parse(settings)
    return rank(access) < rank(given) ? access : given
  },

  requireLevel({ scopes }, level) {
    const given = accessOf(scopes)
    if (level === 'readonly' || (given && rank(given) >= rank(level as OneDriveAccess))) return
    throw new TidemarkError(MISSING_TEXTS[level === 'shared' ? 'shared' : 'readwrite'], {
      kind: 'auth',
      code: 'scope-missing',
      hint: 'Sign in once more and allow it, or ask for nothing but reading: --read-only',
    })
  },

  look: ({ clientId, accessToken = '', obtainedAtMs }) => ({
    // Each refresh brings a new token: when somebody signed in is not known any more.
    clientId,
    accessToken,
    obtainedAtMs,
    signIn: undefined,
    concerns: [],
  }),

  tokens: (input, calls) => openAccountTokens({ ...input, ...oauthCalls(calls) }),

  async profile({ config }, tokens) {
    const { userId: id, name, drive } = await readOneDriveProfile(config.onedrive.api_url, tokens)
    const { type, quota } = drive
    return {
      name,
      id,
      facts: driveFacts(drive),
      brief: { drive: { type } },
      details: {
        drive: { type, usedBytes: quota?.usedBytes ?? null, totalBytes: quota?.totalBytes ?? null },
      },
    }
  },

  known: knownOneDrive,
  settingsOf: ({ id }, access) => ({ userId: id, access }),
  // Microsoft has no address to which a program could give a token back.
  withdrawal: () =>
    'https://account.live.com/consent/Manage, or for an account of work or school https://myapplications.microsoft.com',
}

function oauthCalls({ config, fetch, clock, signal }: ServiceCalls): OAuthCalls {
  return { fetch, clock, signal, tokenUrl: config.onedrive.token_url }
}

function newSecret(secret: OneDriveSecret): NewSecret<OneDriveSecret> {
  return { secret, accessToken: secret.accessToken ?? '', notes: [] }
}

const MISSING_TEXTS = {
  readwrite: 'The permission to change files was not given. Nothing was kept.',
  shared: 'The permission for what others share was not given. Nothing was kept.',
}

const rank = (access: OneDriveAccess): number => ONEDRIVE_LEVELS.indexOf(access)

const PROFILE_TIMEOUT_MS = 30_000

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
    exchange,
    clock: systemClock,
    apiUrl,
    token,
    timeoutMs: PROFILE_TIMEOUT_MS,
    pace: (call, fn) => fn(call.signal),
  })
  try {
    const person = await client.me()
    const { id, type, quota } = await client.drive().catch((thrown: unknown) => {
      throw thrown instanceof TidemarkError && thrown.kind === 'gone' ? noDrive(person, thrown) : thrown
    })
    return { userId: person.id, name: accountName(person), drive: { id, type, quota } }
  } finally {
    exchange.close()
  }
}

/** What stands there is part of commands that people are told to type. */
function accountName({ id, address }: Person): string {
  if (address !== undefined && ADDRESS.test(address)) return address.toLowerCase()
  if (/^[\w.-]{1,128}$/.test(id)) return id.toLowerCase()
  throw new TidemarkError('OneDrive did not say whose account this is.', {
    kind: 'transient',
    code: 'not-onedrive',
  })
}

function noDrive(person: Person, cause: TidemarkError): TidemarkError {
  return new TidemarkError(`The account ${accountName(person)} has no OneDrive.`, {
    kind: 'permanent',
    code: 'no-drive',
    cause,
    hint: 'Open OneDrive in a browser once with this account: that makes it. In an organisation it takes a licence for it.',
  })
}

const settingsSchema = z.object({
  userId: z.string().optional().catch(undefined),
  /** What was asked for: Microsoft also gives what was allowed on another occasion. */
  access: z.enum(ONEDRIVE_LEVELS).catch('readwrite'),
})

/** The account that this person has here already, though it may have had another address then. */
async function knownOneDrive(
  accounts: Accounts,
  profile: Pick<Profile, 'id' | 'name'>,
): Promise<Account | undefined> {
  const all = await accounts.list(ONEDRIVE)
  const ofUser = (account: Account): string | undefined => settingsSchema.parse(account.settings).userId
  const same = all.find((account) => ofUser(account) === profile.id)
  const namesake = all.find(({ name }) => name === profile.name)
  if (same || !namesake || ofUser(namesake) === undefined) return same ?? namesake
  // Its folders would be compared with the files of somebody else.
  throw new TidemarkError(
    `${profile.name} was the address of another account when it was connected here. Nothing was kept.`,
    {
      kind: 'auth',
      code: 'other-account',
      hint: `If the other one is not needed any more: tidemark account remove onedrive:${profile.name}`,
    },
  )
}

/** What is said of a drive: its type, and how full it is. */
function driveFacts({ type, quota }: OneDriveProfile['drive']): string[] {
  const { usedBytes, totalBytes } = quota ?? {}
  const used = usedBytes === undefined ? [] : [formatBytes(usedBytes)]
  const total = totalBytes === undefined || totalBytes === 0 ? [] : [`of ${formatBytes(totalBytes)}`]
  return [
    ...(type === 'unknown' ? [] : [type === 'documentLibrary' ? 'a document library' : `a ${type} drive`]),
    ...(used.length === 0 ? [] : [`${[...used, ...total].join(' ')} used`]),
  ]
}
