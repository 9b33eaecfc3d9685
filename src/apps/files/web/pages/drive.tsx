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
import type { DriveView } from '../../api/schemas.ts'
import { filesApi } from '../api.ts'
import { ConflictList, HistoryList, ReportedList, TrashList } from '../drive-lists.tsx'
import { DRIVE_STATES, MODES, POLICIES, transfersOf, workText } from '../drive-state.ts'
import { HeldDeletes } from '../held-deletes.tsx'
import { ItemCard } from '../item-card.tsx'
import { driveLink, filesLink } from '../links.ts'
import { fileKeys, useFiles } from '../queries.ts'
import { TransferList } from '../transfer-list.tsx'
import { TreeView } from '../tree-view.tsx'
import '../../../../../web/src/styles/work.css'
import '../styles/files.css'

export function DrivePage() {
  const name = pathPart(useParams<{ name: string }>().name)
  const { data, error, refetch } = useFiles()
  const drive = data?.drives.find((one) => one.name === name)
  return (
    <>
      <PageTitle
        title={name}
        crumbs={[{ text: 'Files', href: filesLink() }]}
        lead={drive ? drive.text : data ? undefined : <Skeleton width="18rem" />}
      >
        {drive ? <DriveActions drive={drive} /> : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {data && !drive ? (
        <EmptyNote
          title="There is no such folder"
          action={<ButtonLink href={filesLink()}>To all folders</ButtonLink>}
        >
          Nothing called {name} is kept in step.
        </EmptyNote>
      ) : null}
      {drive ? <DriveBody key={name} drive={drive} /> : null}
    </>
  )
}

function DriveBody({ drive }: { drive: DriveView }) {
  const [, navigate] = useLocation()
  const remove = useAction({
    run: () => filesApi.removeFolder(drive.name),
    invalidates: [fileKeys.files, keys.accounts],
    done: () => navigate(filesLink()),
  })
  return (
    <div class="stack">
      <HeldDeletes drive={drive} />
      <ConflictNote drive={drive} />
      <PauseNote drive={drive} />
      <Transfers drive={drive} />
      {/* Not while the folder goes: its lists would ask for what is not there any more. */}
      {remove.busy ? null : <Views drive={drive} />}
      <p class="muted small path">
        {formatPlural(drive.files, 'file')}, {formatPlural(drive.folders, 'folder')},{' '}
        {formatBytes(drive.bytes)} · {MODES[drive.mode]} · {POLICIES[drive.policy]} · {drive.account} ·{' '}
        {drive.root}
      </p>
      {drive.isHere ? <RemoveFolder drive={drive} remove={remove} /> : null}
    </div>
  )
}

function DriveActions({ drive }: { drive: DriveView }) {
  const target = { scope: 'stream', target: drive.stream } as const
  const invalidates = [fileKeys.files]
  const sync = useAction({ run: () => filesApi.syncFiles(drive.name), invalidates })
  const pause = useAction({ run: api.pause, invalidates })
  const resume = useAction({ run: api.resume, invalidates })
  const { text, tone } = DRIVE_STATES[drive.state]
  return (
    <>
      <Badge tone={tone} dot>
        {text}
      </Badge>
      <ButtonLink href={streamLink(drive.stream)} icon="work">
        Stream
      </ButtonLink>
      {drive.paused === null ? (
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

type RemoveProps = { drive: DriveView; remove: ReturnType<typeof useAction<void>> }

function RemoveFolder({ drive: { name, root, account }, remove }: RemoveProps) {
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

function PauseNote({ drive }: { drive: DriveView }) {
  if (drive.paused === null) return null
  return (
    <div class="note tone-warn">
      <div class="note-body">
        <p class="note-title">This folder is paused</p>
        <p>{drive.paused}. Changes on both sides are noted, and are looked at when it is resumed.</p>
      </div>
    </div>
  )
}

function ConflictNote({ drive }: { drive: DriveView }) {
  if (drive.conflicts === 0) return null
  return (
    <div class="note tone-danger">
      <div class="note-body">
        <p class="note-title">{formatPlural(drive.conflicts, 'conflict')} to decide</p>
        <p>
          These files were changed on both sides. Both versions are safe until you decide, and afterwards,
          too.
        </p>
        <ButtonLink small href={driveLink(drive.name, 'conflicts')}>
          See the conflicts
        </ButtonLink>
      </div>
    </div>
  )
}

function Transfers({ drive }: { drive: DriveView }) {
  const { data } = useFiles()
  const own = data ? transfersOf(data.transfers, drive.name) : undefined
  const work = own ? workText(drive, own) : ''
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
] as const
type View = (typeof VIEWS)[number]['value']

function Views({ drive }: { drive: DriveView }) {
  const wanted = useSearchParam('view')
  const view: View = VIEWS.find(({ value }) => value === wanted)?.value ?? 'tree'
  const { reported } = drive.open
  const options = VIEWS.map(({ value, text }) => ({
    value,
    text: value === 'left' && reported > 0 ? `${text} (${formatCount(reported)})` : text,
  }))
  return (
    <section class="stack" aria-label="What is in it">
      <div class="drive-views">
        <Segmented
          label="What is shown"
          options={options}
          value={view}
          onChange={(value) => setSearchParams({ view: value === 'tree' ? '' : value })}
        />
      </div>
      {view === 'tree' ? <Tree drive={drive.name} /> : null}
      {view === 'history' ? <HistoryList drive={drive.name} /> : null}
      {view === 'left' ? <ReportedList drive={drive.name} /> : null}
      {view === 'conflicts' ? <ConflictList drive={drive.name} /> : null}
      {view === 'trash' ? <TrashList drive={drive.name} /> : null}
    </section>
  )
}

function Tree({ drive }: { drive: string }) {
  const [selected, setSelected] = useState('')
  return (
    <div class={`tree-place${selected === '' ? '' : ' has-item'}`}>
      <TreeView drive={drive} selected={selected} onSelect={setSelected} />
      {selected === '' ? null : <ItemCard key={selected} drive={drive} node={selected} />}
    </div>
  )
}
