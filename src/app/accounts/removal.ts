/** Forgetting an account: its secret is given back where that can be done, and what was kept of it stays. */
import { asTidemarkError } from '../../base/errors.ts'
import type { AccountService, Revocation } from '../../cloud/account-service.ts'
import { openSecret, type StoredAccount } from '../../cloud/account-store.ts'
import type { ServiceCalls } from '../../cloud/client-setup.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'

/** `stored`: where the secret is to be given back; a lost key or a broken secret stops nothing. */
export async function forgetAccount(
  service: AccountService | undefined,
  input: {
    accounts: Accounts
    account: Account
    revoked?: { stored: () => Promise<StoredAccount>; calls: ServiceCalls } | undefined
  },
): Promise<Revocation> {
  const { accounts, account, revoked } = input
  const revoke = revoked && (await prepareRevocation(service, revoked))
  // First forgotten, then given back: a crash in between leaves a token, never an account whose token is dead.
  await accounts.remove(account.id)
  return revoke ? await revoke() : { outcome: 'kept' }
}

/** Opens the secret while it is there; what is returned gives it back. */
async function prepareRevocation(
  service: AccountService | undefined,
  { stored, calls }: { stored: () => Promise<StoredAccount>; calls: ServiceCalls },
): Promise<() => Promise<Revocation>> {
  if (!service) return async () => ({ outcome: 'none' })
  if (!service.revoke) return async () => ({ outcome: 'by-hand' })
  const failed = (thrown: unknown): Revocation => ({
    outcome: 'failed',
    why: asTidemarkError(thrown).message,
  })
  try {
    const secret = service.parse(await openSecret(await stored()))
    return () => service.revoke!(secret, calls).catch(failed)
  } catch (thrown) {
    return async () => failed(thrown)
  }
}

/** What the person has to know of it, sentence by sentence. */
export function revocationTexts(
  service: AccountService | undefined,
  account: Account,
  revocation: Revocation,
): string[] {
  const byHand = service ? [`Take the access away at ${service.withdrawal(account)}.`] : []
  switch (revocation.outcome) {
    case 'by-hand':
      return [`${service?.company ?? 'The service'} lets no program give a token back. ${byHand}`]
    case 'failed':
      return [`Its token could not be given back: ${revocation.why}`, ...byHand]
    default:
      return []
  }
}
