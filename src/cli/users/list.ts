/** `tidemark users list` and `audit`, and finding the user that a command names. */
import type { CliContext } from '../../app/command.ts'
import { openIfThere, withLedgerMade } from '../../app/with-ledger.ts'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { distance, isoTime } from '../../base/moment.ts'
import { Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type AuditEntry, type User, Users } from '../../ledger/users.ts'
import { didYouMean } from '../output/input.ts'

export async function findUser(users: Users, name: string): Promise<User> {
  const found = await users.find(name)
  if (found) return found
  const names = (await users.list()).map((user) => user.name)
  throw new UsageError(`There is no user ${name}${didYouMean(name, names)}`, {
    code: 'user-unknown',
    hint: `There are: ${names.join(', ')}. Add one with: tidemark users add NAME`,
  })
}

/** For what changes something about users: the ledger is made where there is none yet. */
export function withUsers<T>(
  context: CliContext,
  use: (opened: { users: Users; accounts: Accounts; ledger: Ledger }) => Promise<T>,
): Promise<T> {
  return withLedgerMade(context, async ({ ledger }) =>
    use({ users: await Users.open(ledger), accounts: await Accounts.open(ledger), ledger }),
  )
}

type ListedUser = User & { accounts: readonly string[]; tokens: number }

export async function listUsers(context: CliContext): Promise<void> {
  const { ledger } = await openIfThere(context)
  const rows = ledger ? await readUsers(ledger).finally(() => ledger.close()) : []
  const now = systemClock.now()
  context.output.listing({
    columns: [
      { title: 'user', value: ({ name }) => name },
      { title: 'role', value: ({ role }) => role },
      { title: 'state', value: ({ state }) => state },
      { title: 'accounts', value: ({ accounts }) => accounts.join(', ') },
      { title: 'tokens', value: ({ tokens }) => String(tokens) },
      { title: 'added', value: ({ createdAtMs }) => distance(createdAtMs, now) },
    ],
    rows,
    json: rows.map(({ createdAtMs, ...user }) => ({ ...user, createdAt: isoTime(createdAtMs) })),
    empty: 'There is no ledger yet; whoever brings the token of the server is its owner.',
  })
}

async function readUsers(ledger: Ledger): Promise<ListedUser[]> {
  const users = await Users.open(ledger)
  const accounts = await (await Accounts.open(ledger)).list()
  const listed: ListedUser[] = []
  for (const user of await users.list()) {
    const own = accounts.filter(({ userId }) => userId === user.id).map(accountKey)
    listed.push({ ...user, accounts: own, tokens: (await users.tokens(user.id)).length })
  }
  return listed
}

export async function listAudit(context: CliContext, limit: number): Promise<void> {
  const { ledger } = await openIfThere(context)
  const read = async (opened: Ledger): Promise<AuditEntry[]> => (await Users.open(opened)).audit({ limit })
  const rows = ledger ? await read(ledger).finally(() => ledger.close()) : []
  const now = systemClock.now()
  context.output.listing({
    columns: [
      { title: 'when', value: ({ atMs }) => distance(atMs, now) },
      { title: 'who', value: ({ userName }) => userName },
      { title: 'did', value: ({ action }) => action },
      { title: 'about', value: ({ subject }) => subject },
    ],
    rows,
    json: rows.map(({ atMs, ...entry }) => ({ ...entry, at: isoTime(atMs) })),
    empty: 'Nothing was done yet.',
  })
}
