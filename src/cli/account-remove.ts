/** `tidemark account remove`: the account is forgotten and its token given back; the archive stays. */
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { revokeToken } from '../cloud/oauth.ts'
import { asTidemarkError, UsageError } from '../errors.ts'
import { type Account, Accounts } from '../ledger/accounts.ts'
import { openVault } from '../vault.ts'
import { GMAIL, readSecret } from './account-gmail.ts'
import { findAccount } from './account-list.ts'
import { readLines } from './account-prompt.ts'
import type { CliContext } from './context.ts'
import { withLedger } from './ledger.ts'

export type RemoveOptions = { yes?: boolean; revoke: boolean }

/** `done`: given back. `kept`: not asked to. `none`: a service account has nothing to give back. */
type Revocation = { outcome: 'done' | 'kept' | 'none' } | { outcome: 'failed'; why: string }

export async function removeAccount(
  context: CliContext,
  text: string,
  options: RemoveOptions,
): Promise<void> {
  const { output } = context
  await withLedger(context, async ({ ledger }) => {
    const accounts = await Accounts.open(ledger)
    const account = await findAccount(accounts, text)
    if (!options.yes) await confirm(context, account)
    // First forgotten, then given back: a crash in between leaves a token, never an account without one.
    const revoke = options.revoke ? await prepareRevocation(context, { accounts, account }) : undefined
    await accounts.remove(account.id)
    const revocation: Revocation = revoke ? await revoke() : { outcome: 'kept' }
    const { home } = await context.loadConfig()
    const archive = join(home.path, 'mail')
    if (output.json) {
      output.value({
        service: account.service,
        name: account.name,
        removed: true,
        revoked: revocation.outcome,
        archive,
      })
      return
    }
    output.line(`The account ${account.name} is forgotten. What was archived of it stays in ${archive}.`)
    tell(context, account, revocation)
  })
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
