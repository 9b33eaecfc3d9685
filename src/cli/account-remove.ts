/** `tidemark account remove`: the account is forgotten and its token given back; the archive stays. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { revokeToken } from '../cloud/oauth.ts'
import { asTidemarkError, UsageError } from '../errors.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import { GMAIL, readSecret } from '../server/gmail-account.ts'
import { openVault } from '../vault.ts'
import { findAccount, noAccounts, withAccounts } from './account-list.ts'
import { readLines } from './account-prompt.ts'
import type { CliContext } from './context.ts'

export type RemoveOptions = { yes?: boolean; revoke: boolean }

/** `done`: given back. `kept`: not asked to. `none`: a service account has nothing to give back. */
type Revocation = { outcome: 'done' | 'kept' | 'none' } | { outcome: 'failed'; why: string }

export async function removeAccount(
  context: CliContext,
  text: string,
  options: RemoveOptions,
): Promise<void> {
  // Before anything is changed: afterwards only telling is left.
  const { folderName } = await import('../apps/mail-archive/account.ts')
  const { home } = await context.loadConfig()
  const removed = await withAccounts(context, async ({ accounts }) => {
    const account = await findAccount(accounts, text)
    if (!options.yes) await confirm(context, account)
    const revoke = options.revoke ? await prepareRevocation(context, { accounts, account }) : undefined
    // First forgotten, then given back: a crash in between leaves a token, never an account whose token is dead.
    await accounts.remove(account.id)
    return { account, revocation: revoke ? await revoke() : KEPT }
  })
  if (!removed) throw noAccounts()
  report(context, { ...removed, archive: join(home.path, 'mail', folderName(removed.account.name)) })
}

const KEPT: Revocation = { outcome: 'kept' }

function report(
  context: CliContext,
  { account, revocation, archive }: { account: Account; revocation: Revocation; archive: string },
): void {
  const { output } = context
  const { service, name } = account
  if (output.json) {
    output.value({ service, name, removed: true, revoked: revocation.outcome, archive })
    return
  }
  const stays = existsSync(archive)
    ? `What was archived of it stays in ${archive}.`
    : 'Nothing was archived of it.'
  output.line(`The account ${name} is forgotten. ${stays}`)
  tell(context, account, revocation)
}

async function confirm({ output }: CliContext, account: Account): Promise<void> {
  const hint = 'Say --yes where nobody can answer.'
  if (!process.stdin.isTTY) {
    throw new UsageError(`Shall the account ${account.name} be forgotten?`, { code: 'not-confirmed', hint })
  }
  const lines = readLines(output)
  try {
    const reply = await lines.next(`Forget the account ${account.name}? Its archive stays. [y/N] `)
    if (!/^y(?:es)?$/i.test(reply ?? ''))
      throw new UsageError('Nothing was changed.', { code: 'not-confirmed', hint })
  } finally {
    lines.close()
  }
}

/** Opens the secret while it is there; what is returned gives it back. A lost key or a broken secret stops nothing. */
async function prepareRevocation(
  context: CliContext,
  { accounts, account }: { accounts: Accounts; account: Account },
): Promise<() => Promise<Revocation>> {
  const { values, home } = await context.loadConfig()
  if (account.service !== GMAIL) return async () => ({ outcome: 'none' })
  try {
    const vault = await openVault({ env: context.env, home: home.path })
    const secret = await readSecret({ accounts, vault, account })
    if (secret.kind !== 'oauth') return async () => ({ outcome: 'none' })
    return async () => {
      try {
        const calls = { fetch, clock: systemClock, revokeUrl: values.gmail.revoke_url }
        await revokeToken(calls, secret.refreshToken)
        return { outcome: 'done' }
      } catch (thrown) {
        return { outcome: 'failed', why: asTidemarkError(thrown).message }
      }
    }
  } catch (thrown) {
    const why = asTidemarkError(thrown).message
    return async () => ({ outcome: 'failed', why })
  }
}

function tell({ output }: CliContext, account: Account, revocation: Revocation): void {
  if (revocation.outcome === 'done') output.note('Its token was given back: it opens nothing any more.')
  if (revocation.outcome !== 'failed') return
  output.note(`Its token could not be given back: ${revocation.why}`)
  output.note(
    `Take the access away at https://myaccount.google.com/permissions, signed in as ${account.name}.`,
  )
}
