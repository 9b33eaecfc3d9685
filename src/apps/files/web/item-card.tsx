/** One item: how it is on each side, what both last agreed on, and what becomes of it. */

import { useQuery } from '@tanstack/preact-query'
import { ButtonLink } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { ErrorNote, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Bytes, Time } from '../../../../web/src/components/values.tsx'
import type { ItemDetail } from '../api/schemas.ts'
import { filesApi } from './api.ts'
import { ITEM_STATES } from './folder-state.ts'
import { conflictLink } from './links.ts'
import { fileKeys } from './queries.ts'

export function ItemCard({ folder, node }: { folder: string; node: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: [...fileKeys.fileParts, 'item', folder, node],
    queryFn: ({ signal }) => filesApi.fileItem(folder, node, signal),
  })
  return (
    <Card title={data?.path.split('/').at(-1) ?? 'Item'} level={3} class="item-card">
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {!data && !error ? <Skeleton lines={5} /> : null}
      {data ? <Facts folder={folder} item={data} /> : null}
    </Card>
  )
}

function Facts({ folder, item }: { folder: string; item: ItemDetail }) {
  const state = ITEM_STATES[item.state]
  const isFile = item.type === 'file'
  return (
    <div class="stack">
      <p class="small path">{item.path}</p>
      <p>
        <b>{state.text}</b>
        {item.text === '' ? '' : `: ${item.text}`}
        {item.text === '' ? '.' : ''}
      </p>
      <dl class="sides">
        <Side title="Here" side={item.here} isFile={isFile} />
        <Side title="In OneDrive" side={item.there} isFile={isFile} />
        <div>
          <dt>Last agreed on</dt>
          <dd>
            {item.agreed === null ? 'never' : null}
            {item.agreed && isFile ? <Bytes value={item.agreed.size} /> : null}
            {item.agreed && !isFile ? item.agreed.name : null}
          </dd>
        </div>
      </dl>
      {item.conflict === null ? null : (
        <ButtonLink kind="primary" href={conflictLink(folder, item.conflict)}>
          Decide
        </ButtonLink>
      )}
    </div>
  )
}

function Side({ title, side, isFile }: { title: string; side: ItemDetail['here']; isFile: boolean }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        {side === null ? (
          'not there'
        ) : (
          <>
            {isFile ? (
              <>
                <Bytes value={side.size} />,{' '}
              </>
            ) : null}
            <Time at={side.modifiedMs} show="full" />
          </>
        )}
      </dd>
    </div>
  )
}
