/** Access to one Gmail account: what is kept secret about it, and what access tokens are made from. */

import { TidemarkError } from '../../base/errors.ts'
import type { AccountTokensInput } from '../account-tokens.ts'
import { type GoogleSecret, openGoogleTokens, parseGoogleSecret } from '../google/sign-in.ts'
import type { TokenSource } from '../token-source.ts'

export const GMAIL_SCOPES = {
  readonly: 'https://www.googleapis.com/auth/gmail.readonly',
  modify: 'https://www.googleapis.com/auth/gmail.modify',
  full: 'https://mail.google.com/',
} as const

export type GmailAccess = keyof typeof GMAIL_SCOPES

/** Each includes those before it. */
const LEVELS: readonly GmailAccess[] = ['readonly', 'modify', 'full']

/** `insert` puts a message back that was deleted. */
export type GmailAction = 'read' | 'unlabel' | 'trash' | 'insert' | 'delete'

const ACCESS_FOR: Record<GmailAction, GmailAccess> = {
  read: 'readonly',
  unlabel: 'modify',
  trash: 'modify',
  insert: 'modify',
  delete: 'full',
}

export function accessFor(action: GmailAction): GmailAccess {
  return ACCESS_FOR[action]
}

/** The most that these scopes allow; undefined if they do not even allow reading. */
export function accessOf(scopes: readonly string[]): GmailAccess | undefined {
  return LEVELS.findLast((level) => scopes.includes(GMAIL_SCOPES[level]))
}

export function allows(scopes: readonly string[], action: GmailAction): boolean {
  const access = accessOf(scopes)
  return access !== undefined && LEVELS.indexOf(access) >= LEVELS.indexOf(accessFor(action))
}

const ACCESS_FLAGS: Record<GmailAccess, string> = {
  readonly: ' --read-only',
  modify: ' --modify',
  full: ' --full',
}

/** Thrown before anything is tried that the account's scopes do not allow. */
export function requireScope(account: string, scopes: readonly string[], action: GmailAction): void {
  if (allows(scopes, action)) return
  const flag = ACCESS_FLAGS[accessFor(action)]
  throw new TidemarkError(`The account ${account} was not given the permission to ${action} messages.`, {
    kind: 'auth',
    code: 'scope-missing',
    hint: `Connect it again with that permission: tidemark account add gmail${flag} --user ${account}`,
  })
}

export type GmailSecret = GoogleSecret

export function parseGmailSecret(text: string): GmailSecret {
  return parseGoogleSecret(text, 'gmail')
}

/** The token source of an account that the ledger knows. */
export function openAccountTokens(input: AccountTokensInput): Promise<TokenSource> {
  return openGoogleTokens(input, parseGmailSecret)
}
