/**
 * Who asks. Every route and every tool is given the user; what is theirs is what was kept of their accounts, and an
 * account is of exactly one user.
 */
import { type Accounts, accountKey, OWNER_ID } from '../ledger/accounts.ts'
import type { User, Users } from '../ledger/users.ts'
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

/** The pages of one search, and the letters of what is typed for it, are one look. */
export const NOTED_ONCE_MS = 600_000

/**
 * Writes down that somebody looks at what was kept of others; before anything is looked at. The whole of it: what is cut
 * off, or left out, could be looked at without a trace. How long it may be is said by who reads the request.
 */
export function noteLook(
  { users }: { users: Pick<Users, 'note'> },
  user: RequestUser,
  { whose, what }: { whose: string; what: string },
): Promise<void> {
  return users.note(user, 'view-as', `${whose}: ${what}`, { onceInMs: NOTED_ONCE_MS })
}

/**
 * The same for what shows an account, or all of a service where none is named: for admins, whose own they need not be.
 * One's own accounts are nobody else's business. What is connected with no account, such as an archive of imported mail,
 * is the owner's; `names`: what there is of such, where none is named.
 */
export async function noteAccountLook(
  services: { accounts: Pick<Accounts, 'list'>; users: Pick<Users, 'note' | 'get'> },
  user: RequestUser,
  {
    service,
    account,
    names = [],
    what,
  }: { service: string; account: string | undefined; names?: readonly string[]; what: string },
): Promise<void> {
  const owners = new Map((await services.accounts.list(service)).map(({ name, userId }) => [name, userId]))
  const looked = account === undefined ? [...owners.keys(), ...names] : [account]
  const [other] = looked.map((name) => owners.get(name) ?? OWNER_ID).filter((id) => id !== user.id)
  if (other === undefined) return
  const whose = account === undefined ? 'everybody' : ((await services.users.get(other))?.name ?? `#${other}`)
  await noteLook(services, user, { whose, what })
}
