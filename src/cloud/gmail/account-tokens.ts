/**
 * The token source of an account that the ledger knows: its secret comes from the vault and goes back to it.
 *
 * Several processes may use one account. A save is written only over what this process has read, so that a token
 * that was refreshed from an old secret never replaces what somebody has connected anew.
 */
import type { Clock } from '../../clock.ts'
import { type Account, type Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Vault } from '../../vault.ts'
import type { Fetch } from '../oauth.ts'
import { createTokenSource, type GmailSecret, parseGmailSecret, type TokenSource } from './auth.ts'

export type AccountTokensInput = {
  account: Account
  accounts: Accounts
  vault: Vault
  fetch: Fetch
  clock: Clock
  tokenUrl: string
}

/** Each time somebody else has written in between, the stored secret is looked at again. */
const SAVE_TRIES_MAX = 5

export async function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  const kept = new KeptSecret(input)
  const secret = await kept.read()
  return createTokenSource({
    secret,
    save: (changed) => kept.save(changed),
    reload: () => kept.read(),
    onLost: () => input.accounts.setState(input.account.id, 'sign-in'),
    fetch: input.fetch,
    clock: input.clock,
    tokenUrl: input.tokenUrl,
  })
}

class KeptSecret {
  readonly #input: AccountTokensInput
  #sealed: Uint8Array = new Uint8Array()
  #refreshToken: string | undefined

  constructor(input: AccountTokensInput) {
    this.#input = input
  }

  async read(): Promise<GmailSecret> {
    const { account, accounts, vault } = this.#input
    this.#sealed = await accounts.sealed(account.id)
    const secret = parseGmailSecret(vault.open(accountKey(account), this.#sealed))
    this.#refreshToken = refreshTokenOf(secret)
    return secret
  }

  async save(secret: GmailSecret): Promise<void> {
    const { account, accounts, vault } = this.#input
    const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
    const before = this.#refreshToken
    for (let tries = 1; tries <= SAVE_TRIES_MAX; tries += 1) {
      if (await accounts.setSealed(account.id, sealed, this.#sealed)) {
        this.#sealed = sealed
        this.#refreshToken = refreshTokenOf(secret)
        return
      }
      // Another process has kept an access token of its own, which can go; or the account was connected anew.
      const stored = await this.read()
      if (refreshTokenOf(stored) !== before) return
    }
  }
}

function refreshTokenOf(secret: GmailSecret): string | undefined {
  return secret.kind === 'oauth' ? secret.refreshToken : undefined
}
