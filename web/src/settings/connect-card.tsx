/** Connects a Gmail account: chooses what Tidemark may do, and goes to Google for it. */
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { Switch } from '../components/form.tsx'
import { ConnectForm } from './connect-form.tsx'

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
  return (
    <ConnectForm
      id="connect"
      title="Connect a Gmail account"
      provider="Google"
      begin={() => api.connect({ access, spam, trash })}
    >
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
    </ConnectForm>
  )
}
