/** The settings that people change: they are written into the configuration file, and hold at once. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { SettingView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Field } from '../components/form.tsx'
import { keys } from '../queries.ts'
import { TIMETABLE_KEY, Timetable } from './timetable.tsx'
import { settingTitle, useSetting } from './use-setting.ts'

export function TimesAndLimits() {
  const { data } = useQuery({ queryKey: keys.config, queryFn: ({ signal }) => api.config(signal) })
  const settings = (data?.items ?? []).filter(({ change }) => change !== 'no')
  if (settings.length === 0) return null
  const timetable = settings.find(({ key }) => key === TIMETABLE_KEY)
  return (
    <section class="stack" id="limits" tabIndex={-1} aria-label="Times and limits">
      <div>
        <h2>Times and limits</h2>
        <p class="muted small">They are kept in the configuration file, and hold at once.</p>
      </div>
      <Card>
        <div class="limits">
          {settings
            .filter(({ key }) => key !== TIMETABLE_KEY)
            .map((setting) => (
              // With another value it begins anew: what was typed is saved by then.
              <SettingField key={`${setting.key} ${setting.value}`} setting={setting} />
            ))}
        </div>
      </Card>
      {timetable ? <Timetable key={timetable.value} setting={timetable} /> : null}
    </section>
  )
}

function SettingField({ setting }: { setting: SettingView }) {
  const { key, value, purpose, allowed, origin, change } = setting
  const [text, setText] = useState(value)
  const { save, busy, error } = useSetting(setting)
  const isFixed = change !== 'here'
  const hint = isFixed ? `Set by ${origin}, which wins.` : (purpose ?? '')
  return (
    <form
      class="limit"
      onSubmit={(event) => {
        event.preventDefault()
        void save(text)
      }}
    >
      <Field label={settingTitle(key)} hint={hint} error={error}>
        {(control) => (
          <div class="limit-row">
            <input
              {...control}
              title={`It must be ${allowed}.`}
              disabled={isFixed}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            {text !== value ? (
              <Button type="submit" kind="primary" busy={busy}>
                Save
              </Button>
            ) : origin !== 'default' && !isFixed ? (
              <Button kind="quiet" busy={busy} onClick={() => void save(null)}>
                Default
              </Button>
            ) : null}
          </div>
        )}
      </Field>
    </form>
  )
}
