/** The accounts as pages see them. */
import type { AccountView, ServiceView } from '../../src/app/accounts/schemas.ts'

/** With what the apps that work for it say of it, by their names. */
export type Account = AccountView & { apps: Readonly<Record<string, unknown>> }

export type Accounts = { items: Account[]; services: ServiceView[] }
