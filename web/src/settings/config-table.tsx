/** What holds now, and what said so. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { SettingView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { type Column, DataTable } from '../components/data-table.tsx'
import { Switch } from '../components/form.tsx'
import { EmptyNote, ErrorNote } from '../components/notes.tsx'
import { keys } from '../queries.ts'

const COLUMNS: readonly Column<SettingView>[] = [
  {
    id: 'key',
    title: 'Setting',
    cell: ({ key, purpose }) => (
      <div class="setting">
        <code class="truncate">{key}</code>
        <span class="muted truncate only-wide" title={purpose ?? undefined}>
          {purpose}
        </span>
      </div>
    ),
  },
  {
    id: 'value',
    title: 'Value',
    cell: ({ value, origin }) => (
      <div class="setting">
        <span class="mono truncate" title={value}>
          {value === '' ? '–' : value}
        </span>
        <span class="muted truncate only-narrow">{origin}</span>
      </div>
    ),
  },
  {
    id: 'origin',
    title: 'Set by',
    low: true,
    cell: ({ origin }) => (
      <span class={origin === 'default' ? 'muted' : ''} title={origin}>
        {origin}
      </span>
    ),
  },
]

export function ConfigTable() {
  const [wanted, setWanted] = useState('')
  const [onlySet, setOnlySet] = useState(false)
  const { data, error, refetch, isLoading } = useQuery({
    queryKey: keys.config,
    queryFn: ({ signal }) => api.config(signal),
  })
  const text = wanted.trim().toLowerCase()
  const rows = (data?.items ?? []).filter(
    ({ key, purpose, origin }) =>
      (!onlySet || origin !== 'default') && `${key} ${purpose ?? ''}`.toLowerCase().includes(text),
  )
  return (
    <div class="stack config">
      <div class="row">
        <input
          class="input config-filter"
          type="search"
          aria-label="Find a setting"
          placeholder="Find a setting"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        <Switch label="Only what was set" checked={onlySet} onChange={setOnlySet} />
      </div>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {error && !data ? null : (
        <DataTable
          caption="Effective configuration"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ key }) => key}
          loading={isLoading}
          rowPx={52}
          empty={<EmptyNote title="No such setting">Nothing is set that fits.</EmptyNote>}
        />
      )}
    </div>
  )
}
