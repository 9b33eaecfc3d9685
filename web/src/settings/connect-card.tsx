/** Connects an account of a service: chooses what Tidemark may do, and goes there for it, in this tab. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { ServiceView } from '../../../src/app/accounts/schemas.ts'
import { api } from '../api.ts'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { RadioField } from '../components/form.tsx'
import { ErrorNote } from '../components/notes.tsx'
import { safeAddress, setupLink } from '../links.ts'
import { ApiError } from '../problem.ts'
import { isMember } from '../session.ts'
import type { AccountParts, Choices } from './account-part.ts'

/** What the apps that work for a service let choose. */
function choicesOf({ apps }: ServiceView, parts: AccountParts): [app: string, choices: Choices][] {
  return apps.flatMap((app): [string, Choices][] => {
    const choices = parts[app]?.choices
    return choices ? [[app, choices]] : []
  })
}

export function ConnectCard({ service, parts }: { service: ServiceView; parts: AccountParts }) {
  const { name, title, company, levels } = service
  const choices = choicesOf(service, parts)
  const [access, setAccess] = useState(service.level)
  const [chosen, setChosen] = useState(() =>
    Object.fromEntries(choices.map(([app, { initial }]) => [app, initial])),
  )
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const connect = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const address = safeAddress((await api.connect({ service: name, access, choices: chosen })).url)
      if (!address)
        throw new ApiError({ status: 502, title: 'The address to sign in at is not one of the web' })
      // In this tab: a new one would be taken for an unwanted window. The service sends it back here.
      location.assign(address)
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <div id={connectId(name)} tabIndex={-1}>
      <Card title={`Connect a ${title} account`} level={3}>
        <form class="stack" onSubmit={(event) => void connect(event)}>
          <RadioField
            legend="What Tidemark may do"
            name="access"
            options={levels.map(({ level, choice }) => ({
              value: level,
              text: choice.title,
              hint: choice.hint,
            }))}
            value={access}
            onChange={setAccess}
          />
          {choices.map(([app, { Fields }]) => (
            <Fields
              key={app}
              chosen={chosen[app]!}
              onChange={(now) => setChosen((before) => ({ ...before, [app]: now }))}
            />
          ))}
          {error ? <ErrorNote error={error} /> : null}
          <div class="row">
            <Button type="submit" kind="primary" icon="external" busy={busy}>
              {busy ? `Going to ${company} …` : `Go on to ${company}`}
            </Button>
            <span class="muted small">You sign in there; Tidemark never sees your password.</span>
          </div>
          {isMember() ? null : (
            <p class="muted small">
              <Link href={setupLink(name)}>Set-up of {company}</Link>
            </p>
          )}
        </form>
      </Card>
    </div>
  )
}

/** In the place of the card, until somebody has set the service up. */
export function SetUpFirst({ service: { name, title, company } }: { service: ServiceView }) {
  return (
    <div id={connectId(name)} tabIndex={-1}>
      <Card title={`Connect a ${title} account`} level={3}>
        {isMember() ? (
          <p class="muted">{title} is not set up yet. An admin of this Tidemark does that; ask them.</p>
        ) : (
          <div class="stack">
            <p class="muted">
              Before the first account, {company} has to know this Tidemark. That is done once, in five steps.
            </p>
            <div class="row">
              <ButtonLink href={setupLink(name)} kind="primary" icon="next">
                Set up {title}
              </ButtonLink>
            </div>
          </div>
        )}
      </Card>
    </div>
  )
}

/** Where the card of a service is on the page. */
export const connectId = (service: string): string => `connect-${service}`
