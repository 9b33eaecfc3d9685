/** What several pages of mail ask for. */
import { type QueryKey, useQuery } from '@tanstack/preact-query'
import type { Accounts } from '../../../../web/src/api.ts'
import { accountsQuery } from '../../../../web/src/queries.ts'
import type { AccountView } from '../../../app/accounts/schemas.ts'
import type { MailAccountView } from '../api/schemas.ts'

export const mailKeys = {
  search: ['search'],
  message: ['message'],
  cleanUp: ['clean-up'],
} as const satisfies Record<string, QueryKey>

/** An account whose mail is kept. */
export type MailAccount = AccountView & MailAccountView

function mailAccounts({ items }: Accounts): MailAccount[] {
  return items.flatMap(({ apps: { mail }, ...account }) =>
    mail ? [{ ...account, ...(mail as MailAccountView) }] : [],
  )
}

export const useMailAccounts = () => useQuery({ ...accountsQuery, select: mailAccounts })
