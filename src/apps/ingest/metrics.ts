/**
 * What Prometheus is told of pipelines. All of it is read from the ledger, so that every process tells the same. Names of
 * pipelines are labels: there are as many as somebody has configured.
 */
import type { MetricFamily } from '../../engine/observe/metrics.ts'
import type { PipelineStatus } from './status.ts'

type Sample = MetricFamily['samples'][number]
type Read = (status: PipelineStatus) => number | null

const COUNTERS: readonly { name: string; help: string; read: Read }[] = [
  { name: 'messages', help: 'Messages received.', read: ({ messages }) => messages.received },
  { name: 'acknowledged', help: 'Messages acknowledged.', read: ({ messages }) => messages.acknowledged },
  {
    name: 'duplicates',
    help: 'Announcements of what was known already, which were dropped.',
    read: ({ messages }) => messages.duplicates,
  },
  {
    name: 'dropped',
    help: 'Events that are about nothing to read: tests, deletions.',
    read: ({ messages }) => messages.dropped,
  },
  {
    name: 'unparsed',
    help: 'Messages that nobody understood, left to the dead-letter queue.',
    read: ({ messages }) => messages.unparsed,
  },
  { name: 'extensions', help: 'Visibility extensions.', read: ({ messages }) => messages.extensions },
  {
    name: 'released',
    help: 'Messages given back before all that they announce was settled.',
    read: ({ messages }) => messages.released,
  },
]

export function ingestMetrics(all: readonly PipelineStatus[], nowMs: number): MetricFamily[] {
  const of = (read: Read): Sample[] =>
    all.flatMap((status) => {
      const value = read(status)
      return value === null ? [] : [{ labels: { pipeline: status.pipeline }, value }]
    })
  const gauge = (name: string, help: string, samples: readonly Sample[]): MetricFamily => ({
    name: `tidemark_ingest_${name}`,
    type: 'gauge',
    help,
    samples,
  })
  const ageOf = (atMs: number | null | undefined): number | null =>
    atMs == null ? null : Math.max(0, nowMs - atMs) / 1_000
  return [
    ...COUNTERS.map(
      ({ name, help, read }): MetricFamily => ({
        name: `tidemark_ingest_${name}_total`,
        type: 'counter',
        help,
        samples: of(read),
      }),
    ),
    gauge('objects', 'Object versions, by state.', all.flatMap(objectSamples)),
    gauge(
      'oldest_open_seconds',
      'Age of the oldest object version that is on its way.',
      of(({ oldestOnTheirWayMs }) => ageOf(oldestOnTheirWayMs)),
    ),
    gauge('queue_messages', 'Messages in the queue, as far as it tells.', all.flatMap(queueSamples)),
    gauge(
      'oldest_message_seconds',
      'Age of the oldest message in the queue, or in hand where the queue does not tell.',
      of(({ queueDepth }) => ageOf(queueDepth?.oldestAtMs)),
    ),
    gauge(
      'records',
      'Records in the index.',
      of(({ records }) => records),
    ),
    gauge(
      'quarantined_records',
      'Records that could not be read.',
      of(({ quarantined }) => quarantined),
    ),
    gauge(
      'takeovers',
      'How often the object versions that are known were taken over from another.',
      of(({ takeovers }) => takeovers),
    ),
  ]
}

function objectSamples({ pipeline, objects }: PipelineStatus): Sample[] {
  const { stored, skipped, bad, gone, onTheirWay } = objects
  return Object.entries({ open: onTheirWay, stored, skipped, bad, gone }).map(([state, value]) => ({
    labels: { pipeline, state },
    value,
  }))
}

function queueSamples({ pipeline, queueDepth }: PipelineStatus): Sample[] {
  const { waiting = null, inFlight = null } = queueDepth ?? {}
  return Object.entries({ waiting, in_flight: inFlight }).flatMap(([state, value]) =>
    value === null ? [] : [{ labels: { pipeline, state }, value }],
  )
}
