/** The token source of a OneDrive account that the ledger knows (see ../account-tokens.ts). */
import { type AccountTokensInput, openGrantedTokens } from '../account-tokens.ts'
import type { TokenSource } from '../token-source.ts'
import { oneDriveGrant, parseOneDriveSecret } from './auth.ts'

export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGrantedTokens({
    ...input,
    grant: oneDriveGrant(input),
    parse: parseOneDriveSecret,
    refreshTokenOf: ({ refreshToken }) => refreshToken,
  })
}
