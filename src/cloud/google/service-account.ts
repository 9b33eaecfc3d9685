/** Access of a service account for itself, or by a token that somebody else has made: no person has to consent. */
import type { Clock } from '../../base/clock.ts'
import { type Fetch, serviceAccountTokens } from '../oauth.ts'
import { GrantedTokens, newToken, type TokenSource } from '../token-source.ts'

export type ServiceAccess = { clientEmail: string; privateKey: string } | { accessToken: string }

export const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token'

/** Tokens are kept in memory until they end, and never anywhere else. */
export function serviceTokens(input: {
  access: ServiceAccess
  scope: string
  fetch: Fetch
  clock: Clock
  tokenUrl?: string
}): TokenSource {
  const { access, scope, fetch, clock, tokenUrl = GOOGLE_TOKEN_URL } = input
  if ('accessToken' in access) return newToken(access.accessToken)
  return new GrantedTokens({
    secret: access,
    clock,
    save: async () => {},
    grant: {
      ask: ({ clientEmail, privateKey }) =>
        serviceAccountTokens({ fetch, clock, tokenUrl }, { clientEmail, privateKey, scopes: [scope] }),
      keptToken: () => undefined,
      renew: () => undefined,
      isSame: (a, b) => a.clientEmail === b.clientEmail && a.privateKey === b.privateKey,
    },
  })
}
