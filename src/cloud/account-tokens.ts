/**
 * The token source of an account that the ledger knows: its secret comes from the vault and goes back to it.
 *
 * Several processes may use one account. A save is written only over what this process has read, so that a token
 * that was refreshed from an old secret never replaces what somebody has connected anew.
 */
import type { Clock } from '../base/clock.ts'
import type { Vault } from '../base/vault.ts'
import { type Account, type Accounts, accountKey } from '../ledger/accounts.ts'
import type { Fetch } from './oauth.ts'
import { type Grant, GrantedTokens, type TokenSource } from './token-source.ts'

export type AccountTokensInput = {
  account: Account
  accounts: Accounts
  vault: Vault
  fetch: Fetch
  clock: Clock
  tokenUrl: string
}

/** How a service's secrets are read. */
export type SecretForm<S> = {
  parse(text: string): S
  refreshTokenOf(secret: S): string | undefined
}

/** Each time somebody else has written in between, the stored secret is looked at again. */
const SAVE_TRIES_MAX = 5

export async function openGrantedTokens<S>(
  input: AccountTokensInput & SecretForm<S> & { grant: Grant<S> },
): Promise<TokenSource> {
  const kept = new KeptSecret<S>(input)
  const secret = await kept.read()
  return new GrantedTokens<S>({
    grant: input.grant,
    secret,
    clock: input.clock,
    save: (changed) => kept.save(changed),
    reload: () => kept.read(),
    onLost: () => input.accounts.setState(input.account.id, 'sign-in'),
  })
}

class KeptSecret<S> {
  readonly #input: AccountTokensInput & SecretForm<S>
  #sealed: Uint8Array = new Uint8Array()
  #refreshToken: string | undefined

  constructor(input: AccountTokensInput & SecretForm<S>) {
    this.#input = input
  }

  async read(): Promise<S> {
    const { account, accounts, vault, parse } = this.#input
    this.#sealed = await accounts.sealed(account.id)
    const secret = parse(vault.open(accountKey(account), this.#sealed))
    this.#refreshToken = this.#input.refreshTokenOf(secret)
    return secret
  }

  async save(secret: S): Promise<void> {
    const { account, accounts, vault } = this.#input
    const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
    const before = this.#refreshToken
    for (let tries = 1; tries <= SAVE_TRIES_MAX; tries += 1) {
      if (await accounts.setSealed(account.id, sealed, this.#sealed)) {
        this.#sealed = sealed
        this.#refreshToken = this.#input.refreshTokenOf(secret)
        return
      }
      // Another process has kept an access token of its own, which can go; or the account was connected anew.
      const stored = await this.read()
      if (this.#input.refreshTokenOf(stored) !== before) return
    }
  }
}

/** The vault is opened by the first call: who only reads what is stored here needs no secret. */
export function lazyTokens(open: () => Promise<TokenSource>): TokenSource {
  let opening: Promise<TokenSource> | undefined
  let opened: TokenSource | undefined
  return {
    async access(signal) {
      opening ??= open()
      // A failure is not kept: the key may be there the next time.
      opening.catch(() => {
        opening = undefined
      })
      opened = await opening
      return opened.access(signal)
    },
    refused: (token) => opened?.refused(token),
  }
}
