/** Another page begins at its top, or at the part that its address names; going back is the browser's business. */

/** The part may come with data that is still being loaded. */
const SEEK_MS_MAX = 3_000

export function startScrolling(): void {
  let path = location.pathname
  addEventListener('pushState', () => {
    const isOther = location.pathname !== path
    path = location.pathname
    if (location.hash) seek(location.hash.slice(1), performance.now() + SEEK_MS_MAX)
    else if (isOther) scrollTo(0, 0)
  })
  addEventListener('popstate', () => {
    path = location.pathname
  })
  if (location.hash) seek(location.hash.slice(1), performance.now() + SEEK_MS_MAX)
}

function seek(id: string, untilMs: number): void {
  const found = document.getElementById(id)
  if (found) {
    found.scrollIntoView({ block: 'start' })
    // Goes there with the keyboard too, where the part can take the focus.
    found.focus({ preventScroll: true })
  } else if (performance.now() < untilMs) {
    requestAnimationFrame(() => seek(id, untilMs))
  }
}
