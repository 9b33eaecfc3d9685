import { QueryClientProvider } from '@tanstack/preact-query'
import { render } from 'preact'
import { App } from './app.tsx'
import { mendLocale } from './browser-locale.ts'
import { startLive } from './live-queries.ts'
import { createQueries } from './queries.ts'
import { startScrolling } from './scroll.ts'
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
  addEventListener('tidemark:signed-in', () => live.nudge())
  render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
    document.getElementById('app')!,
  )
}

start()
