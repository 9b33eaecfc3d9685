/**
 * Setting up a service: the steps to a client with which people sign in there, each with what a check has said of it,
 * and at the end the first account.
 */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useParams } from 'wouter-preact'
import type { SetupView, StepCheckView } from '../../../src/app/accounts/schemas.ts'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { useConfirm } from '../components/confirm.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { EmptyNote, ErrorNote, Loaded, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { pathPart, settingsLink } from '../links.ts'
import { keys, useAccounts, useAction } from '../queries.ts'
import { ConnectCard } from '../settings/connect-card.tsx'
import { useAccountParts } from '../settings/use-account-parts.ts'
import '../styles/settings.css'
import '../styles/setup.css'

type Step = SetupView['steps'][number]

/** Where what the others brought is entered. */
const ENTER_STEP = 'enter'
const setupKey = (service: string) => ['setup', service]

export function SetupPage() {
  const name = pathPart(useParams<{ service: string }>().service)
  const accounts = useAccounts()
  const service = accounts.data?.services.find((one) => one.name === name)
  const crumbs = [{ text: 'Settings', href: settingsLink() }]
  if (accounts.data && !service) {
    return (
      <>
        <PageTitle title="Set-up" crumbs={crumbs} />
        <EmptyNote title={`There is no service ${name}`}>
          Those that there are stand in the settings.
        </EmptyNote>
      </>
    )
  }
  return (
    <>
      <PageTitle title={`Set up ${service?.title ?? name}`} crumbs={crumbs} />
      {service ? <Guide key={name} service={name} /> : <Skeleton height="20rem" />}
    </>
  )
}

function Guide({ service: name }: { service: string }) {
  const query = useQuery({ queryKey: setupKey(name), queryFn: ({ signal }) => api.setup(name, signal) })
  const [checks, setChecks] = useState<readonly StepCheckView[]>([])
  return (
    <Loaded query={query} waiting={<Skeleton height="20rem" />}>
      {(setup) => (
        <div class="setup">
          <p class="lead">{setup.intro}</p>
          {setup.client ? <Kept service={name} setup={setup} onChecked={setChecks} /> : null}
          <ol class="setup-steps">
            {setup.steps.map((step) => (
              <StepItem key={step.id} step={step} checks={checks.filter((one) => one.step === step.id)}>
                {step.id === ENTER_STEP && !setup.client?.setBy ? (
                  <ClientForm service={name} setup={setup} onChecked={setChecks} />
                ) : null}
              </StepItem>
            ))}
          </ol>
          {setup.client ? <Connect service={name} /> : null}
        </div>
      )}
    </Loaded>
  )
}

type StepProps = { step: Step; checks: readonly StepCheckView[]; children: ComponentChildren }

function StepItem({ step, checks, children }: StepProps) {
  const { title, texts, links, copies } = step
  return (
    <li class="setup-step">
      <h2 class="setup-title">{title}</h2>
      {texts.map((text) => (
        <p key={text}>{text}</p>
      ))}
      {links.length > 0 ? (
        <p class="row">
          {links.map(({ text, url }) => (
            <a key={url} class="button button-small" href={url} target="_blank" rel="noreferrer">
              <Icon name="external" />
              {text}
            </a>
          ))}
        </p>
      ) : null}
      {copies.map(({ label, text }) => (
        <div key={text} class="setup-copy">
          <code>{text}</code>
          <CopyButton text={text} label={`${label.toLowerCase()} ${text}`} />
        </div>
      ))}
      {children}
      {checks.map((check) => (
        <CheckLine key={check.text} check={check} />
      ))}
    </li>
  )
}

const TONES = { ok: 'accent', failed: 'danger', unknown: 'neutral' } as const
const WORDS = { ok: 'Checked', failed: 'Wrong', unknown: 'Open' } as const

function CheckLine({ check: { state, text, hint } }: { check: StepCheckView }) {
  return (
    <p class={`alert-line tone-${TONES[state]}`} role={state === 'failed' ? 'alert' : 'status'}>
      <Icon name={state === 'ok' ? 'check' : state === 'failed' ? 'alert' : 'next'} />
      <span>
        <strong>{WORDS[state]}:</strong> {text} {hint}
      </span>
    </p>
  )
}

type FormProps = {
  service: string
  setup: SetupView
  onChecked: (checks: readonly StepCheckView[]) => void
}

function ClientForm({ service, setup, onChecked }: FormProps) {
  const client = useQueryClient()
  const { fields, company } = setup
  const [id, setId] = useState(setup.client?.id ?? '')
  const [secret, setSecret] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const keep = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    onChecked([])
    try {
      const { checks } = await api.keepClient(service, { id, ...(fields.secret && { secret }) })
      onChecked(checks)
      setSecret('')
      await client.invalidateQueries({ queryKey: setupKey(service) })
      void client.invalidateQueries({ queryKey: keys.accounts })
    } catch (cause) {
      setError(cause)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form class="stack setup-form" autocomplete="off" onSubmit={(event) => void keep(event)}>
      <Field label={fields.id.label}>
        {(control) => (
          <input
            {...control}
            class="input mono"
            required
            spellcheck={false}
            placeholder={fields.id.example}
            value={id}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        )}
      </Field>
      {fields.secret ? (
        <Field label={fields.secret.label} hint="It is kept sealed, and never shown again.">
          {(control) => (
            <input
              {...control}
              class="input mono"
              type="password"
              autocomplete="off"
              required
              placeholder={fields.secret?.example}
              value={secret}
              onInput={(event) => setSecret(event.currentTarget.value)}
            />
          )}
        </Field>
      ) : null}
      {error ? <ErrorNote error={error} what="Please check what you entered" /> : null}
      <div class="row">
        <Button type="submit" kind="primary" icon="check" busy={busy}>
          {busy ? `Asking ${company} …` : 'Check and keep'}
        </Button>
      </div>
    </form>
  )
}

/** What holds now: it can be checked again, and forgotten where it was entered here. */
function Kept({ service, setup, onChecked }: FormProps) {
  const { client, company } = setup
  const confirm = useConfirm()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const forget = useAction({
    run: () => api.forgetClient(service),
    invalidates: [setupKey(service), keys.accounts],
    done: () => onChecked([]),
  })
  const check = async (): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      onChecked((await api.checkClient(service)).checks)
    } catch (cause) {
      setError(cause)
    } finally {
      setBusy(false)
    }
  }
  const ask = async (): Promise<void> => {
    const isSure = await confirm({
      title: `Forget the client of ${company}?`,
      text: 'Accounts that are connected go on. To connect another one, a client must be entered again.',
      action: 'Forget the client',
      danger: true,
    })
    if (isSure) await forget.start()
  }
  if (!client) return null
  return (
    <Card title="It is set up" level={2} tone="accent">
      <div class="stack">
        <p class="setup-id">
          People sign in with the client <code>{client.id}</code>.
        </p>
        {client.setBy ? (
          <p class="muted small setup-id">
            It is set by {client.setBy}, which wins over what is entered here: change it there.
          </p>
        ) : null}
        {error ? <ErrorNote error={error} /> : null}
        <div class="row">
          <Button small icon="retry" busy={busy} onClick={() => void check()}>
            Check again
          </Button>
          {client.setBy ? null : (
            <Button small kind="quiet" busy={forget.busy} onClick={() => void ask()}>
              Forget
            </Button>
          )}
        </div>
      </div>
    </Card>
  )
}

function Connect({ service: name }: { service: string }) {
  const service = useAccounts().data?.services.find((one) => one.name === name)
  const parts = useAccountParts()
  return service?.isSetUp && parts ? <ConnectCard service={service} parts={parts} /> : null
}
