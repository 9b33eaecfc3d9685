/** Above every page: what Tidemark is doing in one sentence, whether this page is live, and what needs somebody. */
import { Link } from 'wouter-preact'
import type { Overview } from '../../src/app/schemas.ts'
import { BrandSign } from './components/brand-sign.tsx'
import { Icon, type IconName } from './components/icon.tsx'
import { Skeleton } from './components/notes.tsx'
import { formatClock, formatPlural } from './format.ts'
import type { LiveState } from './live.ts'
import { useLive } from './live-state.ts'
import { useOverview } from './queries.ts'
import { currentUser, isMember } from './session.ts'
import { useStore } from './store.ts'
import { nextTheme, setTheme, type Theme, theme } from './theme.ts'

export function Header() {
  return isMember() ? <MemberHeader /> : <FullHeader />
}

/** What the engine does is for admins: here it is whose pages these are. */
function MemberHeader() {
  return (
    <section class="header" aria-label="State">
      <div class="header-row">
        <Link href="/" class="brand brand-small" aria-label="Tidemark, to the first page">
          <BrandSign />
          <span>Tidemark</span>
        </Link>
        <p class="verdict">
          <span class="verdict-text">Signed in as {currentUser()?.name}</span>
        </p>
        <div class="header-tools">
          <ThemeSwitch />
        </div>
      </div>
    </section>
  )
}

function FullHeader() {
  const { data } = useOverview()
  const live = useLive()
  return (
    <section class="header" aria-label="State">
      <div class="header-row">
        <Link href="/" class="brand brand-small" aria-label="Tidemark, to the overview">
          <BrandSign />
          <span>Tidemark</span>
        </Link>
        {data ? (
          <Verdict verdict={data.verdict} isStale={live === 'offline'} />
        ) : (
          <Skeleton width="16rem" height="1.2em" />
        )}
        <div class="header-tools">
          <AlertCount count={data?.alerts.length ?? 0} />
          <LiveNote live={live} />
          <ThemeSwitch />
        </div>
      </div>
      {/* Told once a change, not once a second: the sentence itself counts down. */}
      <p class="visually-hidden" role="status">
        {data ? `${WORDS[data.verdict.state]}. ${LIVE_WORDS[live].text}.` : ''}
      </p>
    </section>
  )
}

const WORDS: Record<Overview['verdict']['state'], string> = {
  settled: 'All is settled',
  working: 'Working',
  attention: 'Something needs you',
}

function Verdict({ verdict, isStale }: { verdict: Overview['verdict']; isStale: boolean }) {
  return (
    <p class={`verdict verdict-${verdict.state}${isStale ? ' is-stale' : ''}`} title={verdict.text}>
      <span class="verdict-dot" aria-hidden="true" />
      <span class="verdict-text">{verdict.text}</span>
    </p>
  )
}

function AlertCount({ count }: { count: number }) {
  if (count === 0) return null
  return (
    <Link
      href="/#needs-you"
      class="pill tone-danger"
      aria-label={`${formatPlural(count, 'alert')}: see what to do`}
    >
      <Icon name="alert" />
      <span class="num">{count}</span>
    </Link>
  )
}

const LIVE_WORDS: Record<LiveState, { text: string; hint: string }> = {
  connecting: { text: 'Connecting', hint: 'The live connection is being made.' },
  live: { text: 'Live', hint: 'This page shows what happens as it happens.' },
  polling: {
    text: 'Every few seconds',
    hint: 'The live connection does not stand; this page asks every few seconds.',
  },
  offline: { text: 'Offline', hint: 'The server does not answer. This page tries again by itself.' },
  'signed-out': { text: 'Signed out', hint: 'Sign in to go on.' },
}

function LiveNote({ live }: { live: LiveState }) {
  const { text, hint } = LIVE_WORDS[live]
  return (
    <span class={`live live-${live}`} title={hint}>
      <span class="live-dot" aria-hidden="true" />
      <span class="live-text">{text}</span>
    </span>
  )
}

/** Beside the header, whose blur would keep it from standing at the bottom of the screen. */
export function OfflineNote() {
  const { data } = useOverview()
  const live = useLive()
  if (live !== 'offline' || !data) return null
  return (
    <p class="offline" role="alert">
      <b>Offline.</b> The server does not answer; this page tries again by itself. What you see is from{' '}
      {formatClock(data.at)}.
    </p>
  )
}

const THEMES: Record<Theme, { icon: IconName; text: string }> = {
  auto: { icon: 'auto', text: 'as the system' },
  light: { icon: 'sun', text: 'light' },
  dark: { icon: 'moon', text: 'dark' },
}

function ThemeSwitch() {
  const now = useStore(theme)
  const next = nextTheme(now)
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={`Colours: ${THEMES[now].text}. Switch to ${THEMES[next].text}`}
      title={`Colours: ${THEMES[now].text}`}
      onClick={() => setTheme(next)}
    >
      <Icon name={THEMES[now].icon} />
    </button>
  )
}
