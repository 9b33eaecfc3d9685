/** `tidemark account check`: does the service still let us in, to what, and for how long? */

import { connectCommand } from '../../app/accounts/connecting.ts'
import { type CliContext, exitCodes } from '../../app/command.ts'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { isoTime } from '../../base/moment.ts'
import { openVault } from '../../base/vault.ts'
import {
  type AccountService,
  accessText,
  type Concern,
  type Profile,
  type SecretLook,
} from '../../cloud/account-service.ts'
import { openSecret, type StoredAccount } from '../../cloud/account-store.ts'
import type { ServiceCalls } from '../../cloud/client-setup.ts'
import { CONNECT_HINT, findService } from '../../cloud/registry.ts'
import type { Config } from '../../config/settings.ts'
import type { Account } from '../../ledger/accounts.ts'
import { findAccount, noAccounts, withAccounts } from './list.ts'

type Checked = {
  account: Account
  service: AccountService | undefined
  look?: SecretLook
  level?: string
  profile?: Profile
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

async function check(input: StoredAccount, config: Config): Promise<Checked> {
  const { account, accounts } = input
  const service = await findService(account.service)
  const checked: Checked = { account, service, problems: [], warnings: [] }
  if (!service) return checked
  const calls: ServiceCalls = { config, fetch: globalThis.fetch, clock: systemClock }
  try {
    await ask(service, { input, calls, checked })
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
  { input, calls, checked }: { input: StoredAccount; calls: ServiceCalls; checked: Checked },
): Promise<void> {
  const { account } = input
  const secret = async (): Promise<object> => service.parse(await openSecret(input))
  const tokens = await service.tokens(input, calls)
  // A kept access token may outlive what it was made from: only a new one proves that the sign-in holds.
  tokens.refused(service.look(await secret(), systemClock.now()).accessToken)
  await tokens.access()
  const now = await secret()
  checked.look = service.look(now, systemClock.now())
  const level = service.levelOf(now, account.settings)
  if (level === undefined) checked.problems.push(noAccess(service, account))
  else checked.level = level
  checked.profile = await service.profile(calls, tokens)
  if (checked.profile.name !== account.name) {
    checked.warnings.push(renamed(service, account, checked.profile))
  }
  checked.warnings.push(...checked.look.concerns)
}

function noAccess(service: AccountService, account: Account): Concern {
  return {
    code: 'scope-missing',
    text: `It was not given ${service.needs}.`,
    hint: `Connect it again: ${connectCommand(account, { service })}`,
  }
}

function renamed({ title }: AccountService, account: Account, { name }: Profile): Concern {
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
  for (const { account, service, look, level, profile, problems, warnings } of checked) {
    const parts = [
      ...(service && level !== undefined ? [`access: ${accessText(service, level)}`] : []),
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

function toJson({ account, service, look, level, profile, problems, warnings }: Checked) {
  return {
    service: account.service,
    name: account.name,
    ok: problems.length === 0,
    state: account.state,
    access: level ?? null,
    ...(profile?.details ?? service?.unknownDetails),
    tokenObtainedAt: look?.obtainedAtMs === undefined ? null : isoTime(look.obtainedAtMs),
    problems,
    warnings,
  }
}
