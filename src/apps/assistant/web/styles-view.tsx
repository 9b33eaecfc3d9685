/** Styles, contacts, the blacklist and routing of an account, as the text that they are imported from. */
import { useEffect, useState } from 'preact/hooks'
import { Button } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Field, named, SelectField } from '../../../../web/src/components/form.tsx'
import { Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { useAction } from '../../../../web/src/queries.ts'
import type { SettingsView } from '../api/schemas.ts'
import { assistApi, assistKeys, useSettings } from './queries.ts'

export function Styles({ accounts }: { accounts: readonly string[] }) {
  const [account, setAccount] = useState(accounts[0] ?? '')
  const settings = useSettings(account)
  return (
    <>
      {accounts.length < 2 ? null : (
        <SelectField label="Account" value={account} options={named(accounts)} onChange={setAccount} />
      )}
      <Loaded query={settings} waiting={<Skeleton height="12rem" />}>
        {(one) => <Editor key={one.account} settings={one} />}
      </Loaded>
    </>
  )
}

function Editor({ settings }: { settings: SettingsView }) {
  const [toml, setToml] = useState(settings.toml)
  const save = useAction({
    run: () => assistApi.saveSettings(settings.account, { toml }),
    invalidates: [assistKeys.settings],
  })
  useEffect(() => setToml(settings.toml), [settings.toml])
  return (
    <Card title={settings.account}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void save.start()
        }}
      >
        <Field
          label="Styles, contacts, blacklist and routing"
          hint="TOML. A style has rules, a sign-off and examples; a contact may have a style of its own; routing rules send mail to agents, the first that fits counts."
        >
          {(control) => (
            <textarea
              {...control}
              class="input mono"
              rows={20}
              spellcheck={false}
              value={toml}
              onInput={(event) => setToml(event.currentTarget.value)}
            />
          )}
        </Field>
        <div class="row">
          <Button type="submit" kind="primary" busy={save.busy} disabled={toml === settings.toml}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  )
}
