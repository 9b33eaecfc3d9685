/** One pipeline at a glance: its books in a sentence, its objects by state, how late it is, and how fast. */
import { Badge } from '../../../../web/src/components/badge.tsx'
import { Button } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { AlertLine } from '../../../../web/src/components/notes.tsx'
import { Stat } from '../../../../web/src/components/stat.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatPlural,
  formatRate,
} from '../../../../web/src/format.ts'
import { useAction, useNow } from '../../../../web/src/queries.ts'
import type { PipelineStatusView } from '../api/schemas.ts'
import { ingestKeys, pipelineLink, reconcile } from './queries.ts'

export function PipelineCard({ status, title }: { status: PipelineStatusView; title?: string }) {
  const { pipeline } = status
  return (
    <Card
      title={title ?? pipeline}
      {...(title === undefined ? { href: pipelineLink(pipeline) } : {})}
      actions={
        <>
          {status.paused ? <Badge tone="warn">Paused</Badge> : null}
          <StateOf status={status} />
          <ListNow status={status} />
        </>
      }
    >
      <div class="stack">
        <Books status={status} />
        {status.problem === null ? null : (
          <AlertLine tone="warn">
            <span class="ingest-text">{status.problem.text}</span>
          </AlertLine>
        )}
        <States status={status} />
        <Figures status={status} />
        <p class="muted small ingest-text">{sourceText(status)}</p>
      </div>
    </Card>
  )
}

function StateOf({ status }: { status: PipelineStatusView }) {
  const { listingUnderWay, listing, location, objects, problem } = status
  if (problem !== null) return <Badge tone="warn">Cannot be read</Badge>
  const isUnknown = location !== null && listing === null
  const text = listingUnderWay
    ? 'Listing'
    : objects.onTheirWay > 0
      ? 'Reading'
      : isUnknown
        ? 'Not listed yet'
        : 'Up to date'
  return (
    <Badge tone={text === 'Not listed yet' ? 'neutral' : 'accent'} dot>
      {text}
    </Badge>
  )
}

function ListNow({ status: { pipeline, location } }: { status: PipelineStatusView }) {
  const list = useAction({
    run: () => reconcile(pipeline),
    invalidates: [ingestKeys.pipelines, ingestKeys.objects],
  })
  if (location === null) return null
  return (
    <Button
      small
      icon="retry"
      busy={list.busy}
      aria-label={`List now: ${pipeline}`}
      onClick={() => void list.start()}
    >
      List now
    </Button>
  )
}

/** It must come out even. Only a listing says that nothing is missing; before it there is only what was announced. */
function Books({ status: { listing, objects, location } }: { status: PipelineStatusView }) {
  const { total, stored, skipped, bad, onTheirWay } = listing ?? objects
  const who = location?.startsWith('file:') ? 'Folder lists' : 'Bucket lists'
  return (
    <div>
      <p class="ingest-books num">
        {listing ? who : 'Announced'} <b>{formatCount(total)}</b> = {formatCount(stored)} stored +{' '}
        {formatCount(skipped)} skipped + {formatCount(bad)} bad + {formatCount(onTheirWay)} on their way
      </p>
      <p class="muted small">
        {listing ? (
          <>
            Listed <Time at={listing.atMs} />
            {listing.isCurrent ? '' : '; another listing is under way'}
          </>
        ) : (
          'Not listed yet: what nobody announced is not known'
        )}
      </p>
    </div>
  )
}

const STATES = ['stored', 'skipped', 'bad', 'open', 'gone'] as const

/** All object versions that were ever announced or listed; each leads to its list. */
function States({ status: { pipeline, objects } }: { status: PipelineStatusView }) {
  const count = { ...objects, open: objects.onTheirWay }
  const why = {
    stored: undefined,
    skipped: reasonsText(objects.skippedBy),
    bad: reasonsText(objects.badBy),
    open: undefined,
    gone: reasonsText(objects.goneBy),
  }
  return (
    <dl class="stats ingest-states">
      {STATES.filter((state) => state !== 'gone' || objects.gone > 0).map((state) => (
        <Stat
          key={state}
          label={OBJECT_STATES[state].text}
          value={formatCount(count[state])}
          hint={why[state]}
          tone={state === 'bad' && objects.bad > 0 ? 'danger' : 'neutral'}
          href={pipelineLink(pipeline, { state })}
        />
      ))}
    </dl>
  )
}

export const OBJECT_STATES = {
  open: { text: 'On their way', one: 'On its way', tone: 'accent' },
  stored: { text: 'Stored', one: 'Stored', tone: 'accent' },
  skipped: { text: 'Skipped', one: 'Skipped', tone: 'neutral' },
  bad: { text: 'Bad', one: 'Bad', tone: 'danger' },
  gone: { text: 'Gone', one: 'Gone', tone: 'neutral' },
} as const

function reasonsText(reasons: readonly { code: string; count: number }[]): string | undefined {
  if (reasons.length === 0) return undefined
  return reasons.map(({ code, count }) => `${code} ${formatCount(count)}`).join(', ')
}

function Figures({ status }: { status: PipelineStatusView }) {
  const { messages, recent, quarantined, pipeline } = status
  const now = useNow(5_000)
  const oldest = status.oldestOnTheirWayMs
  return (
    <dl class="stats ingest-figures">
      <Stat label="Records" value={formatCount(status.records)} hint={`of ${formatBytes(status.bytes)}`} />
      <Stat
        label="Quarantined"
        value={formatCount(quarantined)}
        hint={quarantined > 0 ? 'with reasons' : 'all could be read'}
        tone={quarantined > 0 ? 'warn' : 'neutral'}
        href={pipelineLink(pipeline, { show: 'quarantine' })}
      />
      <Stat
        label="Throughput"
        value={formatRate(recent.records / recent.seconds)}
        hint={`${formatPlural(recent.objects, 'object')} in ${formatDuration(recent.seconds * 1_000)}`}
      />
      <Stat
        label="Lag"
        value={oldest === null ? 'none' : formatDuration(Math.max(0, now - oldest))}
        hint={oldest === null ? 'nothing waits' : 'since the oldest on its way'}
      />
      <Stat
        label="Messages"
        value={formatCount(messages.received)}
        hint={
          messages.lastAtMs === null ? (
            'none came yet'
          ) : (
            <>
              the last <Time at={messages.lastAtMs} />
            </>
          )
        }
      />
      <Stat
        label="Duplicates dropped"
        value={formatCount(messages.duplicates)}
        hint={`${formatCount(messages.acknowledged)} acknowledged`}
      />
    </dl>
  )
}

const QUEUES: Readonly<Record<string, string>> = {
  none: 'No queue: what is there is found by listing',
  inbox: 'Messages are posted to this server',
  folder: 'A drop folder',
  sqs: 'Amazon SQS',
  pubsub: 'Google Pub/Sub',
  nats: 'NATS JetStream',
}

function sourceText({ queue, location, takeovers, messages, listing }: PipelineStatusView): string {
  const parts = [QUEUES[queue] ?? queue, location ?? 'nothing is listed']
  if (takeovers > 0) parts.push(`${formatPlural(takeovers, 'takeover')} by a later attempt`)
  if (messages.unparsed > 0) parts.push(`${formatPlural(messages.unparsed, 'message')} not understood`)
  const refused = messages.unparsedBy.find(({ code }) => code === 'not-allowed')?.count ?? 0
  if (refused > 0)
    parts.push(`${formatPlural(refused, 'message')} of these for objects outside of what is allowed`)
  if (listing && listing.leftOut > 0)
    parts.push(`${formatPlural(listing.leftOut, 'object')} left out, where objects were moved to`)
  return parts.join(' · ')
}
