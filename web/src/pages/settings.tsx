/** Accounts, what holds now, and how this page looks. */
import type { ServiceView } from '../../../src/app/accounts/schemas.ts'
import { type Account, api } from '../api.ts'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Segmented } from '../components/form.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { useAccounts } from '../queries.ts'
import { AccountCard } from '../settings/account-card.tsx'
import type { AccountParts } from '../settings/account-part.ts'
import { ConfigTable } from '../settings/config-table.tsx'
import { ConnectCard, connectId, SetUpFirst } from '../settings/connect-card.tsx'
import { TimesAndLimits } from '../settings/times-and-limits.tsx'
import { useAccountParts } from '../settings/use-account-parts.ts'
import { useStore } from '../store.ts'
import { setTheme, theme } from '../theme.ts'
import '../styles/settings.css'
import '../styles/users.css'
import { useState } from 'preact/hooks'
import { forgetSession, isMember } from '../session.ts'
import { OwnSync } from '../users/sync-line.tsx'

const THEMES = [
  { value: 'auto', text: 'As the system' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
] as const

export function SettingsPage() {
  const first = useAccounts().data?.services[0]?.name ?? ''
  return (
    <>
      <PageTitle title="Settings" lead="Accounts, limits, and what holds now.">
        <ButtonLink href={`/settings#${connectId(first)}`} icon="person" kind="primary" small>
          Connect an account
        </ButtonLink>
      </PageTitle>
      <div class="settings">
        {isMember() ? <OwnSync /> : null}
        <Accounts />
        <section class="stack" aria-label="This browser">
          <h2>This browser</h2>
          <Card>
            <div class="row theme-row">
              <span>Colours</span>
              <Segmented label="Colours" options={THEMES} value={useStore(theme)} onChange={setTheme} />
            </div>
            <SignOut />
          </Card>
        </section>
        {isMember() ? null : <TimesAndLimits />}
        {isMember() ? null : (
          <section class="stack" id="config" tabIndex={-1} aria-label="Configuration">
            <div>
              <h2>Configuration</h2>
              <p class="muted small">
                What holds now, and where it was set. What is not among the times and limits is changed on the
                machine of the server, by <code>tidemark config set</code>, and holds after SIGHUP or a new
                start. The quota tier is <code>gmail.units_per_minute</code>.
              </p>
            </div>
            <ConfigTable />
          </section>
        )}
      </div>
    </>
  )
}

/** One part of the page for each service. */
function Accounts() {
  const { data, error, refetch } = useAccounts()
  const parts = useAccountParts()
  if (!data || !parts) {
    return (
      <section class="stack" aria-label="Accounts">
        <h2>Accounts</h2>
        {error ? (
          <ErrorNote error={error} retry={refetch} />
        ) : (
          <Card>
            <Skeleton height="14rem" />
          </Card>
        )}
      </section>
    )
  }
  return (
    <>
      {data.services.map((service) => (
        <ServiceAccounts
          key={service.name}
          service={service}
          parts={parts}
          accounts={data.items.filter((account) => account.service === service.name)}
        />
      ))}
    </>
  )
}

type ServiceAccountsProps = { service: ServiceView; parts: AccountParts; accounts: readonly Account[] }

function ServiceAccounts({ service, parts, accounts }: ServiceAccountsProps) {
  const toConnect = (): void => {
    const card = document.getElementById(connectId(service.name))
    card?.scrollIntoView({ block: 'start' })
    card?.focus({ preventScroll: true })
  }
  return (
    <section class="stack" aria-label={service.title}>
      <h2>{service.title}</h2>
      <div class="grid-cards">
        {accounts.map((account) => (
          <AccountCard key={account.name} {...{ account, service, parts }} onConnect={toConnect} />
        ))}
        {service.isSetUp ? <ConnectCard service={service} parts={parts} /> : <SetUpFirst service={service} />}
        {service.apps.map((app) => {
          const Begin = parts[app]?.Begin
          const names = accounts.filter(({ apps }) => app in apps).map(({ name }) => name)
          return Begin && names.length > 0 ? <Begin key={app} accounts={names} /> : null
        })}
      </div>
    </section>
  )
}

export function SignOut() {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const signOut = async (): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await api.signOut()
      forgetSession()
      // The page is loaded anew: no mail stays in its memory.
      location.assign('/sign-in')
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <>
      <div class="row theme-row">
        <span>You are signed in</span>
        <Button small busy={busy} onClick={() => void signOut()}>
          Sign out
        </Button>
      </div>
      {error ? <ErrorNote error={error} /> : null}
    </>
  )
}
