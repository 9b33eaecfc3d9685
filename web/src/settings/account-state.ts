/** An account in words: how it is, and what its quota is. */
import type { MailAccountView } from '../../../src/server/mail-api/schemas.ts'
import type { Tone } from '../components/tone.ts'

export type AccountState = { text: string; tone: Tone; hint?: string }

export function accountState(account: MailAccountView): AccountState {
  if (account.state === 'sign-in') {
    return {
      text: 'Sign in again',
      tone: 'danger',
      hint: 'Google no longer lets Tidemark in. Connect the account again; nothing is lost.',
    }
  }
  if (account.damagedFiles.length > 0) {
    return { text: 'Damaged files', tone: 'danger', hint: 'Files of its archive cannot be read.' }
  }
  if (account.paused) return { text: 'Paused', tone: 'warn', hint: 'Nothing is fetched until it is resumed.' }
  if (account.phase === 'following') return { text: 'In step', tone: 'accent' }
  return account.phase === 'backfill'
    ? { text: 'Copying', tone: 'accent' }
    : { text: 'Not begun', tone: 'neutral', hint: 'The first sync has not begun yet.' }
}

export const ACCESS_TEXTS: Record<'readonly' | 'modify' | 'full', string> = {
  readonly: 'May read only',
  modify: 'May read, move and trash',
  full: 'May do everything, also delete for good',
}

const UNITS_CURRENT = 6_000
const UNITS_OLDER = 15_000

/** Google allows projects from before May 2026 more. */
export function quotaTier(unitsPerMinute: number): string {
  if (unitsPerMinute === UNITS_CURRENT) return 'current tier'
  if (unitsPerMinute === UNITS_OLDER) return 'tier of projects from before May 2026'
  return 'set by hand'
}

/** What a browser may be sent to: never a script. */
export function safeAddress(text: string): string | undefined {
  try {
    const { protocol, href } = new URL(text)
    return protocol === 'https:' || protocol === 'http:' ? href : undefined
  } catch {
    return undefined
  }
}
