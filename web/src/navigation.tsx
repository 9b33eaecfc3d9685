/** On wide screens a column on the left, with all streams; on narrow ones a bar at the bottom. */
import { Link, useLocation } from 'wouter-preact'
import { BrandSign } from './components/brand-sign.tsx'
import { Icon } from './components/icon.tsx'
import { useOverview } from './queries.ts'
import { isCurrent, navigation } from './routes.tsx'
import { homeLink, titleAmong } from './stream-name.ts'

/** The column is a way there, not a list of everything: the overview has all. */
const STREAMS_MAX = 12

export function Navigation() {
  const [path] = useLocation()
  return (
    <header class="side">
      <Link href="/" class="brand" aria-label="Tidemark, to the overview">
        <BrandSign />
        <span>Tidemark</span>
      </Link>
      <nav class="nav" aria-label="Main">
        {navigation().map((entry) => (
          <Link
            key={entry.href}
            href={entry.href}
            class="nav-link"
            aria-current={isCurrent(entry, path) ? 'page' : undefined}
            onPointerEnter={entry.page.preload}
          >
            <Icon name={entry.icon} />
            <span>{entry.text}</span>
          </Link>
        ))}
      </nav>
      <Streams path={path} />
    </header>
  )
}

function Streams({ path }: { path: string }) {
  const { data } = useOverview()
  if (!data || data.streams.length === 0) return null
  const names = data.streams.map(({ name }) => name)
  return (
    <nav class="nav-streams" aria-label="Streams">
      <p class="nav-heading" aria-hidden="true">
        Streams
      </p>
      {data.streams.slice(0, STREAMS_MAX).map(({ name, health }) => {
        const href = homeLink(name)
        return (
          <Link
            key={name}
            href={href}
            class="nav-stream"
            aria-current={decodeURI(href) === path ? 'page' : undefined}
          >
            <span class={`dot health-${health}`} aria-hidden="true" />
            <span class="truncate">{titleAmong(name, names)}</span>
          </Link>
        )
      })}
    </nav>
  )
}
