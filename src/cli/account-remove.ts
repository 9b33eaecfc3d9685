/** `tidemark account remove`: the account is forgotten and its token given back; what was kept of it stays. */
import { asTidemarkError, UsageError } from '../errors.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openVault } from '../vault.ts'
import { findAccount, noAccounts, withAccounts } from './account-list.ts'
import { readLines } from './account-prompt.ts'
import { type Remains, type Revocation, serviceOf } from './account-service.ts'
import type { CliContext } from './context.ts'

export type RemoveOptions = { yes?: boolean; force?: boolean; revoke: boolean }

type Removed = { account: Account; remains: Remains; revocation: Revocation }

export async function removeAccount(
  context: CliContext,
  text: string,
  options: RemoveOptions,
): Promise<void> {
  const removed = await withAccounts(context, async ({ accounts, ledger }): Promise<Removed> => {
    const account = await findAccount(accounts, text)
    // Before anything is changed: afterwards only telling is left.
    const remains = await remainsOf(context, account, ledger)
    if (remains.inUse && !options.force) throw remains.inUse
    if (!options.yes) await confirm(context, account, remains)
    const revoke = options.revoke ? await prepareRevocation(context, { accounts, account }) : undefined
    // First forgotten, then given back: a crash in between leaves a token, never an account whose token is dead.
    await accounts.remove(account.id)
    return { account, remains, revocation: revoke ? await revoke() : { outcome: 'kept' } }
  })
  if (!removed) throw noAccounts()
  report(context, removed)
}

async function remainsOf(context: CliContext, account: Account, ledger: Ledger): Promise<Remains> {
  const { home } = await context.loadConfig()
  const known = await serviceOf(account)?.remains(account, { ledger, home: home.path })
  return known ?? { question: 'What was kept of it stays.', text: 'What was kept of it stays.', details: {} }
}

function report(context: CliContext, { account, remains, revocation }: Removed): void {
  const { output } = context
  const { service, name } = account
  if (output.json) {
    output.value({ service, name, removed: true, revoked: revocation.outcome, ...remains.details })
    return
  }
  output.line(`The account ${name} is forgotten. ${remains.text}`)
  tell(context, account, revocation)
}

async function confirm({ output }: CliContext, account: Account, { question }: Remains): Promise<void> {
  const hint = 'Say --yes where nobody can answer.'
  if (!process.stdin.isTTY) {
    throw new UsageError(`Shall the account ${account.name} be forgotten?`, { code: 'not-confirmed', hint })
  }
  const lines = readLines(output)
  try {
    const reply = await lines.next(`Forget the account ${account.name}? ${question} [y/N] `)
    if (!/^y(?:es)?$/i.test(reply ?? ''))
      throw new UsageError('Nothing was changed.', { code: 'not-confirmed', hint })
  } finally {
    lines.close()
  }
}

/** A lost key or a broken secret stops nothing. */
async function prepareRevocation(
  context: CliContext,
  { accounts, account }: { accounts: Accounts; account: Account },
): Promise<() => Promise<Revocation>> {
  const { values, home } = await context.loadConfig()
  const service = serviceOf(account)
  if (!service) return async () => ({ outcome: 'none' })
  try {
    const vault = await openVault({ env: context.env, home: home.path })
    return await service.prepareRevocation({ accounts, vault, account }, values)
  } catch (thrown) {
    const why = asTidemarkError(thrown).message
    return async () => ({ outcome: 'failed', why })
  }
}

function tell({ output }: CliContext, account: Account, revocation: Revocation): void {
  const { company = 'The service', withdrawal } = serviceOf(account) ?? {}
  const byHand = `Take the access away at ${withdrawal?.(account)}.`
  switch (revocation.outcome) {
    case 'done':
      output.note('Its token was given back: it opens nothing any more.')
      return
    case 'by-hand':
      output.note(`${company} lets no program give a token back. ${byHand}`)
      return
    case 'failed':
      output.note(`Its token could not be given back: ${revocation.why}`)
      output.note(byHand)
  }
}
