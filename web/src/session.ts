/**
 * Who is signed in. The session is kept in the storage of this origin, which no other port of the host can read, and
 * is sent as a header. Where somebody must sign in first, the page they wanted waits behind the sign-in page.
 */

import type { Me } from '../../src/app/users/schemas.ts'

const SIGN_IN_PATH = '/sign-in'
const STORED_AS = 'tidemark.session'
const USER_STORED_AS = 'tidemark.user'

/** For a browser that lets pages keep nothing: until this one is left. */
let inMemory: string | undefined

export function sessionHeaders(): Record<string, string> {
  const session = inMemory ?? stored()
  return session === undefined ? {} : { authorization: `Bearer ${session}` }
}

/** What the pages offer follows from it; what may be asked for is the server's decision. */
let user: Me | undefined

export function keepSession(session: string, of?: Me): void {
  inMemory = session
  user = of
  try {
    localStorage.setItem(STORED_AS, session)
    if (of) localStorage.setItem(USER_STORED_AS, JSON.stringify(of))
    else localStorage.removeItem(USER_STORED_AS)
  } catch {
    // Not allowed, or full: it is kept in memory.
  }
}

/** Undefined where nobody has said so: then it is the owner, or somebody who must sign in. */
export function currentUser(): Me | undefined {
  if (user) return user
  try {
    const kept = localStorage.getItem(USER_STORED_AS)
    user = kept === null ? undefined : (JSON.parse(kept) as Me)
  } catch {
    // Not readable, or nothing that was kept by this page.
  }
  return user
}

export const isMember = (): boolean => currentUser()?.role === 'member'

export function forgetSession(): void {
  inMemory = undefined
  user = undefined
  try {
    localStorage.removeItem(STORED_AS)
    localStorage.removeItem(USER_STORED_AS)
  } catch {
    // Nothing could be kept, so nothing is there.
  }
}

function stored(): string | undefined {
  try {
    return localStorage.getItem(STORED_AS) ?? undefined
  } catch {
    return undefined
  }
}

/** From the address that the server prints; it does not stay there, nor in the history. */
export function takeCode(): string | undefined {
  const code = location.hash.slice(1)
  if (code === '') return undefined
  history.replaceState(null, '', location.pathname + location.search)
  return code
}

export function onSignedOut(): void {
  if (location.pathname === SIGN_IN_PATH) return
  const next = location.pathname + location.search
  history.replaceState(null, '', `${SIGN_IN_PATH}?next=${encodeURIComponent(next)}`)
}

/** Only a path of this site: an address from a link must not lead away. */
export function nextPath(search: string): string {
  const next = new URLSearchParams(search).get('next') ?? '/'
  return /^\/(?![/\\])/.test(next) && !next.startsWith(SIGN_IN_PATH) ? next : '/'
}
