/** What holds for a folder, and changing it: direction, conflicts, what takes part. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { Button } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Field, SelectField, Switch } from '../../../../web/src/components/form.tsx'
import { ErrorNote, Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { showToast } from '../../../../web/src/components/toast-store.ts'
import type { FolderSettings } from '../api/schemas.ts'
import { filesApi } from './api.ts'
import { changedSettings, MODE_CHOICES, POLICY_CHOICES } from './folder-state.ts'
import { fileKeys } from './queries.ts'

const settingsKey = (folder: string) => [...fileKeys.fileParts, 'settings', folder]

export function FolderSettingsCard({ folder }: { folder: string }) {
  const query = useQuery({
    queryKey: settingsKey(folder),
    queryFn: ({ signal }) => filesApi.settings(folder, signal),
    // What somebody is typing must not be replaced, and what was read for an earlier form is no beginning.
    refetchOnWindowFocus: false,
    gcTime: 0,
  })
  return (
    <Card title="Settings of this folder">
      <Loaded query={query} waiting={<Skeleton height="16rem" />}>
        {(settings) => <SettingsForm folder={folder} settings={settings} />}
      </Loaded>
    </Card>
  )
}

/** One in each line. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

function SettingsForm({ folder, settings }: { folder: string; settings: FolderSettings }) {
  const client = useQueryClient()
  const [began, setBegan] = useState(settings)
  const [wish, setWish] = useState(settings)
  const [only, setOnly] = useState(settings.only.join('\n'))
  const [skip, setSkip] = useState(settings.skip.join('\n'))
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const change = (part: Partial<FolderSettings>): void => setWish((before) => ({ ...before, ...part }))
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const now = { ...wish, only: linesOf(only), skip: linesOf(skip) }
      const saved = await filesApi.setSettings(folder, changedSettings(began, now))
      client.setQueryData(settingsKey(folder), saved)
      setBegan(saved)
      setWish(saved)
      setOnly(saved.only.join('\n'))
      setSkip(saved.skip.join('\n'))
      showToast(`The settings of ${folder} are changed; both sides are looked at now.`, { tone: 'accent' })
      void client.invalidateQueries({ queryKey: fileKeys.files })
    } catch (cause) {
      setError(cause)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form class="stack folder-settings" onSubmit={(event) => void save(event)}>
      <SelectField
        label="Changes go"
        value={wish.mode}
        options={MODE_CHOICES}
        onChange={(mode) => change({ mode })}
      />
      <SelectField
        label="When a file was changed on both sides"
        value={wish.policy}
        options={POLICY_CHOICES}
        onChange={(policy) => change({ policy })}
      />
      <Field
        label="Only these folders and files"
        hint="One in each line, from the top of the folder, such as Documents/Work. All of it where none is named."
      >
        {(control) => <Lines control={control} value={only} onChange={setOnly} />}
      </Field>
      <Field
        label="Left out"
        hint="One pattern in each line, as in a .gitignore: *.iso, build/, !keep.iso. What is left out stays where it is, on both sides."
      >
        {(control) => <Lines control={control} value={skip} onChange={setSkip} />}
      </Field>
      <Field label="Leave out files larger than (MB)" hint="0: none.">
        {(control) => (
          <input
            {...control}
            type="number"
            min="0"
            step="any"
            value={wish.sizeMbMax}
            onInput={(event) => change({ sizeMbMax: event.currentTarget.valueAsNumber || 0 })}
          />
        )}
      </Field>
      <Switch
        label="Leave out names that begin with a dot"
        checked={wish.skipDotfiles}
        onChange={(skipDotfiles) => change({ skipDotfiles })}
      />
      <Switch
        label="Follow links within the folder"
        checked={wish.followLinks}
        onChange={(followLinks) => change({ followLinks })}
      />
      {error ? <ErrorNote error={error} what="Nothing was changed" /> : null}
      <div class="row">
        <Button type="submit" kind="primary" icon="check" busy={busy}>
          Save
        </Button>
      </div>
    </form>
  )
}

type LinesProps = { control: object; value: string; onChange: (text: string) => void }

function Lines({ control, value, onChange }: LinesProps) {
  return (
    <textarea
      {...control}
      class="input mono"
      rows={Math.min(10, value.split('\n').length + 1)}
      spellcheck={false}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  )
}
