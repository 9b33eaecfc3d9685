/** Addresses of the pages of mail. */
import { withQuery } from '../../../../web/src/links.ts'

export const searchLink = (query: Record<string, string | undefined> = {}): string =>
  withQuery('/search', query)
export const messageLink = (account: string, id: string): string =>
  `/mail/${encodeURIComponent(account)}/${encodeURIComponent(id)}`
export const cleanUpLink = (): string => '/clean-up'
