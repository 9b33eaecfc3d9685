/** The token source of a Gmail account that the ledger knows (see ../account-tokens.ts). */
import { type AccountTokensInput, openGrantedTokens } from '../account-tokens.ts'
import type { TokenSource } from '../token-source.ts'
import { gmailGrant, parseGmailSecret } from './auth.ts'

export type { AccountTokensInput } from '../account-tokens.ts'

export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGrantedTokens({
    ...input,
    grant: gmailGrant(input),
    parse: parseGmailSecret,
    refreshTokenOf: (secret) => (secret.kind === 'oauth' ? secret.refreshToken : undefined),
  })
}
