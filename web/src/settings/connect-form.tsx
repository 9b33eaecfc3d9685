/** A card that connects an account: choices of its own, and then the way to the service, in this tab. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorNote } from '../components/notes.tsx'
import { ApiError } from '../problem.ts'
import { safeAddress } from './account-state.ts'

export type ConnectFormProps = {
  id: string
  title: string
  /** Whose sign-in it goes to: "Google". */
  provider: string
  begin: () => Promise<{ url: string }>
  children: ComponentChildren
}

export function ConnectForm({ id, title, provider, begin, children }: ConnectFormProps) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const connect = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const address = safeAddress((await begin()).url)
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
    <div id={id} tabIndex={-1}>
      <Card title={title} level={3}>
        <form class="stack" onSubmit={(event) => void connect(event)}>
          {children}
          {error ? <ErrorNote error={error} /> : null}
          <div class="row">
            <Button type="submit" kind="primary" icon="external" busy={busy}>
              {busy ? `Going to ${provider} …` : `Go on to ${provider}`}
            </Button>
            <span class="muted small">You sign in there; Tidemark never sees your password.</span>
          </div>
        </form>
      </Card>
    </div>
  )
}
