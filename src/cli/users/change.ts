/** Adding, changing and removing users. Whoever may read the home of Tidemark is its owner, and does it as such. */
import type { CliContext } from '../../app/command.ts'
import { OWNER } from '../../app/user.ts'
import { apps } from '../../apps/registry.ts'
import { accountKey } from '../../ledger/accounts.ts'
import type { User, UserRole, UserState } from '../../ledger/users.ts'
import { findAccount } from '../account/list.ts'
import { findUser, withUsers } from './list.ts'

export async function addUser(context: CliContext, input: { name: string; role: UserRole }): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await users.add(input)
    await users.note(OWNER, 'user-added', `${user.name} as ${user.role}`)
    const what = user.role === 'admin' ? 'an admin' : 'a member'
    tell(
      context,
      user,
      `The user ${user.name} is added, as ${what}. Sign them in with: tidemark users sign-in ${user.name}`,
    )
  })
}

export async function changeUser(
  context: CliContext,
  name: string,
  to: { role?: UserRole; state?: UserState },
): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await users.change((await findUser(users, name)).id, to)
    await users.note(OWNER, 'user-changed', `${user.name}: ${Object.values(to).join(', ')}`)
    tell(
      context,
      user,
      `The user ${user.name} is ${user.state}, and ${user.role === 'admin' ? 'an admin' : 'a member'}.`,
    )
  })
}

export async function removeUser(context: CliContext, name: string): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await findUser(users, name)
    await users.remove(user.id, {
      by: OWNER,
      forget: async (tx, id) => {
        for (const app of apps) await app.forgetUser?.(tx, id)
      },
    })
    if (context.output.json) context.output.value({ name: user.name, removed: true })
    else context.output.line(`The user ${user.name} is removed.`)
  })
}

export async function giveAccount(
  context: CliContext,
  { account: wanted, name }: { account: string; name: string },
): Promise<void> {
  await withUsers(context, async ({ users, accounts }) => {
    const account = await findAccount(accounts, wanted)
    const user = await findUser(users, name)
    await accounts.setUser(account.id, user.id)
    await users.note(OWNER, 'user-changed', `${user.name}: got ${accountKey(account)}`)
    if (context.output.json) context.output.value({ account: accountKey(account), user: user.name })
    else context.output.line(`The account ${account.name} is of ${user.name} now.`)
  })
}

function tell({ output }: CliContext, { id, name, role, state }: User, text: string): void {
  if (output.json) output.value({ id, name, role, state })
  else output.line(text)
}
