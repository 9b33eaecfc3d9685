/**
 * Pure: what a look at a file proves about the access of other accounts. Looks of several accounts come in any order, so
 * each keeps how new it is: by Google's counter of the file, and by the clock where the counters are the same (what is
 * inherited from folders changes without it).
 *
 * An account is shown a document while one of these holds:
 * - its own look saw the version that is shown, or a newer one
 * - a list of permissions that is as new as that version names the account
 * - it is the owner
 *
 * and no newer list of permissions says that nobody but others may read it. What does not hold is unconfirmed: the access
 * stays, and lets see nothing, until the account's own look, or such a list, proves it anew.
 *
 * (What is published of a document while its newer version is still to be read is, besides, only for those who were let see
 * it: see grantsOf.)
 */
import type { Permission } from '../../cloud/drive/client.ts'

/** The end of an access that is not confirmed: before any time. */
export const UNCONFIRMED = 0
/**
 * The end of one of which Google says that the account can read the file, and does not list it: somebody who holds its
 * link, or a new name that the search does not know yet. A complete listing decides.
 */
export const UNLISTED = 1

/** An address, `@example.com` for all who find it there, `*` for everybody who finds it, or UNKNOWN. */
type Grantee = { to: string; endsAtMs: number | null }

/** Ways of which nobody here can tell whom they let in: groups, links, people without an address. */
const UNKNOWN = '?'
const EVERYBODY = '*'

/** A complete list of permissions, as an account that may share the file was told it. */
export type Sharing = {
  /** Of the file, as in `Listed`. */
  serial: number
  askedAtMs: number
  /** When it was there: what it says was so then or before. */
  atMs: number
  grantees: readonly Grantee[]
}

export type KeptSharing = Omit<Sharing, 'askedAtMs'>

export function granteesOf(permissions: readonly Permission[]): Grantee[] {
  const given = permissions
    // Of a view of its own nobody reads the document.
    .filter(({ deleted, view }) => !deleted && view === undefined)
    .map((one) => ({ to: granteeOf(one), endsAtMs: one.expirationTime ?? null }))
  return given.sort((a, b) => (a.to < b.to ? -1 : a.to > b.to ? 1 : 0))
}

function granteeOf({ type, emailAddress, domain, allowFileDiscovery }: Permission): string {
  if (type === 'user' && emailAddress) return emailAddress.toLowerCase()
  if (type === 'domain' && domain && allowFileDiscovery) return `@${domain.toLowerCase()}`
  if (type === 'anyone' && allowFileDiscovery) return EVERYBODY
  return UNKNOWN
}

/**
 * Which list holds from now on. Of two that are equally new by the counter and were asked for at the same time, nobody can
 * tell which is newer: only what both of them say is believed. Where they differ, that is newer than either of the looks
 * that brought them: neither proves what the other denies.
 */
export function newestSharing(kept: KeptSharing | null, seen: Sharing): KeptSharing {
  const { askedAtMs, ...news } = seen
  if (!kept || seen.serial > kept.serial) return news
  if (seen.serial < kept.serial) return kept
  if (askedAtMs >= kept.atMs) return news
  const isInBoth = (one: Grantee): boolean =>
    seen.grantees.some(({ to, endsAtMs }) => to === one.to && endsAtMs === one.endsAtMs)
  const grantees = kept.grantees.filter(isInBoth)
  const isSame = grantees.length === kept.grantees.length && grantees.length === seen.grantees.length
  return { serial: kept.serial, atMs: Math.max(kept.atMs, seen.atMs) + (isSame ? 0 : 1), grantees }
}

/** What is known of a file by the newest looks of all accounts. */
export type KnownFile = {
  /** The counter at which the present version was first seen. */
  versionSerial: number
  owner: string
  sharing: KeptSharing | null
}

/** An account's own look at a file: what it says was so at `askedAtMs` or later, and ends at `endsAtMs`. */
export type OwnLook = { account: string; serial: number; askedAtMs: number; endsAtMs: number | null }

/** When the access of the account ends, by all that is known; UNCONFIRMED where it lets see nothing for now. */
export function endOfAccess(look: OwnLook, known: KnownFile): number | null {
  const { account, serial, endsAtMs } = look
  const { versionSerial, owner, sharing } = known
  if (owner.toLowerCase() === account) return endsAtMs
  if (sharing && isNewer(sharing, look)) {
    const confirmed = confirmedUntil(look, known)
    if (confirmed !== undefined) return earlier(confirmed, endsAtMs)
    const isNamed = namedUntil(sharing.grantees, account) !== undefined
    if (!isNamed && !sharing.grantees.some(({ to }) => mayLetInOthers(to))) return UNCONFIRMED
  }
  return serial >= versionSerial ? endsAtMs : UNCONFIRMED
}

/** When the access ends by a list that is newer than the look, as new as the version, and names the account; or undefined. */
export function confirmedUntil(
  look: Omit<OwnLook, 'endsAtMs'>,
  { versionSerial, sharing }: KnownFile,
): number | null | undefined {
  if (!sharing || sharing.serial < versionSerial || !isNewer(sharing, look)) return undefined
  return namedUntil(sharing.grantees, look.account)
}

function isNewer(sharing: KeptSharing, { serial, askedAtMs }: Omit<OwnLook, 'endsAtMs'>): boolean {
  return sharing.serial > serial || (sharing.serial === serial && sharing.atMs > askedAtMs)
}

/** Who is at a domain may have an address at another one that belongs to it. */
function mayLetInOthers(to: string): boolean {
  return to === UNKNOWN || to.startsWith('@')
}

/** Undefined where the list does not name the account. */
function namedUntil(grantees: readonly Grantee[], account: string): number | null | undefined {
  const ends = grantees
    .filter(({ to }) => to === account || to === EVERYBODY || (to.startsWith('@') && account.endsWith(to)))
    .map(({ endsAtMs }) => endsAtMs)
  if (ends.length === 0) return undefined
  return ends.includes(null) ? null : Math.max(...ends.map(Number))
}

function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other
  return Math.min(one, other)
}
