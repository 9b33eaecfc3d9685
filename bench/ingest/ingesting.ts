/**
 * A process that ingests until so many objects are stored; one that appends the same records without reading them; and one
 * that receives, reads and acknowledges the same without keeping anything.
 */
import { beginLife, openParts } from '../../e2e/ingest/life.ts'
import { addPipeline } from '../../src/apps/ingest/configure.ts'
import { connectorOf } from '../../src/apps/ingest/connect.ts'
import { parseEnvelope } from '../../src/apps/ingest/envelope.ts'
import { mapRecord } from '../../src/apps/ingest/mapping.ts'
import { shardId, streamOf } from '../../src/apps/ingest/pipeline.ts'
import { Pipelines } from '../../src/apps/ingest/pipelines.ts'
import { RECORD_GRANT, recordDocument } from '../../src/apps/ingest/record-document.ts'
import { InboxTables } from '../../src/apps/ingest/store/inbox.ts'
import type { IngestTables } from '../../src/apps/ingest/store/tables.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { QueueMessage } from '../../src/cloud/queue.ts'
import type { Engine } from '../../src/engine/index.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { openSearch } from '../../src/search/search.ts'
import { BUCKET, type CloudAt, recordOf } from './served-cloud.ts'

export type Place = { home: string; url: string }
export type SetUpOrder = Place & { do: 'set up'; cloud: CloudAt }
export type IngestOrder = Place & { do: 'ingest'; objects: number }
/** `first`: the number of the first of them; others may append others to the same index. */
export type AppendOrder = Place & { do: 'append'; first: number; objects: number; records: number }

export type CarryOrder = Place & { do: 'carry'; objects: number }

export type Pace = { ms: number; cpuMs: number; peakMb: number; records: number }

export const NAME = 'bench'
/** What a new user has. */
const SETTINGS = {
  receiveWaitMs: 1_000,
  commitMs: 60_000,
  visibilityMs: 180_000,
  extensionMs: 60_000,
  marginMs: 4_000,
  onTheirWayMax: 1_000,
  batchRecords: 1_000,
  workersMax: 8,
  limits: { recordBytesMax: 1_000_000, expansionMax: 1_000 },
}
const LEASE_MS = 30_000
const LOOK_MS = 500
const CALLS = 10
const MAPPING = { title: 'message', text: ['message'], facets: ['level', 'station'] }

export async function setUp({ home, url, cloud }: SetUpOrder): Promise<{ isReady: true }> {
  const { ledger, accounts, vault } = await openParts({ home, ledgerUrl: url })
  const { region, accessKeyId, secretAccessKey } = cloud
  const config = {
    queue: { kind: 'sqs' as const, url: cloud.queueUrl, region, endpoint: cloud.sqsUrl },
    location: `s3://${BUCKET}/`,
    store: { region, endpoint: cloud.s3Url, pathStyle: true },
    mapping: MAPPING,
    listEveryMinutes: 0,
  }
  const place = { accounts, vault, engine: undefined as unknown as Engine }
  await addPipeline(place, { name: NAME, config, secret: { aws: { accessKeyId, secretAccessKey } } })
  const search = openSearch({ ledger })
  await search.prepare()
  await search.close()
  await ledger.close()
  return { isReady: true }
}

/** From the first call to the last commit; what another process stores counts as well. */
export async function ingest({ home, url, objects }: IngestOrder): Promise<Pace> {
  const settings = { ...SETTINGS }
  const life = await beginLife({ home, ledgerUrl: url, settings, leaseMs: LEASE_MS, synchronous: 'FULL' })
  const began = now()
  const { tables } = life.kinds
  while (!(await isAllStored(tables, objects))) await sleep(systemClock, LOOK_MS)
  const { ms, cpuMs } = since(began)
  const counts = await tables.counts(NAME)
  const records = counts.reduce((sum, { published }) => sum + published, 0)
  await life.end()
  return { ms, cpuMs, peakMb: peakMb(), records }
}

/** Counting all shards costs what their number is: only when nothing is on its way any more. */
async function isAllStored(tables: IngestTables, objects: number): Promise<boolean> {
  const told = (await tables.pipeline(NAME))?.messages ?? 0
  if (told < objects || (await tables.openCount(NAME)) > 0) return false
  const counts = await tables.counts(NAME)
  const bad = counts.find(({ state }) => state === 'bad' || state === 'skipped')
  if (bad) throw new Error(`${bad.n} objects are ${bad.state}: ${bad.code}`)
  return counts.reduce((sum, { state, n }) => sum + (state === 'stored' ? n : 0), 0) >= objects
}

/** The same documents, made beforehand but for their chunks, in batches of the same size. */
export async function appendAll({ url, first, objects, records }: AppendOrder): Promise<Pace> {
  const ledger = await openLedger(url)
  const search = openSearch({ ledger })
  await search.prepare()
  let all = 0
  const began = now()
  for (let object = first; object < first + objects; object++) {
    const uri = `s3://${BUCKET}/logs/${object}.ndjson`
    const of = { pipeline: NAME, shard: shardId(uri, 'v'), uri, version: 'v' }
    for (let from = 0; from < records; from += SETTINGS.batchRecords) {
      const count = Math.min(SETTINGS.batchRecords, records - from)
      const documents = Array.from({ length: count }, (_, n) =>
        recordDocument(of, from + n, mapRecord(recordOf(object, from + n), MAPPING), from + n + 1),
      )
      const seenBy = { principal: streamOf(NAME), grant: RECORD_GRANT }
      await ledger.transaction((tx) => search.append(tx, documents, { ...seenBy, isEmbedded: false }))
      all += count
    }
  }
  const used = since(began)
  await search.close()
  await ledger.close()
  return { ...used, peakMb: peakMb(), records: all }
}

/** By the same clients, as many calls at once as a receiver makes, and as many messages with each. */
export async function carry({ home, url, objects }: CarryOrder): Promise<Pace> {
  const { ledger, accounts, vault } = await openParts({ home, ledgerUrl: url })
  const inbox = await InboxTables.open(ledger)
  const onError = (error: unknown): void => {
    throw error
  }
  const place = { inbox, clock: systemClock, fetch, resolve: async () => [], settings: SETTINGS, onError }
  const pipelines = new Pipelines({ accounts, vault, connector: connectorOf(place) })
  await pipelines.reload()
  const queue = (await pipelines.queue(NAME))!
  const { signal } = new AbortController()
  let carried = 0
  const read = async (message: QueueMessage): Promise<void> => {
    const envelope = parseEnvelope(message)
    // A bucket that begins to tell says so first.
    if (envelope.kind !== 'objects') return
    carried += envelope.objects.length
    for (const { uri, version } of envelope.objects) {
      const store = await pipelines.store(NAME, uri)
      const { bytes } = await store.read(uri, { version, fromByte: 0, signal })
      for await (const _ of bytes);
    }
  }
  const carryNext = async (): Promise<void> => {
    while (carried < objects) {
      const messages = await queue.receive({ max: queue.limits.receiveMax, waitMs: 0, signal })
      if (messages.length === 0) continue
      await Promise.all(messages.map(read))
      await queue.acknowledge(messages)
    }
  }
  const began = now()
  await Promise.all(Array.from({ length: CALLS }, carryNext))
  const used = since(began)
  await pipelines.close()
  await ledger.close()
  return { ...used, peakMb: peakMb(), records: carried }
}

type Began = { ms: number; cpu: NodeJS.CpuUsage }

function now(): Began {
  return { ms: systemClock.monotonicMs(), cpu: process.cpuUsage() }
}

function since(began: Began): Pick<Pace, 'ms' | 'cpuMs'> {
  const { user, system } = process.cpuUsage(began.cpu)
  return { ms: systemClock.monotonicMs() - began.ms, cpuMs: (user + system) / 1_000 }
}

function peakMb(): number {
  return process.resourceUsage().maxRSS / 1_024
}
