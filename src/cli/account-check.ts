/** `tidemark account check`: does the service still let us in, to what, and for how long? */
import { systemClock } from '../clock.ts'
import { openAccountTokens } from '../cloud/gmail/account-tokens.ts'
import { accessOf, type GmailAccess, type GmailSecret } from '../cloud/gmail/auth.ts'
import type { Config } from '../config/settings.ts'
import { asTidemarkError } from '../errors.ts'
import { formatCount } from '../format.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import { distance, isoTime } from '../moment.ts'
import { ACCESS_TEXT, GMAIL, type Profile, readProfile, readSecret } from '../server/gmail-account.ts'
import { openVault, type Vault } from '../vault.ts'
import { findAccount, noAccounts, withAccounts } from './account-list.ts'
import { type Concern, tokenConcerns } from './account-token-age.ts'
import { type CliContext, exitCodes } from './context.ts'

type Checked = {
  account: Account
  access?: GmailAccess | undefined
  profile?: Profile
  secret?: GmailSecret
  problems: Concern[]
  warnings: Concern[]
}

export async function checkAccounts(context: CliContext, name: string | undefined): Promise<void> {
  const checked = await withAccounts(context, async ({ accounts, config }) => {
    const { home } = await context.loadConfig()
    const chosen = name === undefined ? await accounts.list() : [await findAccount(accounts, name)]
    const vault = await openVault({ env: context.env, home: home.path, hasSealed: chosen.length > 0 })
    const checked: Checked[] = []
    for (const account of chosen) checked.push(await check({ account, accounts, vault, gmail: config.gmail }))
    return checked
  })
  if (!checked?.length && name !== undefined) throw noAccounts()
  if (checked?.some(({ problems }) => problems.length > 0)) context.exitCode = exitCodes.failure
  print(context, checked ?? [])
}

async function check(input: {
  account: Account
  accounts: Accounts
  vault: Vault
  gmail: Config['gmail']
}): Promise<Checked> {
  const { account, accounts, vault, gmail } = input
  const checked: Checked = { account, problems: [], warnings: [] }
  if (account.service !== GMAIL) return checked
  try {
    const tokens = await openAccountTokens({
      account,
      accounts,
      vault,
      fetch,
      clock: systemClock,
      tokenUrl: gmail.token_url,
    })
    // A kept access token may outlive what it was made from: only a new one proves that the sign-in holds.
    tokens.refused(await keptToken(input))
    const token = await tokens.access()
    checked.secret = await readSecret(input)
    checked.access = accessOf(checked.secret.scopes)
    if (checked.access === undefined) checked.problems.push(noAccess(account))
    checked.profile = await readProfile(gmail.api_url, token)
    if (checked.profile.address !== account.name) checked.warnings.push(renamed(account, checked.profile))
    checked.warnings.push(...tokenConcerns(checked.secret, systemClock.now()))
    if (account.state === 'sign-in' && checked.problems.length === 0) {
      await accounts.setState(account.id, 'ready')
      checked.account = { ...account, state: 'ready' }
    }
  } catch (thrown) {
    const { message, hint, code, kind } = asTidemarkError(thrown)
    checked.problems.push({ code: code ?? kind, text: message, hint })
    const [now] = (await accounts.list(account.service)).filter(({ id }) => id === account.id)
    checked.account = now ?? account
  }
  return checked
}

async function keptToken(input: { account: Account; accounts: Accounts; vault: Vault }): Promise<string> {
  const secret = await readSecret(input)
  return (secret.kind === 'oauth' && secret.accessToken) || ''
}

function noAccess(account: Account): Concern {
  return {
    code: 'scope-missing',
    text: 'It was not given the permission to read mail.',
    hint: `Connect it again: tidemark account add gmail --user ${account.name}`,
  }
}

function renamed(account: Account, profile: Profile): Concern {
  return {
    code: 'renamed',
    text: `Gmail calls this account ${profile.address} now.`,
    hint: `Its archive goes on under the name ${account.name}.`,
  }
}

function print({ output }: CliContext, checked: readonly Checked[]): void {
  if (output.json) {
    output.value(checked.map(toJson))
    return
  }
  if (checked.length === 0)
    output.note('No account is connected. Connect one with: tidemark account add gmail')
  const now = systemClock.now()
  for (const { account, access, profile, secret, problems, warnings } of checked) {
    const parts = [
      ...(access ? [`access: ${ACCESS_TEXT[access]}`] : []),
      ...(profile?.messages === undefined ? [] : [`${formatCount(profile.messages)} messages`]),
      ...(secret?.kind === 'oauth' ? [`signed in ${distance(secret.obtainedAtMs, now)}`] : []),
      ...(secret?.kind === 'service-account' ? [`by the service account ${secret.clientEmail}`] : []),
    ]
    const verdict = problems.length > 0 ? 'does not work' : 'works'
    output.line(`${account.name} ${verdict}${parts.length > 0 ? `: ${parts.join(', ')}` : '.'}`)
    for (const { text, hint } of [...problems, ...warnings]) {
      output.line(`  ${text}`)
      if (hint) output.line(`    ${hint}`)
    }
  }
}

function toJson({ account, access, profile, secret, problems, warnings }: Checked) {
  return {
    service: account.service,
    name: account.name,
    ok: problems.length === 0,
    state: account.state,
    access: access ?? null,
    messages: profile?.messages ?? null,
    tokenObtainedAt: secret?.kind === 'oauth' ? isoTime(secret.obtainedAtMs) : null,
    problems,
    warnings,
  }
}
