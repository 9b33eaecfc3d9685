/** Where accounts and their sealed secrets are, whatever service they are of. */
import type { Vault } from '../base/vault.ts'
import { type Account, type Accounts, accountKey } from '../ledger/accounts.ts'

export type AccountStore = { accounts: Accounts; vault: Vault }

export type StoredAccount = AccountStore & { account: Account }

/** A mail address that may become an account's name: part of commands that people are told to type. */
export const ADDRESS = /^[^\s\p{C}@]{1,200}@[^\s\p{C}@]{1,119}$/u

/** What was sealed, as text. */
export async function openSecret({ accounts, vault, account }: StoredAccount): Promise<string> {
  return vault.open(accountKey(account), await accounts.sealed(account.id))
}
