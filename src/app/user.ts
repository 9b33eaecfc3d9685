/**
 * Who asks. Every route and every tool is given the user; what is theirs is what was kept of their accounts, and an
 * account is of exactly one user.
 */
import { type Accounts, accountKey, OWNER_ID } from '../ledger/accounts.ts'
import type { User } from '../ledger/users.ts'
import type { Reader } from '../search/contract.ts'

export type RequestUser = Readonly<Pick<User, 'id' | 'name' | 'role'>>

/** Whoever brings the server's own token, or works on its machine. */
export const OWNER: RequestUser = { id: OWNER_ID, name: 'owner', role: 'admin' }

/** Of a request that nobody has to sign in for. Has no accounts, and sees nothing. */
export const NOBODY: RequestUser = { id: 0, name: '', role: 'member' }

/** With whose eyes a user searches: looked up with each request, so that what was taken away is gone with the next. */
export async function readerOf(
  { accounts }: { accounts: Pick<Accounts, 'ofUser'> },
  user: Pick<RequestUser, 'id'>,
): Promise<Reader> {
  return { principals: (await accounts.ofUser(user.id)).map(accountKey) }
}
