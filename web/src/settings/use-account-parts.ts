/** What the apps show of accounts; loaded once. */
import { useQuery } from '@tanstack/preact-query'
import { appPages } from '../../../src/apps/pages.ts'
import type { AccountParts } from './account-part.ts'

export function useAccountParts(): AccountParts | undefined {
  const { data } = useQuery({
    queryKey: ['account-parts'],
    queryFn: async (): Promise<AccountParts> =>
      Object.fromEntries(
        await Promise.all(
          appPages.flatMap(({ name, account }) => (account ? [account().then((part) => [name, part])] : [])),
        ),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data
}
