/** `tidemark account add gmail`: sign in, see whose account it is, keep its secret sealed. */
import { randomBytes } from 'node:crypto'
import type { MailChoices } from '../apps/mail-archive/account.ts'
import { systemClock } from '../clock.ts'
import { accessOf, GMAIL_SCOPES, type GmailAccess, type GmailSecret } from '../cloud/gmail/auth.ts'
import {
  authorizationUrl,
  createPkce,
  exchangeCode,
  type OAuthCalls,
  type OAuthClient,
  serviceAccountTokens,
  type Tokens,
} from '../cloud/oauth.ts'
import { TESTING_HINT } from '../cloud/oauth-errors.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { formatCount, formatDuration } from '../format.ts'
import { Accounts } from '../ledger/accounts.ts'
import type { Shelf } from '../server/account-shelf.ts'
import {
  ACCESS_TEXT,
  accessOfAccount,
  GMAIL,
  type KnownBefore,
  keepGmailAccount,
  oauthSecret,
  type Profile,
  readProfile,
  requireClient,
} from '../server/gmail-account.ts'
import { openVault } from '../vault.ts'
import type { AddOptions } from './account.ts'
import { showUrl } from './account-browser.ts'
import { readServiceAccount } from './account-gmail.ts'
import { type SignInHints, type SignInSteps, signInByLoopback } from './account-loopback.ts'
import { readLines, signInByPaste } from './account-prompt.ts'
import type { CliContext } from './context.ts'
import { withLedgerMade } from './ledger.ts'

type SignedIn = { secret: GmailSecret; profile: Profile }

export async function addGmail(context: CliContext, given: AddOptions): Promise<void> {
  const options = { ...given, user: given.user?.trim().toLowerCase() || undefined }
  checkOptions(options)
  const { values, home, file } = await context.loadConfig()
  const robot = options.serviceAccount === undefined ? undefined : readServiceAccount(options.serviceAccount)
  const client = robot ? undefined : requireClient(values.gmail, file.path)
  // Before anybody signs in: what could not be kept need not be asked for.
  await withLedgerMade(context, async ({ ledger }) => {
    const accounts = await Accounts.open(ledger)
    const hasSealed = (await accounts.list()).length > 0
    const vault = await openVault({ env: context.env, home: home.path, hasSealed })
    const shelf = { accounts, vault }
    const access = await wantedAccess(options, shelf)
    const attempt = { context, options, gmail: values.gmail, access }
    const signedIn = client ? await signIn(attempt, client) : await delegate(attempt, robot!)
    await keep(context, { shelf, signedIn, options })
  })
}

type Options = AddOptions & { user?: string | undefined }

function checkOptions(options: Options): void {
  if (options.device) {
    throw new UsageError('Google gives no device codes for mail.', {
      hint: 'On a machine without a browser use --paste.',
    })
  }
  if (options.serviceAccount !== undefined && options.user === undefined) {
    throw new UsageError('For whom shall the service account act?', {
      hint: 'Add --user ADDRESS: a user of the domain that has delegated to it.',
    })
  }
  const both = options.onlyLabel?.find((label) => options.skipLabel?.includes(label))
  if (both !== undefined) throw new UsageError(`The label ${both} is both to be archived and to be skipped.`)
  if ([...(options.onlyLabel ?? []), ...(options.skipLabel ?? [])].some((label) => label.trim() === '')) {
    throw new UsageError('A label has no name.')
  }
}

/** An account that is named and there keeps what it was allowed. */
async function wantedAccess(options: Options, shelf: Shelf): Promise<GmailAccess> {
  if (options.full) return 'full'
  if (options.readOnly) return 'readonly'
  const known = options.user === undefined ? undefined : await shelf.accounts.find(GMAIL, options.user)
  return (known && (await accessOfAccount({ ...shelf, account: known }))) ?? 'modify'
}

const HINTS: SignInHints = {
  denied:
    'Run the command again and allow it. If Google showed "access blocked", add yourself as a test user, or publish the app.',
  refused: 'Check the OAuth client in the Google Cloud console; it must be of the type "Desktop app".',
  elsewhere: '--paste serves when the browser is on another machine.',
}

type Attempt = { context: CliContext; options: Options; gmail: Config['gmail']; access: GmailAccess }

function signIn(attempt: Attempt, client: OAuthClient): Promise<SignedIn> {
  const { context, options, gmail, access } = attempt
  const pkce = createPkce((n) => randomBytes(n))
  const steps: SignInSteps<SignedIn> = {
    state: pkce.state,
    hints: HINTS,
    ask: (redirectUri) => {
      // `consent` brings a refresh token also to who has allowed this client before.
      const extra = {
        access_type: 'offline',
        prompt: 'consent',
        ...(options.user && { login_hint: options.user }),
      }
      const scopes = [GMAIL_SCOPES[access]]
      const { clientId } = client
      const url = authorizationUrl({ authUrl: gmail.auth_url, clientId, redirectUri, scopes, pkce, extra })
      const waitMs = options.paste ? undefined : options.wait
      showUrl(context.output, { url, open: options.open === true, waitMs })
    },
    finish: async (code, redirectUri) => {
      const tokens = await exchangeCode(callsTo(gmail), {
        ...client,
        code,
        verifier: pkce.verifier,
        redirectUri,
      })
      const secret = oauthSecret(tokens, client, { access, nowMs: systemClock.now() })
      return { secret, profile: await whose(attempt, tokens) }
    },
  }
  if (!options.paste) return signInByLoopback(steps, options.wait)
  const lines = readLines(context.output)
  return signInByPaste(steps, lines, context.output).finally(() => lines.close())
}

async function delegate(
  attempt: Attempt,
  robot: { clientEmail: string; privateKey: string },
): Promise<SignedIn> {
  const scopes = [GMAIL_SCOPES[attempt.access]]
  const secret = { kind: 'service-account' as const, ...robot, subject: attempt.options.user!, scopes }
  const tokens = await serviceAccountTokens(callsTo(attempt.gmail), secret)
  return { secret, profile: await whose(attempt, tokens) }
}

function callsTo(gmail: Config['gmail']): OAuthCalls {
  return { fetch, clock: systemClock, tokenUrl: gmail.token_url }
}

/**
 * Nothing is given back when this fails: Google takes a whole grant back with one token, and so the token that an
 * account may be using already.
 */
async function whose({ gmail, options }: Attempt, tokens: Tokens): Promise<Profile> {
  const profile = await readProfile(gmail.api_url, tokens.accessToken)
  if (options.user === undefined || options.user === profile.address) return profile
  throw new TidemarkError(`This is the account ${profile.address}, not ${options.user}. Nothing was kept.`, {
    kind: 'auth',
    code: 'other-account',
    hint: 'Sign in with the other account, or leave --user out.',
  })
}

async function keep(
  context: CliContext,
  { shelf, signedIn, options }: { shelf: Shelf; signedIn: SignedIn; options: Options },
): Promise<void> {
  const { secret, profile } = signedIn
  const id = { service: GMAIL, name: profile.address }
  const choices = chosen(options)
  const { settings, before } = await keepGmailAccount(shelf, { address: id.name, secret, choices })
  const access = accessOf(secret.scopes)
  if (context.output.json) {
    context.output.value({ ...id, state: 'ready', access, settings, reconnected: before !== undefined })
  } else {
    const kept = before && JSON.stringify(before.choices) === JSON.stringify(settings)
    const messages = profile.messages === undefined ? '' : `, ${formatCount(profile.messages)} messages`
    const how = !before ? 'is connected' : `is connected again; its settings ${kept ? 'stay' : 'are changed'}`
    context.output.line(`The Gmail account ${id.name} ${how} (${ACCESS_TEXT[access!]}${messages}).`)
  }
  notes(context, { secret, access, before })
}

function chosen(options: Options): Partial<MailChoices> {
  return {
    ...(options.spam !== undefined && { spam: options.spam }),
    ...(options.trash !== undefined && { trash: options.trash }),
    ...(options.onlyLabel && { onlyLabels: options.onlyLabel }),
    ...(options.skipLabel && { skipLabels: options.skipLabel }),
  }
}

function notes(
  { output }: CliContext,
  input: {
    secret: GmailSecret
    access: GmailAccess | undefined
    before: KnownBefore | undefined
  },
): void {
  const { secret, access } = input
  const accessBefore = input.before?.access
  if (accessBefore && access !== accessBefore) {
    output.note(`Before, it was allowed: ${ACCESS_TEXT[accessBefore]}.`)
  }
  if (secret.kind === 'service-account') {
    output.note('Its key is kept sealed; the key file is not needed any more.')
  } else if (secret.refreshExpiresAtMs !== undefined) {
    const left = formatDuration(secret.refreshExpiresAtMs - secret.obtainedAtMs)
    output.note(`This sign-in ends by itself in ${left}. ${TESTING_HINT}`)
  }
}
