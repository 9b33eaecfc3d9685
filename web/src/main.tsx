import { QueryClientProvider } from '@tanstack/preact-query'
import { render } from 'preact'
import { App } from './app.tsx'
import { startLive } from './live-queries.ts'
import { createQueries } from './queries.ts'
import './styles/tokens.css'
import './styles/base.css'
import './styles/layout.css'
import './styles/components.css'
import './styles/table.css'
import { startTheme } from './theme.ts'

/** A tab that nobody looks at gives its connection back: browsers allow six to a server. */
const HIDDEN_MS_MAX = 60_000

function start(): void {
  mendLocale(navigator)
  startTheme()
  startScrolling()
  const queries = createQueries()
  const live = startLive(queries)
  let hidden: ReturnType<typeof setTimeout> | undefined
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden)
    if (document.hidden) hidden = setTimeout(() => live.stop(), HIDDEN_MS_MAX)
    else live.start()
  })
  // Not taken at its word: a server on this machine is there without a network, and only a try can tell.
  for (const change of ['online', 'offline']) addEventListener(change, () => live.nudge())
  addEventListener('tidemark:signed-in', () => {
    live.start()
    live.nudge()
  })
  render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
    document.getElementById('app')!,
  )
}

/**
 * Some browsers report the locale of their surroundings as it is, such as `en-US@posix`, which is no language tag:
 * libraries that hand it to Intl when they are loaded would take the page down with them.
 */
function mendLocale(browser: { readonly language: string }): void {
  try {
    new Intl.NumberFormat(browser.language)
  } catch {
    Object.defineProperty(browser, 'language', { value: new Intl.NumberFormat().resolvedOptions().locale })
  }
}

/** Another page begins at its top, or at the part that its address names; going back is the browser's business. */
/** The part may come with data that is still being loaded. */
const SEEK_MS_MAX = 3_000

function startScrolling(): void {
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

start()
