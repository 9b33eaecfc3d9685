/** One folder: what is being transferred, its tree, and what was done, left alone, in conflict, or deleted. */

import { useState } from 'preact/hooks'
import { useLocation, useParams } from 'wouter-preact'
import { api } from '../../../../../web/src/api.ts'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { useConfirm } from '../../../../../web/src/components/confirm.tsx'
import { Segmented } from '../../../../../web/src/components/form.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../../web/src/format.ts'
import { pathPart, streamLink } from '../../../../../web/src/links.ts'
import { keys, useAction } from '../../../../../web/src/queries.ts'
import { setSearchParams, useSearchParam } from '../../../../../web/src/search-params.ts'
import type { FolderView } from '../../api/schemas.ts'
import { filesApi } from '../api.ts'
import { ConflictList, HistoryList, ReportedList, TrashList } from '../folder-lists.tsx'
import { FolderSettingsCard } from '../folder-settings.tsx'
import { FOLDER_STATES, MODES, POLICIES, transfersOf, workText } from '../folder-state.ts'
import { HeldDeletes } from '../held-deletes.tsx'
import { ItemCard } from '../item-card.tsx'
import { filesLink, folderLink } from '../links.ts'
import { fileKeys, useFiles } from '../queries.ts'
import { TransferList } from '../transfer-list.tsx'
import { TreeView } from '../tree-view.tsx'
import '../../../../../web/src/styles/work.css'
import '../styles/files.css'

export function FolderPage() {
  const name = pathPart(useParams<{ name: string }>().name)
  const { data, error, refetch } = useFiles()
  const folder = data?.folders.find((one) => one.name === name)
  return (
    <>
      <PageTitle
        title={name}
        crumbs={[{ text: 'Files', href: filesLink() }]}
        lead={folder ? folder.text : data ? undefined : <Skeleton width="18rem" />}
      >
        {folder ? <FolderActions folder={folder} /> : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {data && !folder ? (
        <EmptyNote
          title="There is no such folder"
          action={<ButtonLink href={filesLink()}>To all folders</ButtonLink>}
        >
          Nothing called {name} is kept in step.
        </EmptyNote>
      ) : null}
      {folder ? <FolderBody key={name} folder={folder} /> : null}
    </>
  )
}

function FolderBody({ folder }: { folder: FolderView }) {
  const [, navigate] = useLocation()
  const remove = useAction({
    run: () => filesApi.removeFolder(folder.name),
    invalidates: [fileKeys.files, keys.accounts],
    done: () => navigate(filesLink()),
  })
  return (
    <div class="stack">
      <HeldDeletes folder={folder} />
      <ConflictNote folder={folder} />
      <PauseNote folder={folder} />
      <Transfers folder={folder} />
      {/* Not while the folder goes: its lists would ask for what is not there any more. */}
      {remove.busy || remove.isDone ? null : <Views folder={folder} />}
      <p class="muted small path">
        {formatPlural(folder.files, 'file')}, {formatPlural(folder.folders, 'folder')},{' '}
        {formatBytes(folder.bytes)} · {MODES[folder.mode]} · {POLICIES[folder.policy]} · {folder.account}
        {folder.sharedBy === null ? '' : `, shared by ${folder.sharedBy}`} · {folder.root}
      </p>
      {folder.isHere ? <RemoveFolder folder={folder} remove={remove} /> : null}
    </div>
  )
}

function FolderActions({ folder }: { folder: FolderView }) {
  const target = { scope: 'stream', target: folder.stream } as const
  const invalidates = [fileKeys.files]
  const sync = useAction({ run: () => filesApi.syncFiles(folder.name), invalidates })
  const pause = useAction({ run: api.pause, invalidates })
  const resume = useAction({ run: api.resume, invalidates })
  const { text, tone } = FOLDER_STATES[folder.state]
  return (
    <>
      <Badge tone={tone} dot>
        {text}
      </Badge>
      <ButtonLink href={streamLink(folder.stream)} icon="work">
        Stream
      </ButtonLink>
      {folder.paused === null ? (
        <>
          <Button icon="retry" busy={sync.busy} onClick={() => void sync.start()}>
            Sync now
          </Button>
          <Button
            icon="pause"
            busy={pause.busy}
            onClick={() => void pause.start({ ...target, reason: 'paused on the page of the folder' })}
          >
            Pause
          </Button>
        </>
      ) : (
        <Button kind="primary" icon="play" busy={resume.busy} onClick={() => void resume.start(target)}>
          Resume
        </Button>
      )}
    </>
  )
}

type RemoveProps = { folder: FolderView; remove: ReturnType<typeof useAction<void>> }

function RemoveFolder({ folder: { name, root, account }, remove }: RemoveProps) {
  const confirm = useConfirm()
  const ask = async (): Promise<void> => {
    const isSure = await confirm({
      title: `Stop keeping ${name} in step?`,
      text: `Only the sync ends. All files stay where they are: those in ${root}, those in the OneDrive of ${account}, and those in the trash of the folder. From then on, changes on one side do not come to the other. Tidemark forgets the settings, the history and the conflicts of the folder: you can add it again at any time, but what was left out by a setting then takes part.`,
      action: 'Stop keeping it in step',
      danger: true,
    })
    if (isSure) await remove.start()
  }
  return (
    <div class="row">
      <Button small kind="quiet" busy={remove.busy} onClick={() => void ask()}>
        Stop keeping it in step …
      </Button>
    </div>
  )
}

function PauseNote({ folder }: { folder: FolderView }) {
  if (folder.paused === null) return null
  const isShareGone = folder.pauseCode === 'share-gone'
  return (
    <div class={`note tone-${isShareGone ? 'danger' : 'warn'}`}>
      <div class="note-body">
        <p class="note-title">{isShareGone ? 'Work on this folder has stopped' : 'This folder is paused'}</p>
        <p>
          {folder.paused}.{' '}
          {isShareGone
            ? 'All files here stay as they are. It goes on by itself when the folder is shared again, and the account may see it.'
            : 'Changes on both sides are noted, and are looked at when it is resumed.'}
        </p>
      </div>
    </div>
  )
}

function ConflictNote({ folder }: { folder: FolderView }) {
  if (folder.conflicts === 0) return null
  return (
    <div class="note tone-danger">
      <div class="note-body">
        <p class="note-title">{formatPlural(folder.conflicts, 'conflict')} to decide</p>
        <p>
          These files were changed on both sides. Both versions are safe until you decide, and afterwards,
          too.
        </p>
        <ButtonLink small href={folderLink(folder.name, 'conflicts')}>
          See the conflicts
        </ButtonLink>
      </div>
    </div>
  )
}

function Transfers({ folder }: { folder: FolderView }) {
  const { data } = useFiles()
  const own = data ? transfersOf(data.transfers, folder.name) : undefined
  const work = own ? workText(folder, own) : ''
  return (
    <Card title="On the way" actions={<span class="muted small num">{work}</span>}>
      <TransferList items={own?.items ?? []} />
    </Card>
  )
}

const VIEWS = [
  { value: 'tree', text: 'Tree' },
  { value: 'history', text: 'History' },
  { value: 'left', text: 'Left alone' },
  { value: 'conflicts', text: 'Conflicts' },
  { value: 'trash', text: 'Trash' },
  { value: 'settings', text: 'Settings' },
] as const
type View = (typeof VIEWS)[number]['value']

function Views({ folder }: { folder: FolderView }) {
  const wanted = useSearchParam('view')
  const view: View = VIEWS.find(({ value }) => value === wanted)?.value ?? 'tree'
  const { reported } = folder.open
  const options = VIEWS.map(({ value, text }) => ({
    value,
    text: value === 'left' && reported > 0 ? `${text} (${formatCount(reported)})` : text,
  }))
  return (
    <section class="stack" aria-label="What is in it">
      <div class="folder-views">
        <Segmented
          label="What is shown"
          options={options}
          value={view}
          onChange={(value) => setSearchParams({ view: value === 'tree' ? '' : value })}
        />
      </div>
      {view === 'tree' ? <Tree folder={folder.name} /> : null}
      {view === 'history' ? <HistoryList folder={folder.name} /> : null}
      {view === 'left' ? <ReportedList folder={folder.name} /> : null}
      {view === 'conflicts' ? <ConflictList folder={folder.name} /> : null}
      {view === 'trash' ? <TrashList folder={folder.name} /> : null}
      {view === 'settings' ? <FolderSettingsCard folder={folder.name} /> : null}
    </section>
  )
}

function Tree({ folder }: { folder: string }) {
  const [selected, setSelected] = useState('')
  return (
    <div class={`tree-place${selected === '' ? '' : ' has-item'}`}>
      <TreeView folder={folder} selected={selected} onSelect={setSelected} />
      {selected === '' ? null : <ItemCard key={selected} folder={folder} node={selected} />}
    </div>
  )
}
