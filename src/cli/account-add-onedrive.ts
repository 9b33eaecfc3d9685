/** `tidemark account add onedrive`: sign in, see whose account it is, keep its secret sealed. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../clock.ts'
import { createPkce, type OAuthCalls, type OAuthClient } from '../cloud/oauth.ts'
import {
  type OneDriveAccess,
  type OneDriveSecret,
  signInByCode,
  signInByDevice,
  signInUrl,
} from '../cloud/onedrive/auth.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { Accounts } from '../ledger/accounts.ts'
import type { Shelf } from '../server/account-shelf.ts'
import {
  keepOneDriveAccount,
  knownOneDrive,
  newToken,
  ONEDRIVE,
  ONEDRIVE_ACCESS_TEXT,
  type OneDriveProfile,
  readOneDriveProfile,
  requireApp,
  requireAsked,
} from '../server/onedrive-account.ts'
import { openVault } from '../vault.ts'
import type { AddOptions } from './account.ts'
import { openBrowser, sayWaiting, showUrl } from './account-browser.ts'
import {
  refusedError,
  type SignInHints,
  type SignInSteps,
  signInByLoopback,
  waitedTooLong,
} from './account-loopback.ts'
import { driveFacts } from './account-service-onedrive.ts'
import type { CliContext } from './context.ts'
import { withLedgerMade } from './ledger.ts'

type SignedIn = { secret: OneDriveSecret; profile: OneDriveProfile }

type Attempt = {
  context: CliContext
  options: AddOptions
  user: string | undefined
  onedrive: Config['onedrive']
  client: OAuthClient
  access: OneDriveAccess
  shelf: Shelf
}

export async function addOneDrive(context: CliContext, options: AddOptions): Promise<void> {
  refuseMailFlags(options)
  const { values, home, file } = await context.loadConfig()
  const client = requireApp(values.onedrive, file.path)
  // Before anybody signs in: what could not be kept need not be asked for.
  await withLedgerMade(context, async ({ ledger }) => {
    const accounts = await Accounts.open(ledger)
    const hasSealed = (await accounts.list()).length > 0
    const vault = await openVault({ env: context.env, home: home.path, hasSealed })
    const attempt: Attempt = {
      ...{ context, options, client, onedrive: values.onedrive, shelf: { accounts, vault } },
      user: options.user?.trim().toLowerCase() || undefined,
      access: options.readOnly ? 'readonly' : 'readwrite',
    }
    const signedIn = options.device ? await byDevice(attempt) : await byLoopback(attempt)
    await keep(attempt, signedIn)
  })
}

const MAIL_FLAGS: readonly [keyof AddOptions, string][] = [
  ['serviceAccount', '--service-account'],
  ['full', '--full'],
  ['spam', '--spam and --no-spam'],
  ['trash', '--trash and --no-trash'],
  ['onlyLabel', '--only-label'],
  ['skipLabel', '--skip-label'],
]

function refuseMailFlags(options: AddOptions): void {
  if (options.paste) {
    throw new UsageError('An account of OneDrive is not connected by pasting.', {
      hint: 'On a machine without a browser use --device: it gives a code to type on another one.',
    })
  }
  const [, flag] = MAIL_FLAGS.find(([key]) => options[key] !== undefined) ?? []
  if (flag !== undefined) throw new UsageError(`${flag} is for Gmail: OneDrive has nothing like it.`)
}

const HINTS: SignInHints = {
  denied:
    'Run the command again and allow it. In an organisation an administrator may have to allow the app first.',
  refused:
    'Check the app registration: its redirect must be http://localhost, for "Mobile and desktop applications".',
  elsewhere: '--device serves when the browser is on another machine.',
}

function byLoopback(attempt: Attempt): Promise<SignedIn> {
  const { context, options, onedrive, client, access, user } = attempt
  const pkce = createPkce((n) => randomBytes(n))
  const steps: SignInSteps<SignedIn> = {
    state: pkce.state,
    // Of all addresses, Microsoft lets only this one have any port.
    host: 'localhost',
    hints: HINTS,
    ask: (redirectUri) => {
      const { clientId } = client
      const url = signInUrl({ authUrl: onedrive.auth_url, clientId, redirectUri, access, pkce, user })
      showUrl(context.output, { url, open: options.open === true, waitMs: options.wait })
    },
    finish: async (code, redirectUri) => {
      const input = { ...client, code, verifier: pkce.verifier, redirectUri }
      return identify(attempt, await signInByCode(callsTo(onedrive), input))
    },
  }
  return signInByLoopback(steps, options.wait)
}

async function byDevice(attempt: Attempt): Promise<SignedIn> {
  const { context, options, onedrive, client, access } = attempt
  const { output } = context
  const stop = new AbortController()
  const calls = { ...callsTo(onedrive), deviceUrl: onedrive.device_url, signal: stop.signal }
  const { code, finish } = await signInByDevice(calls, { ...client, access })
  output.note('Open this address in a browser, on this or any other device:')
  output.note(code.verificationUrl)
  output.note(`Type this code there, and sign in: ${code.userCode}`)
  const waitMs = Math.min(options.wait, Math.max(0, code.expiresAtMs - systemClock.now()))
  sayWaiting(output, waitMs)
  if (options.open) openBrowser(output, code.verificationUrl)
  const elsewhere = 'the code can be typed on any device.'
  const cancel = systemClock.timer(options.wait, () => stop.abort(waitedTooLong(options.wait, { elsewhere })))
  try {
    return await identify(attempt, await finish())
  } catch (thrown) {
    throw deviceError(thrown)
  } finally {
    cancel()
  }
}

/** In the words of the person who types the code. */
function deviceError(thrown: unknown): unknown {
  if (!(thrown instanceof TidemarkError)) return thrown
  if (thrown.code === 'authorization_declined' || thrown.code === 'access_denied') {
    return refusedError('access_denied', HINTS)
  }
  if (thrown.code !== 'expired_token') return thrown
  return new TidemarkError('The code has ended: nobody signed in with it in time.', {
    ...{ kind: 'auth', code: 'expired_token', cause: thrown },
    hint: 'Run the command again for a new code, and type it while it is valid.',
  })
}

function callsTo(onedrive: Config['onedrive']): OAuthCalls {
  return { fetch, clock: systemClock, tokenUrl: onedrive.token_url }
}

/** While the browser still waits for its page: it shall not say that all is well when it is not. */
async function identify(attempt: Attempt, secret: OneDriveSecret): Promise<SignedIn> {
  const { onedrive, access, user, shelf } = attempt
  requireAsked(secret, access)
  const profile = await readOneDriveProfile(onedrive.api_url, newToken(secret))
  const known = await knownOneDrive(shelf.accounts, profile)
  if (user === undefined || user === profile.name || user === known?.name) return { secret, profile }
  throw new TidemarkError(`This is the account ${profile.name}, not ${user}. Nothing was kept.`, {
    kind: 'auth',
    code: 'other-account',
    hint: 'Sign in with the other account, or leave --user out.',
  })
}

async function keep({ context: { output }, shelf, access }: Attempt, signedIn: SignedIn): Promise<void> {
  const { name, before } = await keepOneDriveAccount(shelf, { ...signedIn, access })
  if (output.json) {
    const { type } = signedIn.profile.drive
    const told = { service: ONEDRIVE, name, state: 'ready', access, drive: { type } }
    output.value({ ...told, reconnected: before !== undefined })
  } else {
    const facts = [ONEDRIVE_ACCESS_TEXT[access], ...driveFacts(signedIn.profile)].join(', ')
    output.line(`The OneDrive account ${name} is connected${before ? ' again' : ''} (${facts}).`)
  }
  if (before?.access && before.access !== access) {
    output.note(`Before, it was allowed: ${ONEDRIVE_ACCESS_TEXT[before.access]}.`)
  }
}
