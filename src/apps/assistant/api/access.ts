/** Whose mailboxes a user may look at: members their own, admins all, which is written down. */
import { notFound } from '../../../app/problem.ts'
import { noteAccountLook, type RequestUser } from '../../../app/user.ts'
import type { Account } from '../../../ledger/accounts.ts'
import { SERVICE } from '../account.ts'
import { noteEscalationsSeen } from '../agent/store.ts'
import type { AssistServices } from './route.ts'

async function mailboxesOf({ accounts }: AssistServices, user: RequestUser): Promise<Account[]> {
  const rows = user.role === 'admin' ? await accounts.list(SERVICE) : await accounts.ofUser(user.id)
  return rows.filter(({ service }) => service === SERVICE)
}

/** Those with the assistant: of one, or of all that the user may look at. */
export async function chosenMailboxes(
  services: AssistServices,
  user: RequestUser,
  { account, what }: { account?: string | undefined; what: string },
): Promise<string[]> {
  const onboarded = new Set((await services.assist.tables.accounts()).map((row) => row.account))
  const own = (await mailboxesOf(services, user))
    .map(({ name }) => name)
    .filter((name) => onboarded.has(name))
  if (account !== undefined && !own.includes(account)) throw unknownMailbox(account)
  if (user.role === 'admin') await noteAccountLook(services, user, { service: SERVICE, account, what })
  return account === undefined ? own : [account]
}

/** One that is another's is as one that is not there. */
export async function ownMailbox(
  services: AssistServices,
  user: RequestUser,
  { account, what }: { account: string; what: string },
): Promise<string> {
  await chosenMailboxes(services, user, { account, what })
  return account
}

/** What agents asked the owner to look at is seen once the owner looks; an admin who looks is somebody else. */
export async function noteSeen(
  { accounts, ledger, clock, assist }: AssistServices,
  user: RequestUser,
  of: { account: string; thread: string },
): Promise<void> {
  const row = await accounts.find(SERVICE, of.account)
  if (row?.userId !== user.id) return
  const { store } = assist.agents
  if (!(await store.hasEscalation(of))) return
  await ledger.transaction(async (tx) => noteEscalationsSeen(of, clock.now())(tx))
}

/** Connected, with the assistant or without. */
export async function connectedMailbox(
  services: AssistServices,
  user: RequestUser,
  account: string,
): Promise<string> {
  const found = (await mailboxesOf(services, user)).some(({ name }) => name === account)
  if (!found) throw unknownMailbox(account)
  return account
}

function unknownMailbox(account: string) {
  return notFound(`There is no mailbox ${account}.`, { code: 'account-unknown' })
}
