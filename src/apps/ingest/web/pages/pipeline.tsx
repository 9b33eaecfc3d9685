/** One pipeline: its books, then its objects by state, what is in quarantine, or messages that nobody understood. */
import { Link, useParams } from 'wouter-preact'
import { StateBadge } from '../../../../../web/src/components/badge.tsx'
import { type Column, PagedTable, TWO_LINES_PX } from '../../../../../web/src/components/data-table.tsx'
import { Segmented } from '../../../../../web/src/components/form.tsx'
import { EmptyNote, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { Bytes, Count, Time } from '../../../../../web/src/components/values.tsx'
import { formatCount } from '../../../../../web/src/format.ts'
import { pathPart } from '../../../../../web/src/links.ts'
import { setSearchParams, useSearchParam } from '../../../../../web/src/search-params.ts'
import type { PipelineStatusView, ShardView } from '../../api/schemas.ts'
import { OBJECT_STATES, PipelineCard } from '../pipeline-card.tsx'
import { ingestLink, type ObjectState, objectLink, objectName, useObjects, usePipeline } from '../queries.ts'
import { QuarantineList, UnparsedList } from '../unread-lists.tsx'
import '../../../../../web/src/styles/work.css'
import '../styles/ingest.css'

export function PipelinePage() {
  const name = pathPart(useParams<{ name: string }>().name)
  const status = usePipeline(name)
  return (
    <>
      <PageTitle title={name} crumbs={[{ text: 'Ingest', href: ingestLink() }]} />
      <Loaded query={status} waiting={<Skeleton height="16rem" />}>
        {(one) => (
          <div class="stack">
            <PipelineCard status={one} title="Books" />
            <Views key={name} status={one} />
          </div>
        )}
      </Loaded>
    </>
  )
}

const VIEWS = ['objects', 'quarantine', 'messages'] as const
type View = (typeof VIEWS)[number]

function Views({ status }: { status: PipelineStatusView }) {
  const wanted = useSearchParam('show')
  const view: View = VIEWS.find((one) => one === wanted) ?? 'objects'
  const { quarantined, messages, pipeline } = status
  return (
    <section class="stack" aria-label="What is in it">
      <div class="row">
        <Segmented
          label="What is shown"
          options={[
            { value: 'objects', text: 'Objects' },
            { value: 'quarantine', text: `Quarantine (${formatCount(quarantined)})` },
            { value: 'messages', text: `Not understood (${formatCount(messages.unparsed)})` },
          ]}
          value={view}
          onChange={(value) => setSearchParams({ show: value === 'objects' ? '' : value })}
        />
      </div>
      {view === 'objects' ? <Objects pipeline={pipeline} /> : null}
      {view === 'quarantine' ? <QuarantineList pipeline={pipeline} /> : null}
      {view === 'messages' ? <UnparsedList pipeline={pipeline} /> : null}
    </section>
  )
}

const STATES = ['open', 'stored', 'skipped', 'bad', 'gone'] as const

const COLUMNS: readonly Column<ShardView>[] = [
  {
    id: 'object',
    title: 'Object',
    cell: (row) => (
      <div class="two-lines">
        <Link href={objectLink(row)} class="truncate" title={row.uri}>
          {objectName(row.uri)}
        </Link>
        <span class="muted truncate" title={row.reason ?? row.uri}>
          {row.reason ?? row.uri}
        </span>
      </div>
    ),
  },
  {
    id: 'state',
    title: 'State',
    width: '7rem',
    cell: ({ state }) => (
      <StateBadge state={{ text: OBJECT_STATES[state].one, tone: OBJECT_STATES[state].tone }} />
    ),
  },
  {
    id: 'records',
    title: 'Records',
    width: '6rem',
    align: 'end',
    low: true,
    cell: ({ published }) => <Count value={published} />,
  },
  {
    id: 'quarantined',
    title: 'Quarantined',
    width: '7rem',
    align: 'end',
    low: true,
    cell: ({ quarantined }) => <Count value={quarantined} />,
  },
  {
    id: 'size',
    title: 'Size',
    width: '6rem',
    align: 'end',
    low: true,
    cell: ({ sizeBytes }) => (sizeBytes === null ? '–' : <Bytes value={sizeBytes} />),
  },
  {
    id: 'at',
    title: 'Changed',
    width: '9rem',
    low: true,
    cell: ({ updatedAtMs }) => <Time at={updatedAtMs} />,
  },
]

function Objects({ pipeline }: { pipeline: string }) {
  const wanted = useSearchParam('state')
  const state: ObjectState | undefined = STATES.find((one) => one === wanted)
  const list = useObjects(pipeline, state)
  return (
    <>
      <div class="row">
        <Segmented
          label="Which objects"
          options={[
            { value: '', text: 'All' },
            ...STATES.map((value) => ({ value, text: OBJECT_STATES[value].text })),
          ]}
          value={state ?? ''}
          onChange={(value) => setSearchParams({ state: value })}
        />
      </div>
      <PagedTable
        list={list}
        caption="Object versions, and what became of each"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        rowHref={objectLink}
        rowPx={TWO_LINES_PX}
        empty={
          <EmptyNote title={state === undefined ? 'No object yet' : 'No object is in this state'}>
            {state === undefined ? 'What is announced or listed stands here.' : undefined}
          </EmptyNote>
        }
      />
    </>
  )
}
