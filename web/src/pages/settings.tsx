/** Accounts, what holds now, and how this page looks. */
import { ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Segmented } from '../components/form.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { useAccounts } from '../queries.ts'
import { AccountCard } from '../settings/account-card.tsx'
import { ConfigTable } from '../settings/config-table.tsx'
import { ConnectCard } from '../settings/connect-card.tsx'
import { OneDriveSettings } from '../settings/onedrive.tsx'
import { SignOut } from '../settings/sign-out.tsx'
import { useStore } from '../store.ts'
import { setTheme, theme } from '../theme.ts'
import '../styles/settings.css'

const THEMES = [
  { value: 'auto', text: 'As the system' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
] as const

export function SettingsPage() {
  return (
    <>
      <PageTitle title="Settings" lead="Accounts, limits, and what holds now.">
        <ButtonLink href="/settings#connect" icon="person" kind="primary" small>
          Connect an account
        </ButtonLink>
      </PageTitle>
      <div class="settings">
        <section class="stack" aria-label="Accounts">
          <h2>Accounts</h2>
          <Accounts />
        </section>
        <section class="stack" aria-label="OneDrive">
          <h2>OneDrive</h2>
          <OneDriveSettings />
        </section>
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
        <section class="stack" id="config" tabIndex={-1} aria-label="Configuration">
          <div>
            <h2>Configuration</h2>
            <p class="muted small">
              What holds now, and where it was set. Change it in the configuration file, then send the server
              SIGHUP or restart it. The quota tier is <code>gmail.units_per_minute</code>.
            </p>
          </div>
          <ConfigTable />
        </section>
      </div>
    </>
  )
}

function Accounts() {
  const { data, error, refetch } = useAccounts()
  const toConnect = (): void => {
    const card = document.getElementById('connect')
    card?.scrollIntoView({ block: 'start' })
    card?.focus({ preventScroll: true })
  }
  return (
    <>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      <div class="grid-cards">
        {!data && !error ? (
          <Card>
            <Skeleton height="14rem" />
          </Card>
        ) : null}
        {data?.items.map((account) => (
          <AccountCard key={account.name} account={account} onConnect={toConnect} />
        ))}
        <ConnectCard />
      </div>
    </>
  )
}
