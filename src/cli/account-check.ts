/** `tidemark account check`: does the service still let us in, to what, and for how long? */
import { systemClock } from '../clock.ts'
import type { Config } from '../config/settings.ts'
import { asTidemarkError } from '../errors.ts'
import type { Account } from '../ledger/accounts.ts'
import { isoTime } from '../moment.ts'
import type { ShelvedAccount } from '../server/account-shelf.ts'
import { openVault } from '../vault.ts'
import { findAccount, noAccounts, withAccounts } from './account-list.ts'
import {
  type AccountService,
  CONNECT_HINT,
  connectCommand,
  type ProfileLook,
  type SecretLook,
  serviceOf,
} from './account-service.ts'
import type { Concern } from './account-token-age.ts'
import { type CliContext, exitCodes } from './context.ts'

type Checked = {
  account: Account
  look?: SecretLook
  profile?: ProfileLook
  problems: Concern[]
  warnings: Concern[]
}

export async function checkAccounts(context: CliContext, name: string | undefined): Promise<void> {
  const checked = await withAccounts(context, async ({ accounts, config }) => {
    const { home } = await context.loadConfig()
    const chosen = name === undefined ? await accounts.list() : [await findAccount(accounts, name)]
    const vault = await openVault({ env: context.env, home: home.path, hasSealed: chosen.length > 0 })
    const checked: Checked[] = []
    for (const account of chosen) checked.push(await check({ account, accounts, vault }, config))
    return checked
  })
  if (!checked?.length && name !== undefined) throw noAccounts()
  if (checked?.some(({ problems }) => problems.length > 0)) context.exitCode = exitCodes.failure
  print(context, checked ?? [])
}

async function check(input: ShelvedAccount, config: Config): Promise<Checked> {
  const { account, accounts } = input
  const checked: Checked = { account, problems: [], warnings: [] }
  const service = serviceOf(account)
  if (!service) return checked
  try {
    await ask(service, { input, config, checked })
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

/** What is known already stays in `checked` when the next question fails. */
async function ask(
  service: AccountService,
  { input, config, checked }: { input: ShelvedAccount; config: Config; checked: Checked },
): Promise<void> {
  const { account } = input
  const tokens = await service.tokens(input, config)
  // A kept access token may outlive what it was made from: only a new one proves that the sign-in holds.
  tokens.refused((await service.look(input, systemClock.now())).accessToken)
  await tokens.access()
  checked.look = await service.look(input, systemClock.now())
  const { access, concerns } = checked.look
  if (!access) checked.problems.push(noAccess(service, account))
  checked.profile = await service.profile(config, tokens)
  if (checked.profile.name !== account.name) {
    checked.warnings.push(renamed(service, account, checked.profile))
  }
  checked.warnings.push(...concerns)
}

function noAccess({ needs }: AccountService, account: Account): Concern {
  return {
    code: 'scope-missing',
    text: `It was not given ${needs}.`,
    hint: `Connect it again: ${connectCommand(account)}`,
  }
}

function renamed({ title }: AccountService, account: Account, { name }: ProfileLook): Concern {
  return {
    code: 'renamed',
    text: `${title} calls this account ${name} now.`,
    hint: `What is kept of it goes on under the name ${account.name}.`,
  }
}

function print({ output }: CliContext, checked: readonly Checked[]): void {
  if (output.json) {
    output.value(checked.map(toJson))
    return
  }
  if (checked.length === 0) output.note(`No account is connected. ${CONNECT_HINT}`)
  for (const { account, look, profile, problems, warnings } of checked) {
    const parts = [
      ...(look?.access ? [`access: ${look.access.text}`] : []),
      ...(profile?.facts ?? []),
      ...(look?.signIn ? [look.signIn] : []),
    ]
    const verdict = problems.length > 0 ? 'does not work' : 'works'
    output.line(`${account.name} ${verdict}${parts.length > 0 ? `: ${parts.join(', ')}` : '.'}`)
    for (const { text, hint } of [...problems, ...warnings]) {
      output.line(`  ${text}`)
      if (hint) output.line(`    ${hint}`)
    }
  }
}

function toJson({ account, look, profile, problems, warnings }: Checked) {
  return {
    service: account.service,
    name: account.name,
    ok: problems.length === 0,
    state: account.state,
    access: look?.access?.level ?? null,
    ...(profile?.details ?? serviceOf(account)?.unknownDetails),
    tokenObtainedAt: look?.obtainedAtMs === undefined ? null : isoTime(look.obtainedAtMs),
    problems,
    warnings,
  }
}
