/** Connects an account: chooses what Tidemark may do, and goes to Google for it. */
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Switch } from '../components/form.tsx'
import { ErrorNote } from '../components/notes.tsx'
import { ApiError } from '../problem.ts'
import { safeAddress } from './account-state.ts'

type Access = 'readonly' | 'modify' | 'full'

const ACCESSES: readonly { value: Access; text: string; hint: string }[] = [
  { value: 'readonly', text: 'Read only', hint: 'Enough to copy, search and read.' },
  {
    value: 'modify',
    text: 'Read and move',
    hint: 'Also to take old mail out of the inbox, or to the trash.',
  },
  { value: 'full', text: 'Everything', hint: 'Also to delete for good, which frees space.' },
]

export function ConnectCard() {
  const [access, setAccess] = useState<Access>('readonly')
  const [spam, setSpam] = useState(false)
  // As on the command line: what lies in the trash may be wanted again.
  const [trash, setTrash] = useState(true)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const connect = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const address = safeAddress((await api.connect({ access, spam, trash })).url)
      if (!address)
        throw new ApiError({ status: 502, title: 'The address to sign in at is not one of the web' })
      // In this tab: a new one would be taken for an unwanted window. Google sends it back here.
      location.assign(address)
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <div id="connect" tabIndex={-1}>
      <Card title="Connect a Gmail account" level={3}>
        <form class="stack" onSubmit={(event) => void connect(event)}>
          <fieldset class="actions">
            <legend class="field-label">What Tidemark may do</legend>
            <div class="access-choices">
              {ACCESSES.map(({ value, text, hint }) => (
                <label key={value} class="access-choice">
                  <input
                    type="radio"
                    name="access"
                    value={value}
                    checked={access === value}
                    onChange={() => setAccess(value)}
                  />
                  <span>
                    <b>{text}</b> <span class="muted small">{hint}</span>
                  </span>
                </label>
              ))}
            </div>
          </fieldset>
          <div class="row connect-switches">
            <Switch label="Copy spam as well" checked={spam} onChange={setSpam} />
            <Switch label="Copy the trash as well" checked={trash} onChange={setTrash} />
          </div>
          {error ? <ErrorNote error={error} /> : null}
          <div class="row">
            <Button type="submit" kind="primary" icon="external" busy={busy}>
              {busy ? 'Going to Google …' : 'Go on to Google'}
            </Button>
            <span class="muted small">You sign in there; Tidemark never sees your password.</span>
          </div>
        </form>
      </Card>
    </div>
  )
}
