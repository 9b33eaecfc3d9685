/** The slices of a stream as a list, from the stretch on that the picture shows. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { SegmentView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import type { Column } from '../components/data-table.tsx'
import { PagedTable } from '../components/data-table.tsx'
import { Segmented } from '../components/form.tsx'
import { EmptyNote } from '../components/notes.tsx'
import { ProgressBar } from '../components/progress-bar.tsx'
import { formatCount } from '../format.ts'
import { jobsLink } from '../links.ts'
import { usePagedList } from '../paged-list.ts'
import { placeText } from './cell-text.ts'
import type { Stretch } from './zoom.ts'

const STATES = [
  { value: 'all', text: 'All' },
  { value: 'open', text: 'Open' },
  { value: 'sealed', text: 'Listed' },
  { value: 'settled', text: 'Done' },
] as const
type StateChoice = (typeof STATES)[number]['value']

const BADGES = {
  open: { text: 'Open', tone: 'neutral' },
  sealed: { text: 'Listed', tone: 'accent' },
  settled: { text: 'Done', tone: 'accent' },
} as const

export function SegmentList({ stream, stretch }: { stream: string; stretch: Stretch | undefined }) {
  const [choice, setChoice] = useState<StateChoice>('all')
  const state = choice === 'all' ? undefined : choice
  const list = usePagedList<SegmentView>({
    key: ['segments', stream, state, stretch],
    page: async (cursor, signal) => {
      // Where a page goes on is the place of its first slice: the list can begin anywhere.
      const start = cursor ?? (stretch ? String(stretch.from) : undefined)
      const page = await api.segments(stream, { state, limit: 100, cursor: start }, signal)
      if (!stretch) return page
      const items = page.items.filter(({ from }) => from < stretch.to)
      return { items, next: items.length < page.items.length ? null : page.next }
    },
  })
  return (
    <Card
      title={stretch ? 'Slices in this stretch' : 'Slices'}
      actions={<Segmented label="Slices shown" options={STATES} value={choice} onChange={setChoice} />}
    >
      <PagedTable
        list={list}
        caption="Slices of the stream, in order"
        columns={columnsOf(stream)}
        keyOf={({ id }) => id}
        heightPx={420}
        empty={
          <EmptyNote title="No slice is like that">
            Choose another state, or show all of the stream.
          </EmptyNote>
        }
      />
    </Card>
  )
}

function columnsOf(stream: string): Column<SegmentView>[] {
  return [
    {
      id: 'place',
      title: 'Slice',
      cell: ({ id, from, to, label }) => (
        <Link class="wrap-narrow" href={jobsLink({ segment: id })} title="The jobs of this slice">
          {label ?? `${placeText(stream, from)} to ${placeText(stream, to)}`}
        </Link>
      ),
    },
    {
      id: 'state',
      title: 'State',
      width: '6rem',
      cell: ({ state }) => <Badge tone={BADGES[state].tone}>{BADGES[state].text}</Badge>,
    },
    {
      id: 'progress',
      title: 'Accounted for',
      width: '10rem',
      low: true,
      cell: (segment) => <SegmentProgress stream={stream} segment={segment} />,
    },
    {
      id: 'jobs',
      title: 'Open jobs',
      align: 'end',
      low: true,
      cell: ({ openJobs }) => formatCount(openJobs),
    },
    { id: 'listed', title: 'Listed', align: 'end', low: true, cell: ({ listed }) => formatCount(listed) },
    { id: 'stored', title: 'Stored', align: 'end', low: true, cell: ({ stored }) => formatCount(stored) },
    { id: 'gone', title: 'Gone', align: 'end', low: true, cell: ({ gone }) => formatCount(gone) },
    { id: 'skipped', title: 'Skipped', align: 'end', low: true, cell: ({ skipped }) => formatCount(skipped) },
    {
      id: 'bad',
      title: 'Bad',
      align: 'end',
      cell: ({ bad }) => (bad > 0 ? <b class="is-danger">{formatCount(bad)}</b> : formatCount(bad)),
    },
  ]
}

function SegmentProgress({ stream, segment }: { stream: string; segment: SegmentView }) {
  const { listed, stored, gone, skipped, bad, from, state } = segment
  if (listed === 0)
    return <span class="muted">{state === 'settled' ? 'nothing in it' : 'not listed yet'}</span>
  return (
    <ProgressBar
      done={stored + gone + skipped + bad}
      total={listed}
      tone={bad > 0 ? 'danger' : 'accent'}
      label={`Accounted for, from ${placeText(stream, from)}`}
    />
  )
}
