/**
 * Who is signed in. The session is kept in the storage of this origin, which no other port of the host can read, and
 * is sent as a header. Where somebody must sign in first, the page they wanted waits behind the sign-in page.
 */

const SIGN_IN_PATH = '/sign-in'
const STORED_AS = 'tidemark.session'

/** For a browser that lets pages keep nothing: until this one is left. */
let inMemory: string | undefined

export function sessionHeaders(): Record<string, string> {
  const session = inMemory ?? stored()
  return session === undefined ? {} : { authorization: `Bearer ${session}` }
}

export function keepSession(session: string): void {
  inMemory = session
  try {
    localStorage.setItem(STORED_AS, session)
  } catch {
    // Not allowed, or full: it is kept in memory.
  }
}

export function forgetSession(): void {
  inMemory = undefined
  try {
    localStorage.removeItem(STORED_AS)
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
