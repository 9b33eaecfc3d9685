/** What needs somebody, from alerts, accounts and pauses: each with what to do and where. */
import type { AccountView } from '../../../src/app/accounts/schemas.ts'
import type { AlertView, Overview } from '../../../src/app/schemas.ts'
import type { Tone } from '../components/tone.ts'
import { jobsLink, settingsLink, streamLink, workLink } from '../links.ts'

export type Need = {
  key: string
  tone: Tone
  title: string
  text: string
  since: number | null
  action: { text: string; href: string } | null
  /** Offered as a button: work goes on again. */
  resume: { scope: 'all' | 'stream' | 'kind'; target: string } | null
}

/** An account that is a source by itself. */
export type SourceAccount = {
  name: string
  stream: string
  state: AccountView['state']
  /** Who decides about its sign-ins. */
  company: string
}

const TITLES: Record<string, string> = {
  'bad-items': 'Items were set aside',
  'metadata-full': 'Room for metadata runs out',
  throttled: 'Being slowed down',
  'stale-heartbeat': 'An engine is silent',
  stale: 'Silent for too long',
  unbalanced: 'The books do not balance',
  'sign-in': 'Sign in again',
  'ledger-down': 'The ledger is away',
  'disk-full': 'The disk is filling up',
}

export function needsOf(
  overview: Pick<Overview, 'alerts' | 'pauses'>,
  accounts: readonly SourceAccount[],
  ofApps: readonly Need[] = [],
): Need[] {
  const alerts = overview.alerts.map((alert) => needOfAlert(alert, accounts))
  const told = new Set(
    overview.alerts.filter(({ condition }) => condition === 'sign-in').map(({ target }) => target),
  )
  const signIns = accounts
    .filter(({ state, stream, name }) => state === 'sign-in' && !told.has(stream) && !told.has(name))
    .map(needOfAccount)
  const pauses = overview.pauses
    // Whoever must sign in is told so; that its stream waits for it is no news.
    .filter(({ target }) => !told.has(target) && !signIns.some(({ key }) => key === `account ${target}`))
    .map(needOfPause)
  const order: Tone[] = ['danger', 'warn', 'neutral']
  return [...alerts, ...signIns, ...ofApps, ...pauses].sort(
    (a, b) => order.indexOf(a.tone) - order.indexOf(b.tone),
  )
}

function needOfAlert(
  { condition, target, severity, text, since }: AlertView,
  accounts: readonly SourceAccount[],
): Need {
  return {
    key: `alert ${condition} ${target}`,
    tone: severity === 'critical' ? 'danger' : 'warn',
    title: TITLES[condition] ?? condition.replaceAll('-', ' '),
    text,
    since,
    action: actionFor(condition, target, accounts),
    resume: null,
  }
}

function actionFor(condition: string, target: string, accounts: readonly SourceAccount[]): Need['action'] {
  if (condition === 'sign-in') return { text: 'Sign in', href: settingsLink() }
  const isStream = target.includes(':') || accounts.some(({ stream }) => stream === target)
  if (condition === 'bad-items' && isStream)
    return { text: 'See which and why', href: `${streamLink(target)}#bad` }
  if (condition === 'unbalanced' && isStream)
    return { text: 'See its cancelled jobs', href: jobsLink({ stream: target, state: 'canceled' }) }
  if (condition === 'stale' && isStream) return { text: 'Open it', href: streamLink(target) }
  if (condition === 'throttled' || condition === 'stale-heartbeat')
    return { text: 'See the work', href: workLink() }
  return null
}

function needOfAccount({ name, stream, company }: SourceAccount): Need {
  return {
    key: `account ${stream}`,
    tone: 'danger',
    title: 'Sign in again',
    text: `${company} no longer lets Tidemark read ${name}. Connect the account again; everything copied so far stays.`,
    since: null,
    action: { text: 'Sign in', href: settingsLink() },
    resume: null,
  }
}

function needOfPause({ scope, target, reason, at }: Overview['pauses'][number]): Need {
  const what = scope === 'all' ? 'Everything' : scope === 'kind' ? `Every job of the kind ${target}` : target
  return {
    key: `pause ${scope} ${target}`,
    tone: 'warn',
    title: 'Paused',
    text: `${what} waits${reason ? ` (${reason})` : ''}. Nothing is lost; it goes on from where it stopped.`,
    since: at,
    action: null,
    resume: { scope, target },
  }
}
