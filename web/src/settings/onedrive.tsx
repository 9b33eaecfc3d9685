/** OneDrive: the accounts, connecting one, and choosing a folder for it. */
import { useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { DriveView, FileAccountView } from '../../../src/server/files-api/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Field, Switch } from '../components/form.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { showToast } from '../components/toast-store.ts'
import { MODES } from '../files/drive-state.ts'
import { driveLink } from '../links.ts'
import { keys, useFileAccounts } from '../queries.ts'
import { ConnectForm } from './connect-form.tsx'

export function OneDriveSettings() {
  const { data, error, refetch } = useFileAccounts()
  return (
    <>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      <div class="grid-cards">
        {!data && !error ? (
          <Card>
            <Skeleton height="6rem" />
          </Card>
        ) : null}
        {data?.items.map((account) => (
          <OneDriveAccount key={account.name} account={account} />
        ))}
        <ConnectOneDrive />
        {data && data.items.length > 0 ? <AddFolder accounts={data.items} /> : null}
      </div>
    </>
  )
}

function OneDriveAccount({ account }: { account: FileAccountView }) {
  const isReady = account.state === 'ready'
  const access = account.access === 'readonly' ? 'May read only' : 'May read and write'
  return (
    <Card
      level={3}
      title={`OneDrive of ${account.name}`}
      tone={isReady ? 'neutral' : 'danger'}
      actions={
        <Badge tone={isReady ? 'accent' : 'danger'} dot>
          {isReady ? 'Connected' : 'Sign in again'}
        </Badge>
      }
    >
      <div class="stack">
        {isReady ? null : (
          <>
            <p>Microsoft no longer lets Tidemark in. Connect the account again; nothing is lost.</p>
            <div class="row">
              <ButtonLink small kind="primary" icon="person" href="/settings#connect-onedrive">
                Connect again
              </ButtonLink>
            </div>
          </>
        )}
        <p class="muted small">{account.access === null ? 'Access not known' : access}</p>
        {account.folders.length === 0 ? (
          <p class="muted">No folder is kept in step with it yet.</p>
        ) : (
          <div class="row">
            {account.folders.map((name) => (
              <ButtonLink key={name} small icon="folder" href={driveLink(name)}>
                {name}
              </ButtonLink>
            ))}
          </div>
        )}
      </div>
    </Card>
  )
}

function ConnectOneDrive() {
  const [isReadOnly, setReadOnly] = useState(false)
  return (
    <ConnectForm
      id="connect-onedrive"
      title="Connect a OneDrive account"
      provider="Microsoft"
      begin={() => api.connectFiles({ access: isReadOnly ? 'readonly' : 'readwrite' })}
    >
      <Switch label="Only let Tidemark read" checked={isReadOnly} onChange={setReadOnly} />
      <p class="muted small">
        Your app registration at Microsoft must list the redirect{' '}
        <code class="path">http://localhost/oauth/onedrive/callback</code>, or that of the name under which
        you reach this server.
      </p>
    </ConnectForm>
  )
}

const POLICY_CHOICES: readonly { value: DriveView['policy']; text: string }[] = [
  { value: 'keep-both', text: 'Keep both' },
  { value: 'manual', text: 'Ask me' },
  { value: 'keep-local', text: 'Keep the one from here' },
  { value: 'keep-remote', text: 'Keep the one from OneDrive' },
]

function AddFolder({ accounts }: { accounts: readonly FileAccountView[] }) {
  const client = useQueryClient()
  const [, navigate] = useLocation()
  const [account, setAccount] = useState(accounts[0]!.name)
  const [path, setPath] = useState('')
  const [mode, setMode] = useState<DriveView['mode']>('two-way')
  const [policy, setPolicy] = useState<DriveView['policy']>('keep-both')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const add = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const added = await api.addFolder({ account, path, mode, policy })
      showToast(added.text, { tone: 'accent' })
      await client.invalidateQueries({ queryKey: keys.files })
      void client.invalidateQueries({ queryKey: keys.fileAccounts })
      navigate(driveLink(added.name))
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <div id="add-folder" tabIndex={-1}>
      <Card title="Add a folder" level={3}>
        <form class="stack" onSubmit={(event) => void add(event)}>
          {accounts.length > 1 ? (
            <Field label="Account">
              {(control) => (
                <select
                  {...control}
                  value={account}
                  onChange={(event) => setAccount(event.currentTarget.value)}
                >
                  {accounts.map(({ name }) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              )}
            </Field>
          ) : null}
          <Field
            label="Folder"
            hint="On the machine where Tidemark runs. What is in it is merged with what is in OneDrive; nothing is deleted."
          >
            {(control) => (
              <input
                {...control}
                required
                placeholder="~/OneDrive"
                autocomplete="off"
                spellcheck={false}
                value={path}
                onInput={(event) => setPath(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Changes go">
            {(control) => (
              <select
                {...control}
                value={mode}
                onChange={(event) => setMode(event.currentTarget.value as DriveView['mode'])}
              >
                {Object.entries(MODES).map(([value, text]) => (
                  <option key={value} value={value}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="When a file was changed on both sides">
            {(control) => (
              <select
                {...control}
                value={policy}
                onChange={(event) => setPolicy(event.currentTarget.value as DriveView['policy'])}
              >
                {POLICY_CHOICES.map(({ value, text }) => (
                  <option key={value} value={value}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {error ? <ErrorNote error={error} /> : null}
          <div class="row">
            <Button type="submit" kind="primary" icon="folder" busy={busy} disabled={path.trim() === ''}>
              Keep it in step
            </Button>
          </div>
        </form>
      </Card>
    </div>
  )
}
