/** Where accounts and their sealed secrets are, whatever service they are of. */
import { type Account, type Accounts, accountKey } from '../ledger/accounts.ts'
import type { Vault } from '../vault.ts'

export type Shelf = { accounts: Accounts; vault: Vault }

export type ShelvedAccount = Shelf & { account: Account }

/** A mail address that may become an account's name: part of commands that people are told to type. */
export const ADDRESS = /^[^\s\p{C}@]{1,200}@[^\s\p{C}@]{1,119}$/u

/** What was sealed, as text. */
export async function openSecret({ accounts, vault, account }: ShelvedAccount): Promise<string> {
  return vault.open(accountKey(account), await accounts.sealed(account.id))
}

/** A new account, or a new secret for the one that is `known`: by one commit, which makes it ready again. */
export async function shelve(
  { accounts, vault }: Shelf,
  input: {
    service: string
    name: string
    known: Account | undefined
    secret: object
    settings: Record<string, unknown>
  },
): Promise<void> {
  const { service, name, known, secret, settings } = input
  const sealed = vault.seal(accountKey({ service, name }), JSON.stringify(secret))
  if (known) await accounts.reconnect(known.id, { sealed, settings })
  else await accounts.add({ service, name, settings, sealed })
}
