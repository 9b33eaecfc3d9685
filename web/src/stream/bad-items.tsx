import type { BadView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import type { Column } from '../components/data-table.tsx'
import { PagedTable, TWO_LINES_PX } from '../components/data-table.tsx'
import { Time } from '../components/values.tsx'
import { formatCount } from '../format.ts'
import { usePagedList } from '../paged-list.ts'
import { keys, useAction } from '../queries.ts'

export function BadItems({ stream, count }: { stream: string; count: number }) {
  const list = usePagedList<BadView>({
    key: ['bad', stream],
    page: (cursor, signal) => api.bad({ stream, cursor, limit: 100 }, signal),
  })
  const retry = useAction({ run: api.retryBad, invalidates: [keys.bad, ['list', 'bad']] })
  const columns: Column<BadView>[] = [
    {
      id: 'item',
      title: 'Item',
      cell: ({ item, kind, reason }) => (
        <div class="two-lines">
          <span class="mono truncate" title={item}>
            {item}
          </span>
          <span class="only-wide muted truncate">{kind}</span>
          <span class="only-narrow muted truncate">{reason}</span>
        </div>
      ),
    },
    {
      id: 'reason',
      title: 'Why',
      low: true,
      cell: ({ reason, errorKind }) => (
        <div class="two-lines">
          <span class="truncate" title={reason}>
            {reason}
          </span>
          <span class="muted truncate">{errorKind}</span>
        </div>
      ),
    },
    {
      id: 'tries',
      title: 'Tries',
      align: 'end',
      width: '4rem',
      low: true,
      cell: ({ tries }) => formatCount(tries),
    },
    {
      id: 'last',
      title: 'Last tried',
      width: '9rem',
      low: true,
      cell: ({ lastTried }) => <Time at={lastTried} />,
    },
    {
      id: 'retry',
      title: <span class="visually-hidden">Try again</span>,
      align: 'end',
      width: '7rem',
      cell: ({ id, item }) => (
        <Button
          small
          icon="retry"
          busy={retry.busy}
          aria-label={`Retry ${item}`}
          onClick={() => void retry.start({ ids: [id] })}
        >
          Retry
        </Button>
      ),
    },
  ]
  const hasBad = list.rows.length > 0
  return (
    <div id="bad" tabIndex={-1}>
      <Card
        title={count > 0 ? `Bad items (${formatCount(count)})` : 'Bad items'}
        tone={count > 0 ? 'danger' : 'neutral'}
        actions={
          hasBad ? (
            <Button small icon="retry" busy={retry.busy} onClick={() => void retry.start({ stream })}>
              Retry all
            </Button>
          ) : null
        }
      >
        <PagedTable
          list={list}
          caption="Items that would not work"
          columns={columns}
          keyOf={({ id }) => id}
          rowPx={TWO_LINES_PX}
          heightPx={400}
          empty={
            <p class="muted">None. An item that cannot be copied after several tries is set aside here.</p>
          }
        />
      </Card>
    </div>
  )
}
