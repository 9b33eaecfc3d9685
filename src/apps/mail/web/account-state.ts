/** A mail account in words: how it is, and what its quota is. */

import { formatPlural } from '../../../../web/src/format.ts'
import type { AccountState } from '../../../../web/src/settings/account-part.ts'
import type { MailAccountView } from '../api/schemas.ts'

export function mailState(account: MailAccountView): AccountState {
  if (account.damagedFiles.length > 0) {
    return { text: 'Damaged files', tone: 'danger', hint: 'Files of its archive cannot be read.' }
  }
  const { missing, lost, lostImports } = account
  if (missing > 0) {
    const hint = `${formatPlural(missing, 'message')} that the archive had: not there any more, and fetched again by the next sync.`
    return { text: 'Mail is missing', tone: 'danger', hint }
  }
  if (lost + lostImports > 0) {
    const hint = `${formatPlural(lost + lostImports, 'message')} that the archive had: not there any more, and not in Gmail either.`
    return { text: 'Mail is lost', tone: 'danger', hint }
  }
  if (account.paused) return { text: 'Paused', tone: 'warn', hint: 'Nothing is fetched until it is resumed.' }
  if (account.phase === 'following') return { text: 'In step', tone: 'accent' }
  return account.phase === 'backfill'
    ? { text: 'Copying', tone: 'accent' }
    : { text: 'Not begun', tone: 'neutral', hint: 'The first sync has not begun yet.' }
}

/** What the last check of the whole archive found. */
export function verifiedText(verified: MailAccountView['verified']): string {
  if (!verified) return 'no message was read back yet'
  const { messages, damaged, brokenFiles, missing } = verified
  const wrong = damaged + brokenFiles + (missing ?? 0)
  const what = formatPlural(messages, 'message')
  if (wrong > 0) return `${what}; damage found`
  return missing === null ? `${what}, all well; not compared with Gmail` : `${what}, all well`
}

const UNITS_CURRENT = 6_000
const UNITS_OLDER = 15_000

/** Google allows projects from before May 2026 more. */
export function quotaTier(unitsPerMinute: number): string {
  if (unitsPerMinute === UNITS_CURRENT) return 'current tier'
  if (unitsPerMinute === UNITS_OLDER) return 'tier of projects from before May 2026'
  return 'set by hand'
}
