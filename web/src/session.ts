/** Where somebody must sign in first, the page they wanted waits behind the sign-in page. */

const SIGN_IN_PATH = '/sign-in'

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
