/** `tidemark account remove`: the account is forgotten and its token given back; what was kept of it stays. */
import { type Remains, remainsOf, usesOf } from '../../app/accounts/account-use.ts'
import { forgetAccount, revocationTexts } from '../../app/accounts/removal.ts'
import type { CliContext } from '../../app/command.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { openVault } from '../../base/vault.ts'
import { findService } from '../../cloud/registry.ts'
import type { Account } from '../../ledger/accounts.ts'
import { readLines, saysYes } from '../output/prompt.ts'
import { findAccount, noAccounts, withAccounts } from './list.ts'

export type RemoveOptions = { yes?: boolean; force?: boolean; revoke: boolean }

export async function removeAccount(
  context: CliContext,
  text: string,
  options: RemoveOptions,
): Promise<void> {
  const { output, env } = context
  const { home } = await context.loadConfig()
  const removed = await withAccounts(context, async ({ accounts, ledger, config }) => {
    const account = await findAccount(accounts, text)
    const service = await findService(account.service)
    const uses = await usesOf(apps, account.service)
    // Before anything is changed: afterwards only telling is left.
    const remains = await remainsOf(uses, account, { ledger, home: home.path })
    if (remains.inUse && !options.force) throw remains.inUse
    if (!options.yes) await confirm(context, account, remains)
    const stored = async () => ({ accounts, account, vault: await openVault({ env, home: home.path }) })
    const calls = { config, fetch: globalThis.fetch, clock: systemClock }
    const revoked = options.revoke ? { stored, calls } : undefined
    const revocation = await forgetAccount(service, { accounts, account, revoked })
    return { account, service, remains, revocation }
  })
  if (!removed) throw noAccounts()
  const { account, service, remains, revocation } = removed
  const { name } = account
  if (output.json) {
    const told = { service: account.service, name, removed: true, revoked: revocation.outcome }
    output.value({ ...told, ...remains.details })
    return
  }
  output.line(`The account ${name} is forgotten. ${remains.text}`)
  if (revocation.outcome === 'done') output.note('Its token was given back: it opens nothing any more.')
  for (const line of revocationTexts(service, account, revocation)) output.note(line)
}

async function confirm({ output }: CliContext, account: Account, { question }: Remains): Promise<void> {
  const hint = 'Say --yes where nobody can answer.'
  if (!process.stdin.isTTY) {
    throw new UsageError(`Shall the account ${account.name} be forgotten?`, { code: 'not-confirmed', hint })
  }
  if (!(await saysYes(readLines(output), `Forget the account ${account.name}? ${question}`)))
    throw new UsageError('Nothing was changed.', { code: 'not-confirmed', hint })
}
