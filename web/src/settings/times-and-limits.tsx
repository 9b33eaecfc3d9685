/** The settings that people change: they are written into the configuration file, and hold at once. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { SettingView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Field } from '../components/form.tsx'
import { showToast } from '../components/toast-store.ts'
import { keys } from '../queries.ts'
import { TIMETABLE_KEY, Timetable } from './timetable.tsx'

/** What a person would call them. */
const TITLES: Readonly<Record<string, string>> = {
  'bandwidth.upload': 'Upload at most',
  'bandwidth.download': 'Download at most',
  'bandwidth.combined': 'Both together at most',
  'mail.poll_minutes': 'Look for new mail every (minutes)',
  'files.poll_seconds': 'Ask OneDrive for changes every (seconds)',
  'files.scan_minutes': 'Look through whole folders every (minutes)',
  'drive.poll_minutes': 'Ask Google Drive for changes every (minutes)',
  'assist.poll_minutes': 'Look at mail to sort every (minutes)',
  'assist.full_scan_minutes': 'Compare the whole inbox every (minutes)',
  'ingest.receive_wait_seconds': 'Ask a queue anew every (seconds)',
}

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

/** Saves a setting; what went wrong stands beside it. */
export function useSetting({ key }: SettingView) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const save = async (value: string | null): Promise<void> => {
    setBusy(true)
    setError('')
    try {
      const saved = await api.setConfig(key, value)
      showToast(`${TITLES[key] ?? key}: ${saved.value}`, { tone: 'accent' })
      await client.invalidateQueries({ queryKey: keys.config })
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : 'That did not work.')
    } finally {
      setBusy(false)
    }
  }
  return { save, busy, error }
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
      <Field label={TITLES[key] ?? key} hint={hint} error={error}>
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
