/** Object ingest in a process: its tables, its pipelines, its kinds of jobs, and who receives messages. */
import { hostname } from 'node:os'
import type { AppPlace } from '../../app/runtime.ts'
import { connectorOf } from './connect.ts'
import { ingestKinds, jobsOf } from './jobs.ts'
import { KeptObjects } from './kept-objects.ts'
import { mapRecord } from './mapping.ts'
import { ingestMetrics } from './metrics.ts'
import { Pipelines } from './pipelines.ts'
import { Receivers } from './receivers.ts'
import { openRecords } from './records/open-records.ts'
import { ingestRuntime, type OpenIngest } from './runtime.ts'
import { type IngestOverrides, ingestSettingsOf } from './settings.ts'
import { ingestSources } from './sources.ts'
import { lookAtIngest, pipelineStatus } from './status.ts'
import { InboxTables } from './store/inbox.ts'
import { IngestTables } from './store/tables.ts'
import { startIngestWork } from './work.ts'

/** Listing and tidying, besides the objects. */
const WORKERS_BESIDES = 2

export async function openIngest(place: AppPlace): Promise<OpenIngest> {
  const { config, ledger, clock } = place
  const overrides = (place.overrides.ingest ?? {}) as IngestOverrides
  const settings = ingestSettingsOf(config, overrides)
  const tables = await IngestTables.open(ledger)
  const inbox = await InboxTables.open(ledger)
  const receivers: Receivers = new Receivers({ kinds: () => kinds, engine: place.engine, clock })
  const onError = (error: unknown): void => receivers.onError(error)
  const connector = connectorOf({
    inbox,
    clock,
    fetch: place.fetch,
    resolve: place.resolve,
    settings,
    onError,
  })
  const pipelines = new Pipelines({ accounts: place.accounts, vault: place.vault, connector })
  await pipelines.reload()
  const kinds = ingestKinds({
    pipelines,
    tables,
    clock,
    settings,
    openRecords,
    mapRecord,
    kept: new KeptObjects({ home: place.home, host: hostname() }),
    index: async () => {
      const search = await place.search.open()
      await search.prepare()
      return search
    },
    settled: (pipeline, shards) => receivers.settled(pipeline, shards),
  })
  return {
    ...(await lookAtIngest(ledger)),
    settings,
    tables,
    inbox,
    pipelines,
    kinds,
    receivers,
    sources: ingestSources(place, { pipelines, tables, kinds, receivers }),
    jobs: jobsOf(kinds),
    budgets: () => ({}),
    async metrics() {
      const all = []
      for (const name of pipelines.names()) all.push(await pipelineStatus(tables, name))
      return ingestMetrics(all, clock.now())
    },
    workersMin: () => settings.workersMax + WORKERS_BESIDES,
    work: (runtime, options) => startIngestWork(ingestRuntime(runtime), options),
    async reload() {
      Object.assign(settings, ingestSettingsOf(config, overrides))
      await pipelines.reload()
    },
    async close() {
      await receivers.stop()
      await pipelines.close()
    },
  }
}
