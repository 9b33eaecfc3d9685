/** Other rates by time of day: from when to when, on which days, how fast. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { SettingView } from '../../../src/app/schemas.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Select } from '../components/form.tsx'
import { useSetting } from './use-setting.ts'

export const TIMETABLE_KEY = 'bandwidth.timetable'

const RATES = ['upload', 'download', 'combined'] as const
type Rate = (typeof RATES)[number]

type Entry = { from: string; to: string; days: string } & Record<Rate, string>

const DAYS = [
  { value: '', text: 'every day' },
  { value: 'mon,tue,wed,thu,fri', text: 'Monday to Friday' },
  { value: 'sat,sun', text: 'at the weekend' },
]

/** As they are told: rates in bytes a second, null where there is no limit. */
type Told = { from: string; to: string; days?: string[] } & Partial<Record<Rate, number | null>>

function entriesOf(value: string): Entry[] {
  const told = JSON.parse(value) as Told[]
  return told.map(({ from, to, days, ...rates }) => ({
    from,
    to,
    days: days?.join(',') ?? '',
    upload: rateText(rates.upload),
    download: rateText(rates.download),
    combined: rateText(rates.combined),
  }))
}

function rateText(rate: number | null | undefined): string {
  if (rate === undefined) return ''
  if (rate === null) return 'unlimited'
  for (const [unit, size] of [
    ['GB/s', 1e9],
    ['MB/s', 1e6],
    ['kB/s', 1e3],
  ] as const) {
    if (rate >= size && rate % (size / 1_000) === 0) return `${rate / size}${unit}`
  }
  return `${rate}B/s`
}

/** As the configuration file has it. */
function tomlOf(entries: readonly Entry[]): string {
  const text = (value: string): string => JSON.stringify(value)
  const tables = entries.map(({ from, to, days, ...rates }) => {
    const pairs = [`from = ${text(from)}`, `to = ${text(to)}`]
    if (days !== '') pairs.push(`days = [${days.split(',').map(text).join(', ')}]`)
    for (const rate of RATES)
      if (rates[rate].trim() !== '') pairs.push(`${rate} = ${text(rates[rate].trim())}`)
    return `{ ${pairs.join(', ')} }`
  })
  return `[${tables.join(', ')}]`
}

const NEW: Entry = { from: '22:00', to: '06:00', days: '', upload: 'unlimited', download: '', combined: '' }

export function Timetable({ setting }: { setting: SettingView }) {
  const [entries, setEntries] = useState(() => entriesOf(setting.value))
  const { save, busy, error } = useSetting(setting)
  const isFixed = setting.change !== 'here'
  const isSame = tomlOf(entries) === tomlOf(entriesOf(setting.value))
  const change = (at: number, part: Partial<Entry>): void =>
    setEntries((before) => before.map((one, index) => (index === at ? { ...one, ...part } : one)))
  return (
    <Card title="By time of day" level={3}>
      <div class="stack">
        {entries.length === 0 ? <p class="muted">The same limits hold at any time.</p> : null}
        {entries.map((entry, at) => (
          <fieldset key={at} class="timetable-entry" disabled={isFixed}>
            <legend class="visually-hidden">{`Time ${at + 1}`}</legend>
            <Labelled text="From">
              <input
                class="input"
                type="time"
                required
                value={entry.from}
                onInput={(event) => change(at, { from: event.currentTarget.value })}
              />
            </Labelled>
            <Labelled text="To">
              <input
                class="input"
                type="time"
                required
                value={entry.to}
                onInput={(event) => change(at, { to: event.currentTarget.value })}
              />
            </Labelled>
            <Labelled text="Days">
              <Select value={entry.days} options={DAYS} onChange={(days) => change(at, { days })} />
            </Labelled>
            {RATES.map((rate) => (
              <Labelled key={rate} text={RATE_TITLES[rate]}>
                <input
                  class="input"
                  placeholder="as above"
                  value={entry[rate]}
                  onInput={(event) => change(at, { [rate]: event.currentTarget.value })}
                />
              </Labelled>
            ))}
            <Button
              kind="quiet"
              icon="close"
              aria-label={`Remove time ${at + 1}`}
              onClick={() => setEntries((before) => before.filter((_, index) => index !== at))}
            />
          </fieldset>
        ))}
        {error === '' ? null : (
          <p class="field-error" role="alert">
            {error}
          </p>
        )}
        {isFixed ? (
          <p class="muted small">Set by {setting.origin}, which wins.</p>
        ) : (
          <div class="row">
            <Button small onClick={() => setEntries((before) => [...before, NEW])}>
              Add a time
            </Button>
            {isSame ? null : (
              <Button
                small
                kind="primary"
                busy={busy}
                onClick={() => void save(entries.length === 0 ? null : tomlOf(entries))}
              >
                Save the timetable
              </Button>
            )}
          </div>
        )}
      </div>
    </Card>
  )
}

const RATE_TITLES: Record<Rate, string> = { upload: 'Upload', download: 'Download', combined: 'Together' }

function Labelled({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is its child.
    <label class="timetable-field">
      <span class="field-label">{text}</span>
      {children}
    </label>
  )
}
