/** Lists of a folder: what was done, what is left alone, conflicts, and the trash. */

import { Link } from 'wouter-preact'
import { Badge } from '../../../../web/src/components/badge.tsx'
import { Button } from '../../../../web/src/components/button.tsx'
import type { Column } from '../../../../web/src/components/data-table.tsx'
import { PagedTable, TWO_LINES_PX } from '../../../../web/src/components/data-table.tsx'
import { EmptyNote } from '../../../../web/src/components/notes.tsx'
import { Bytes, Time } from '../../../../web/src/components/values.tsx'
import { jobLink } from '../../../../web/src/links.ts'
import { usePagedList } from '../../../../web/src/paged-list.ts'
import { useAction } from '../../../../web/src/queries.ts'
import type { ActionView, ConflictView, ReportedView, TrashEntryView } from '../api/schemas.ts'
import { filesApi } from './api.ts'
import { CONFLICT_KINDS, CONFLICT_STATES, RESULTS } from './folder-state.ts'
import { conflictLink } from './links.ts'
import { fileKeys } from './queries.ts'

const HISTORY: readonly Column<ActionView>[] = [
  {
    id: 'what',
    title: 'What',
    cell: ({ id, text, path, note }) => (
      <div class="two-lines">
        <Link href={jobLink(id)} class="truncate">
          {text}
        </Link>
        <span class="muted truncate" title={note ? `${path} (${note})` : path}>
          {path}
        </span>
      </div>
    ),
  },
  {
    id: 'result',
    title: 'Result',
    width: '7.5rem',
    cell: ({ result }) => <Badge tone={RESULTS[result].tone}>{RESULTS[result].text}</Badge>,
  },
  {
    id: 'bytes',
    title: 'Size',
    width: '6rem',
    align: 'end',
    low: true,
    cell: ({ bytes }) => (bytes > 0 ? <Bytes value={bytes} /> : '–'),
  },
  { id: 'at', title: 'When', width: '9rem', low: true, cell: ({ at }) => <Time at={at} /> },
]

export function HistoryList({ folder }: { folder: string }) {
  const list = usePagedList<ActionView>({
    key: ['file-history', folder],
    page: (cursor, signal) => filesApi.fileHistory(folder, { cursor, limit: 100 }, signal),
  })
  return (
    <PagedTable
      list={list}
      caption="What was done, newest first"
      columns={HISTORY}
      keyOf={({ id }) => id}
      rowPx={TWO_LINES_PX}
      empty={
        <EmptyNote title="Nothing was done yet">Or it is so long ago that it is no longer kept.</EmptyNote>
      }
    />
  )
}

const REPORTED: readonly Column<ReportedView>[] = [
  {
    id: 'path',
    title: 'What',
    cell: ({ path, because }) => (
      <div class="two-lines">
        <span class="truncate" title={path}>
          {path}
        </span>
        <span class="muted truncate only-narrow" title={because}>
          {because}
        </span>
      </div>
    ),
  },
  {
    id: 'because',
    title: 'Why',
    low: true,
    cell: ({ because }) => <span title={because}>{because}</span>,
  },
]

export function ReportedList({ folder }: { folder: string }) {
  const list = usePagedList<ReportedView>({
    key: ['file-reported', folder],
    page: (cursor, signal) => filesApi.reported(folder, { cursor, limit: 100 }, signal),
  })
  return (
    <PagedTable
      list={list}
      caption="What is left alone, and why"
      columns={REPORTED}
      keyOf={({ node }) => node}
      rowPx={TWO_LINES_PX}
      empty={<EmptyNote title="Nothing is left alone">Everything in the folder takes part.</EmptyNote>}
    />
  )
}

export function ConflictList({ folder }: { folder: string }) {
  const list = usePagedList<ConflictView>({
    key: ['file-conflicts', folder],
    page: (cursor, signal) => filesApi.conflicts(folder, { cursor, limit: 100 }, signal),
  })
  const columns: Column<ConflictView>[] = [
    {
      id: 'path',
      title: 'File',
      cell: ({ id, path, kind }) => (
        <div class="two-lines">
          <Link href={conflictLink(folder, id)} class="truncate" title={path}>
            {path}
          </Link>
          <span class="muted truncate">{CONFLICT_KINDS[kind]}</span>
        </div>
      ),
    },
    {
      id: 'state',
      title: 'State',
      width: '10rem',
      cell: ({ state }) => <Badge tone={CONFLICT_STATES[state].tone}>{CONFLICT_STATES[state].text}</Badge>,
    },
    { id: 'at', title: 'When', width: '9rem', low: true, cell: ({ at }) => <Time at={at} /> },
  ]
  return (
    <PagedTable
      list={list}
      caption="Conflicts, newest first"
      columns={columns}
      keyOf={({ id }) => id}
      rowHref={({ id }) => conflictLink(folder, id)}
      rowPx={TWO_LINES_PX}
      empty={<EmptyNote title="No conflicts">No file was changed on both sides at once.</EmptyNote>}
    />
  )
}

export function TrashList({ folder }: { folder: string }) {
  const list = usePagedList<TrashEntryView>({
    key: ['file-trash', folder],
    page: (cursor, signal) => filesApi.fileTrash(folder, { cursor, limit: 200 }, signal),
  })
  const restore = useAction({
    run: (id: string) => filesApi.restoreFile(folder, id),
    invalidates: [['list', 'file-trash', folder], fileKeys.fileParts],
  })
  const columns: Column<TrashEntryView>[] = [
    {
      id: 'path',
      title: 'File',
      cell: ({ path, day }) => (
        <div class="two-lines">
          <span class="truncate" title={path}>
            {path}
          </span>
          <span class="muted truncate">{day}</span>
        </div>
      ),
    },
    {
      id: 'bytes',
      title: 'Size',
      width: '6rem',
      align: 'end',
      low: true,
      cell: ({ bytes }) => <Bytes value={bytes} />,
    },
    {
      id: 'restore',
      title: <span class="visually-hidden">Put back</span>,
      width: '8rem',
      align: 'end',
      cell: ({ id, path }) => (
        <Button
          small
          icon="undo"
          busy={restore.busy}
          aria-label={`Put back ${path}`}
          onClick={() => void restore.start(id)}
        >
          Put back
        </Button>
      ),
    },
  ]
  return (
    <PagedTable
      list={list}
      caption="Files that were deleted or replaced here"
      columns={columns}
      keyOf={({ id }) => id}
      rowPx={TWO_LINES_PX}
      empty={
        <EmptyNote title="The trash is empty">
          What is deleted or replaced here because of a change in OneDrive lies here for a while.
        </EmptyNote>
      }
    />
  )
}
