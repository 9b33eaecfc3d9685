/** What an app adds to the dashboard. Its pages are in its own folder, `src/apps/<app>/web`. */
import type { QueryClient, QueryKey } from '@tanstack/preact-query'
import type { IconName } from './components/icon.tsx'
import type { LazyPage } from './lazy-page.tsx'
import type { Need } from './overview/need.ts'
import type { AccountPart } from './settings/account-part.ts'

export type PageRoute = {
  path: string
  page: LazyPage
  /** Members have it, too. What it asks for must be declared for them at the server. */
  members?: true
}

export type NavigationEntry = {
  href: string
  text: string
  icon: IconName
  /** Also on pages that begin with one of these. */
  covers: readonly string[]
  page: LazyPage
  members?: true
  /** Smaller ones come first; the engine's own are 0, 40 and 90. */
  place: number
}

export type AppPages = {
  /** As the app is called: its streams begin with it. */
  name: string
  pages: readonly PageRoute[]
  navigation: readonly NavigationEntry[]
  live?: {
    /** What an event makes stale, by its type. */
    stale: Readonly<Record<string, readonly QueryKey[]>>
    /** Asked for again, besides, where pages must ask because no events come. */
    polled: readonly QueryKey[]
    /** Takes over the app's part of the live snapshot. Returns what else is stale by it. */
    onSnapshot?: (client: QueryClient, data: unknown) => readonly QueryKey[]
  }
  /** What it shows of the accounts that it works for. */
  account?: () => Promise<AccountPart>
  /** A hook of the shell, on every page: keys that lead to the app's own. */
  useKeys?: (path: string) => void
  /** A hook: what waits for somebody. */
  useNeeds?: () => readonly Need[]
  stream?: {
    /** The page that tells most about a source, where the app has one. */
    home?: (source: string) => string
    /** That of an account, where an account is a source by itself. */
    ofAccount?: (account: string) => string
    /** A place on its axis, where that is no time; a number where it is left out. */
    place?: (position: number) => string
  }
}
