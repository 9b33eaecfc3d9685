/** Which mail is to leave Gmail, and how. */
import { Link } from 'wouter-preact'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Field, named, RadioField, Select, SelectField } from '../../../../../web/src/components/form.tsx'
import { settingsLink } from '../../../../../web/src/links.ts'
import type { MailAccount } from '../queries.ts'
import { ACTIONS, missingAccess, UNITS, type WishForm, wishOf } from './clean-up.ts'

export type WishFormProps = {
  form: WishForm
  accounts: readonly MailAccount[]
  busy: boolean
  onChange: (form: WishForm) => void
  onDryRun: () => void
}

export function WishFields({ form, accounts, busy, onChange, onDryRun }: WishFormProps) {
  const set = (part: Partial<WishForm>): void => onChange({ ...form, ...part })
  const isReady = wishOf(form) !== undefined
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady && !busy) onDryRun()
      }}
    >
      <div class="wish-fields">
        <SelectField
          label="Account"
          value={form.account}
          options={named(accounts.map(({ name }) => name))}
          onChange={(account) => set({ account })}
        />
        <AgeField form={form} set={set} isReady={isReady} />
        <Field
          label="Only what this query finds"
          hint="Empty: everything that old. Same words as in the search."
        >
          {(control) => (
            <input
              {...control}
              placeholder="category:promotions larger:1M"
              maxLength={2_000}
              autocomplete="off"
              spellcheck={false}
              value={form.query}
              onInput={(event) => set({ query: event.currentTarget.value })}
            />
          )}
        </Field>
      </div>
      <ActionField form={form} accounts={accounts} set={set} />
      <div class="row">
        <Button type="submit" kind="primary" icon="search" busy={busy} disabled={!isReady}>
          {busy ? 'Looking …' : 'Dry run'}
        </Button>
        <span class="muted small">Looks only; nothing is changed.</span>
      </div>
    </form>
  )
}

type PartProps = { form: WishForm; set: (part: Partial<WishForm>) => void }

function AgeField({ form, set, isReady }: PartProps & { isReady: boolean }) {
  return (
    <Field
      label="Older than"
      error={isReady || form.account === '' ? undefined : 'A whole number, such as 2.'}
    >
      {(control) => (
        <div class="age">
          <input
            {...control}
            inputMode="numeric"
            maxLength={4}
            autocomplete="off"
            value={form.amount}
            onInput={(event) => set({ amount: event.currentTarget.value })}
          />
          <Select
            aria-label="Unit of age"
            value={form.unit}
            options={UNITS}
            onChange={(unit) => set({ unit })}
          />
        </div>
      )}
    </Field>
  )
}

function ActionField({ form, accounts, set }: PartProps & { accounts: readonly MailAccount[] }) {
  const account = accounts.find(({ name }) => name === form.account)
  const missing = account ? missingAccess(account.access, form.action) : undefined
  return (
    <RadioField
      legend="What happens to it in Gmail"
      name="action"
      options={ACTIONS}
      value={form.action}
      onChange={(action) => set({ action })}
    >
      {missing ? (
        <p class="field-error">
          {missing} <Link href={settingsLink()}>Settings</Link>
        </p>
      ) : null}
    </RadioField>
  )
}
