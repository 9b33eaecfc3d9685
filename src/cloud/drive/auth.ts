/** Access to one Google Drive: the scope that is asked for, and what access tokens are made from. */
import type { AccountTokensInput } from '../account-tokens.ts'
import { type GoogleSecret, openGoogleTokens, parseGoogleSecret } from '../google/sign-in.ts'
import type { TokenSource } from '../token-source.ts'

/** The least that lets read what a person can read; nothing is ever changed in a Drive. */
export const DRIVE_SCOPE = 'https://www.googleapis.com/auth/drive.readonly'

/** Those that include it. */
const ENOUGH: readonly string[] = [DRIVE_SCOPE, 'https://www.googleapis.com/auth/drive']

export function allowsReading(scopes: readonly string[]): boolean {
  return scopes.some((scope) => ENOUGH.includes(scope))
}

export function parseDriveSecret(text: string): GoogleSecret {
  return parseGoogleSecret(text, 'drive')
}

/** The token source of an account that the ledger knows. */
export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGoogleTokens(input, parseDriveSecret)
}
