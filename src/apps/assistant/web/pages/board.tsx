/** Mail by category, drafts that wait for a look, the briefing, rules, agents, costs and settings: one page, a view each. */
import { Link } from 'wouter-preact'
import { Badge, StateBadge } from '../../../../../web/src/components/badge.tsx'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { type Column, PagedTable, TWO_LINES_PX } from '../../../../../web/src/components/data-table.tsx'
import { Segmented } from '../../../../../web/src/components/form.tsx'
import { AlertLine, EmptyNote, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { SyncButton } from '../../../../../web/src/components/source-buttons.tsx'
import { Stat } from '../../../../../web/src/components/stat.tsx'
import { Time } from '../../../../../web/src/components/values.tsx'
import { formatCount } from '../../../../../web/src/format.ts'
import { settingsLink } from '../../../../../web/src/links.ts'
import { useAccounts, useAction } from '../../../../../web/src/queries.ts'
import { setSearchParams, useSearchParam } from '../../../../../web/src/search-params.ts'
import type { AssistAccountView, ThreadView } from '../../api/schemas.ts'
import { Agents } from '../agents.tsx'
import { Briefing } from '../briefing.tsx'
import { Costs } from '../costs.tsx'
import { assistApi, assistKeys, assistLink, threadLink, useAssistAccounts, useThreads } from '../queries.ts'
import { Rules } from '../rules.tsx'
import { Styles } from '../styles-view.tsx'
import { CATEGORIES, CATEGORY_TEXTS, costText, decidedText, STATUS_TEXTS } from '../words.ts'
import '../../../../../web/src/styles/work.css'
import '../styles/assist.css'

const VIEWS = {
  mail: 'Mail',
  drafts: 'Drafts',
  briefing: 'Briefing',
  rules: 'Rules',
  agents: 'Agents',
  costs: 'Costs',
  styles: 'Styles and routing',
} as const
type View = keyof typeof VIEWS
const NAMES_MAX = 5

export function BoardPage() {
  const accounts = useAssistAccounts()
  const wanted = useSearchParam('show')
  const view: View = wanted !== null && wanted in VIEWS ? (wanted as View) : 'mail'
  return (
    <>
      <PageTitle
        title="Assistant"
        lead={`New mail is sorted, and what needs an answer gets a draft. ${sendingText(accounts.data?.items ?? [])}`}
      />
      <Loaded query={accounts} waiting={<Skeleton height="16rem" />}>
        {({ items }) => (
          <div class="stack">
            {items.map((one) => (
              <AccountCard key={one.account} status={one} />
            ))}
            <Unused items={items} />
            {items.length === 0 ? null : <Views view={view} accounts={items.map(({ account }) => account)} />}
          </div>
        )}
      </Loaded>
    </>
  )
}

function sendingText(items: readonly AssistAccountView[]): string {
  const names = [...new Set(items.flatMap(({ sendsTo }) => sendsTo))]
  if (names.length === 0) return 'Nothing is ever sent by itself.'
  const more = names.length > NAMES_MAX ? ' and others' : ''
  return `Nothing is sent by itself but by agents, to whom you named: ${names.slice(0, NAMES_MAX).join(', ')}${more}.`
}

function Views({ view, accounts }: { view: View; accounts: readonly string[] }) {
  return (
    <section class="stack" aria-label={VIEWS[view]}>
      <div class="row">
        <Segmented
          label="What is shown"
          options={Object.entries(VIEWS).map(([value, text]) => ({ value, text }))}
          value={view}
          onChange={(value) => setSearchParams({ show: value === 'mail' ? '' : value })}
        />
      </div>
      {view === 'mail' ? <Mail /> : null}
      {view === 'drafts' ? <Threads filter={{ status: 'drafted' }} empty="No draft waits for you" /> : null}
      {view === 'briefing' ? <Briefing /> : null}
      {view === 'rules' ? <Rules accounts={accounts} /> : null}
      {view === 'agents' ? <Agents accounts={accounts} /> : null}
      {view === 'costs' ? <Costs /> : null}
      {view === 'styles' ? <Styles accounts={accounts} /> : null}
    </section>
  )
}

/** New mail is sorted meanwhile: what waits is what a scan found. */
function BacklogQuestion({ account, text }: { account: string; text: string }) {
  const agree = useAction({
    run: () => assistApi.agreeToCosts(account),
    invalidates: [assistKeys.accounts],
  })
  return (
    <AlertLine tone="warn">
      {text}{' '}
      <Button small busy={agree.busy} onClick={() => void agree.start()}>
        Sort them
      </Button>
    </AlertLine>
  )
}

function AccountCard({ status }: { status: AssistAccountView }) {
  const { account, isActive, model, problem, backlog } = status
  const change = useAction({
    run: () => assistApi.setActive(account, !isActive),
    invalidates: [assistKeys.accounts],
  })
  return (
    <Card
      title={account}
      actions={
        <>
          {isActive ? null : <Badge tone="warn">Switched off</Badge>}
          <SyncButton small run={() => assistApi.sync(account)} invalidates={[assistKeys.accounts]} />
          <Button small busy={change.busy} onClick={() => void change.start()}>
            {isActive ? 'Switch off' : 'Switch on'}
          </Button>
        </>
      }
    >
      <div class="stack">
        <p class="num assist-text">
          Inbox <b>{formatCount(status.inbox)}</b> = {formatCount(status.classified)} classified +{' '}
          {formatCount(status.skipped)} skipped + {formatCount(status.onTheirWay)} on their way
        </p>
        {problem === null ? null : <AlertLine tone="warn">{problem.text}</AlertLine>}
        {backlog === null ? null : <BacklogQuestion account={account} text={backlog} />}
        {model === null ? (
          <AlertLine tone="neutral">
            No model is configured: mail is sorted by rules and without one, and drafts wait.
          </AlertLine>
        ) : null}
        <dl class="stats assist-figures">
          {CATEGORIES.map((category) => (
            <Stat
              key={category}
              label={CATEGORY_TEXTS[category]}
              value={formatCount(status.byCategory.find((one) => one.category === category)?.count ?? 0)}
              href={assistLink({ category })}
            />
          ))}
          <Stat
            label="Drafts"
            value={formatCount(status.draftsWaiting)}
            hint="wait for you"
            tone={status.draftsWaiting > 0 ? 'warn' : 'neutral'}
            href={assistLink({ show: 'drafts' })}
          />
        </dl>
        <p class="muted small">
          Last mail seen <Time at={status.lastMailAtMs} /> · looked at <Time at={status.lastSyncAtMs} /> ·{' '}
          {status.lastPushAtMs === null ? (
            'Gmail tells of nothing by itself: it is asked every few minutes'
          ) : (
            <>
              Gmail last told of news <Time at={status.lastPushAtMs} />
            </>
          )}{' '}
          · {model === null ? 'no model' : `drafts by ${model}`} · spent today{' '}
          {costText(status.spentTodayMicros)}
          {status.capPerDayMicros === null ? '' : ` of ${costText(status.capPerDayMicros)}`}
        </p>
      </div>
    </Card>
  )
}

/** Gmail accounts that are connected and not sorted yet. */
function Unused({ items }: { items: readonly AssistAccountView[] }) {
  const accounts = useAccounts()
  const known = new Set(items.map(({ account }) => account))
  const others = (accounts.data?.items ?? []).filter(
    ({ service, name }) => service === 'gmail' && !known.has(name),
  )
  if (others.length === 0 && items.length === 0) {
    return (
      <EmptyNote
        title="No Gmail account is connected"
        action={
          <ButtonLink href={settingsLink()} kind="primary" icon="person">
            Connect an account
          </ButtonLink>
        }
      >
        Connect one first, with the permission to read and move; then it can be switched on here.
      </EmptyNote>
    )
  }
  return (
    <>
      {others.map(({ name }) => (
        <Onboard key={name} account={name} />
      ))}
    </>
  )
}

function Onboard({ account }: { account: string }) {
  const begin = useAction({
    run: () => assistApi.onboard(account),
    invalidates: [assistKeys.accounts],
  })
  return (
    <Card
      title={account}
      actions={
        <Button kind="primary" small busy={begin.busy} onClick={() => void begin.start()}>
          Switch on
        </Button>
      }
    >
      <p class="muted">
        Makes eight labels in Gmail, sorts new mail by them, and writes drafts. It deletes nothing, and sends
        nothing.
      </p>
    </Card>
  )
}

function Mail() {
  const wanted = useSearchParam('category') ?? ''
  return (
    <>
      <div class="row">
        <Segmented
          label="Which mail"
          options={[
            { value: '', text: 'All' },
            ...CATEGORIES.map((value) => ({ value, text: CATEGORY_TEXTS[value] })),
          ]}
          value={wanted}
          onChange={(value) => setSearchParams({ category: value })}
        />
      </div>
      <Threads
        filter={wanted === '' ? {} : { category: wanted }}
        empty={wanted === '' ? 'No mail is sorted yet' : 'No mail is in this category'}
      />
    </>
  )
}

const COLUMNS: readonly Column<ThreadView>[] = [
  {
    id: 'mail',
    title: 'Mail',
    cell: (row) => (
      <div class="two-lines">
        <Link href={threadLink(row)} class="truncate" title={row.subject}>
          {row.subject || '(no subject)'}
        </Link>
        <span class="muted truncate" title={row.problem ?? row.sender}>
          {row.problem ?? row.sender}
        </span>
      </div>
    ),
  },
  {
    id: 'category',
    title: 'Category',
    width: '15rem',
    low: true,
    cell: (row) => (
      <div class="two-lines">
        <span>{row.category === null ? '–' : CATEGORY_TEXTS[row.category]}</span>
        <span class="muted truncate" title={row.reasoning}>
          {decidedText(row)}
        </span>
      </div>
    ),
  },
  {
    id: 'status',
    title: 'State',
    width: '10rem',
    cell: ({ status }) => <StateBadge state={STATUS_TEXTS[status]} />,
  },
  {
    id: 'at',
    title: 'Came',
    width: '8rem',
    low: true,
    cell: ({ lastMessageAtMs }) => <Time at={lastMessageAtMs} />,
  },
]

function Threads({ filter, empty }: { filter: { category?: string; status?: string }; empty: string }) {
  const list = useThreads(filter)
  return (
    <PagedTable
      list={list}
      caption="Threads, and how they were sorted"
      columns={COLUMNS}
      keyOf={({ account, thread }) => `${account} ${thread}`}
      rowHref={threadLink}
      rowPx={TWO_LINES_PX}
      empty={<EmptyNote title={empty} />}
    />
  )
}
