/** The folders that are kept in step with an account, and choosing another one. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { Button, ButtonLink } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Field, named, SelectField } from '../../../../web/src/components/form.tsx'
import { ErrorNote } from '../../../../web/src/components/notes.tsx'
import { showToast } from '../../../../web/src/components/toast-store.ts'
import { keys } from '../../../../web/src/queries.ts'
import type { AccountPart } from '../../../../web/src/settings/account-part.ts'
import type { FileAccountView, FolderView } from '../api/schemas.ts'
import { filesApi } from './api.ts'
import { MODE_CHOICES, POLICY_CHOICES } from './folder-state.ts'
import { folderLink } from './links.ts'
import { fileKeys } from './queries.ts'

export const filesPart: AccountPart<FileAccountView> = {
  Body: Folders,
  Begin: AddFolder,
  forgetting: ({ folders }) =>
    folders.length === 0
      ? 'All files stay, here and in OneDrive.'
      : `${folders.join(', ')}: all files stay, here and in OneDrive, but until the account is connected again neither side hears of the other.`,
}

function Folders({ told: { folders } }: { told: FileAccountView }) {
  if (folders.length === 0) return <p class="muted">No folder is kept in step with it yet.</p>
  return (
    <div class="row">
      {folders.map((name) => (
        <ButtonLink key={name} small icon="folder" href={folderLink(name)}>
          {name}
        </ButtonLink>
      ))}
    </div>
  )
}

type DriveFieldProps = { account: string; drive: string; onChange: (drive: string) => void }

/** Where an account has only its own drive, there is nothing to choose. */
function DriveField({ account, drive, onChange }: DriveFieldProps) {
  const { data } = useQuery({
    queryKey: ['file-drives', account],
    queryFn: ({ signal }) => filesApi.drives(account, signal),
    staleTime: 60_000,
    retry: false,
  })
  const [own, ...others] = data?.drives ?? []
  // Without the permission for it there is nothing but the own drive.
  if (!own || (others.length === 0 && !data?.isWide)) return null
  const isListed = drive === '' || others.some(({ id }) => id === drive)
  const options = [
    { value: '', text: own.name },
    ...others.map(({ id, name, type }) => ({
      value: id,
      text: type === 'sharedFolder' ? `${name}, shared with you` : name,
    })),
    { value: BY_LINK, text: 'A shared folder, by its link' },
  ]
  return (
    <>
      <SelectField
        label="Keep it in step with"
        value={isListed ? drive : BY_LINK}
        options={options}
        onChange={onChange}
      />
      {isListed ? null : (
        <Field label="Link of the shared folder" hint="Where you may only read, changes only come here.">
          {(control) => (
            <input
              {...control}
              required
              type="url"
              placeholder="https://1drv.ms/f/…"
              autocomplete="off"
              value={drive === BY_LINK ? '' : drive}
              onInput={(event) => onChange(event.currentTarget.value || BY_LINK)}
            />
          )}
        </Field>
      )}
    </>
  )
}

/** Chosen, and not given yet: no drive has such an id. */
const BY_LINK = 'link'

function AddFolder({ accounts }: { accounts: readonly string[] }) {
  const client = useQueryClient()
  const [, navigate] = useLocation()
  const [account, setAccount] = useState(accounts[0]!)
  const [drive, setDrive] = useState('')
  const [path, setPath] = useState('')
  const [mode, setMode] = useState<FolderView['mode']>('two-way')
  const [policy, setPolicy] = useState<FolderView['policy']>('keep-both')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const add = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const added = await filesApi.addFolder({ account, path, mode, policy, ...(drive !== '' && { drive }) })
      showToast(added.text, { tone: 'accent' })
      await client.invalidateQueries({ queryKey: fileKeys.files })
      void client.invalidateQueries({ queryKey: keys.accounts })
      navigate(folderLink(added.name))
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <div id="add-folder" tabIndex={-1}>
      <Card title="Add a folder" level={3}>
        <form class="stack" onSubmit={(event) => void add(event)}>
          {accounts.length > 1 ? (
            <SelectField
              label="Account"
              value={account}
              options={named(accounts)}
              onChange={(now) => {
                setAccount(now)
                setDrive('')
              }}
            />
          ) : null}
          <DriveField account={account} drive={drive} onChange={setDrive} />
          <Field
            label="Folder"
            hint="On the machine where Tidemark runs. What is in it is merged with what is in OneDrive; nothing is deleted."
          >
            {(control) => (
              <input
                {...control}
                required
                placeholder="~/OneDrive"
                autocomplete="off"
                spellcheck={false}
                value={path}
                onInput={(event) => setPath(event.currentTarget.value)}
              />
            )}
          </Field>
          <SelectField label="Changes go" value={mode} options={MODE_CHOICES} onChange={setMode} />
          <SelectField
            label="When a file was changed on both sides"
            value={policy}
            options={POLICY_CHOICES}
            onChange={setPolicy}
          />
          {error ? <ErrorNote error={error} /> : null}
          <div class="row">
            <Button type="submit" kind="primary" icon="folder" busy={busy} disabled={path.trim() === ''}>
              Keep it in step
            </Button>
          </div>
        </form>
      </Card>
    </div>
  )
}
