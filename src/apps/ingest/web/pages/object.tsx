/** One version of one object: how far it is read, by whom, how often it was tried, and what of it is in quarantine. */
import type { ComponentChildren } from 'preact'
import { Link, useParams } from 'wouter-preact'
import { StateBadge } from '../../../../../web/src/components/badge.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { AlertLine, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { Bytes, Time } from '../../../../../web/src/components/values.tsx'
import { formatCount } from '../../../../../web/src/format.ts'
import { jobLink, pathPart } from '../../../../../web/src/links.ts'
import { isMember } from '../../../../../web/src/session.ts'
import type { ShardView } from '../../api/schemas.ts'
import { OBJECT_STATES } from '../pipeline-card.tsx'
import { ingestLink, objectName, pipelineLink, useObject } from '../queries.ts'
import { QuarantineList, ReplayAll, shownText } from '../unread-lists.tsx'
import '../../../../../web/src/styles/job.css'
import '../styles/ingest.css'

export function ObjectPage() {
  const params = useParams<{ name: string; shard: string }>()
  const name = pathPart(params.name)
  const shard = pathPart(params.shard)
  const object = useObject(name, shard)
  const uri = object.data?.uri
  return (
    <>
      <PageTitle
        title={uri === undefined ? 'Object' : objectName(uri)}
        lead={uri === undefined ? undefined : <span class="ingest-text">{uri}</span>}
        crumbs={[
          { text: 'Ingest', href: ingestLink() },
          { text: name, href: pipelineLink(name) },
        ]}
      >
        {object.data ? <ReplayAll pipeline={name} shard={shard} count={object.data.quarantined} /> : null}
      </PageTitle>
      <Loaded query={object} waiting={<Skeleton height="16rem" />}>
        {(one) => (
          <div class="stack">
            <Facts object={one} />
            {one.quarantined === 0 ? null : (
              <Card title="Quarantine">
                <QuarantineList pipeline={name} shard={shard} />
              </Card>
            )}
          </div>
        )}
      </Loaded>
    </>
  )
}

function Facts({ object }: { object: ShardView }) {
  const state = OBJECT_STATES[object.state]
  const rows: [string, ComponentChildren][] = [
    ['Version', object.version === '' ? null : <span class="mono">{object.version}</span>],
    ['Read', positionText(object)],
    [
      'Records',
      `${formatCount(object.published)} in the index, ${formatCount(object.quarantined)} in quarantine`,
    ],
    ['Format', formatText(object)],
    ['Size', object.sizeBytes === null ? null : <Bytes value={object.sizeBytes} />],
    ['Attempts', attemptsText(object)],
    [object.state === 'open' ? 'Owner' : 'Last owner', <Owner key="owner" token={object.token} />],
    [
      'Announced',
      object.announcedAtMs === null ? (
        'never: found by listing'
      ) : (
        <Time at={object.announcedAtMs} show="full" />
      ),
    ],
    ['Listed', object.listedAtMs === null ? 'not yet' : <Time at={object.listedAtMs} show="full" />],
    ['Last moved', <Time key="moved" at={object.updatedAtMs} show="full" />],
    ['Settled', object.settledAtMs === null ? null : <Time at={object.settledAtMs} show="full" />],
    ['Afterwards', object.disposed],
    ['Its bytes', object.disposedTo === null ? null : shownText(object.disposedTo)],
  ]
  return (
    <Card title="Object" actions={<StateBadge state={{ text: state.one, tone: state.tone }} dot />}>
      <div class="stack">
        {object.reason === null ? null : (
          <AlertLine tone={object.state === 'bad' ? 'danger' : 'neutral'}>
            <span class="ingest-text">
              {object.state === 'gone' ? 'It was bad, and is listed no more. ' : ''}
              {object.code === null ? '' : `${object.code}: `}
              {shownText(object.reason)}
            </span>
          </AlertLine>
        )}
        <dl class="facts">
          {rows
            .filter(([, value]) => value !== null)
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd class="num">{value}</dd>
              </div>
            ))}
        </dl>
      </div>
    </Card>
  )
}

/** A token is the job and its attempt; jobs are for admins. */
function Owner({ token }: { token: string | null }) {
  if (token === null) return <>nobody yet</>
  const job = /^(\d+)\b/.exec(token)?.[1]
  if (job === undefined || isMember()) return <span class="mono">{token}</span>
  return (
    <Link href={jobLink(Number(job))} class="mono">
      {token}
    </Link>
  )
}

function positionText({ position, isAtEnd, isStaged, state }: ShardView): string {
  const parts = [`${formatCount(position.records)} records`]
  if (position.line !== null) parts.push(`line ${formatCount(position.line)}`)
  if (position.byte !== null) parts.push(`byte ${formatCount(position.byte)}`)
  parts.push(isAtEnd ? 'to the end' : 'not to the end')
  if (isStaged && state === 'open') parts.push('hidden until its end')
  return parts.join(', ')
}

function formatText({ shape }: ShardView): string | null {
  if (shape === null) return null
  const packed = shape.compression === 'none' ? '' : `, ${shape.compression}`
  return `${shape.format}${packed}${shape.header ? `; columns ${shownText(shape.header.join(', '))}` : ''}`
}

function attemptsText({ attempts, takeovers }: ShardView): string {
  return takeovers === 0
    ? formatCount(attempts)
    : `${formatCount(attempts)}, of which ${formatCount(takeovers)} went on where an earlier one was`
}
