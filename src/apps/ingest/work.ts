/**
 * What every pipeline is given: its stream, a listing on its schedule, tidying, and a receiver in each process that runs
 * jobs. Everything here can be done again at any time, by any process, and then changes nothing.
 */
import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { followSources } from '../../app/work.ts'
import { streamOf } from './pipeline.ts'
import type { IngestRuntime } from './runtime.ts'
import { putPipeline } from './store/pipelines.ts'

/** How soon a process works for a pipeline that another one has configured. */
const FOLLOW_MS = 5_000
const TIDY = 'every 1h'

export const listSchedule = (pipeline: string): string => `ingest.list ${pipeline}`
export const tidySchedule = (pipeline: string): string => `ingest.tidy ${pipeline}`

/** Sees which pipelines there are now, and begins what each needs. A process that only answers leaves that to others. */
export async function startPipelines(runtime: IngestRuntime): Promise<void> {
  const { ingest, ledger, role, engine } = runtime
  await ingest.pipelines.reload()
  if (role === 'web') return
  const names = ingest.pipelines.names()
  const there = new Map((await ledger.schedules()).map(({ name, spec }) => [name, spec]))
  for (const name of names) {
    const isNew = (await ingest.tables.pipeline(name)) === undefined
    await engine.streams.open(streamOf(name))
    if (isNew) await engine.write({ effects: (tx) => putPipeline(tx, name) })
    await putSchedules(runtime, name, there)
    const { location } = (await ingest.pipelines.get(name)).config
    if (isNew && location !== null) {
      await engine.enqueue(ingest.kinds.list, { pipeline: name }, { stream: streamOf(name) })
    }
  }
  await dropOthers(runtime, names, [...there.keys()])
}

async function putSchedules(
  { engine, ingest }: IngestRuntime,
  name: string,
  there: ReadonlyMap<string, string>,
): Promise<void> {
  const { config } = await ingest.pipelines.get(name)
  const stream = streamOf(name)
  if (there.get(tidySchedule(name)) !== TIDY) {
    await engine.schedule(tidySchedule(name), TIDY, ingest.kinds.tidy, { pipeline: name }, { stream })
  }
  const isListed = config.location !== null && config.listEveryMinutes > 0
  const spec = isListed ? `every ${config.listEveryMinutes}m` : undefined
  if (spec === undefined && there.has(listSchedule(name)))
    await engine.ledger.dropSchedule(listSchedule(name))
  if (spec === undefined || there.get(listSchedule(name)) === spec) return
  await engine.schedule(listSchedule(name), spec, ingest.kinds.list, { pipeline: name }, { stream })
}

/** Pipelines that are there no more. One whose configuration cannot be read is there. */
async function dropOthers(
  { ingest, engine, ledger }: IngestRuntime,
  names: readonly string[],
  schedules: readonly string[],
): Promise<void> {
  const kept = new Set([...names, ...ingest.pipelines.broken().keys()])
  for (const name of schedules) {
    const of = /^ingest\.(?:list|tidy) (.+)$/.exec(name)?.[1]
    if (of !== undefined && !kept.has(of)) await ledger.dropSchedule(name)
  }
  for (const name of await ingest.tables.pipelines()) {
    if (kept.has(name)) continue
    await engine.streams.open(streamOf(name))
    await engine.enqueue(ingest.kinds.forget, { pipeline: name }, { stream: streamOf(name) })
  }
}

/** Begins for all pipelines, and goes on. */
export async function startIngestWork(runtime: IngestRuntime, options: WorkOptions): Promise<AppWork> {
  const { receivers, pipelines } = runtime.ingest
  receivers.onError = options.onError
  const refresh = async (): Promise<void> => {
    await startPipelines(runtime)
    if (runtime.role !== 'web') await receivers.follow(pipelines.names())
  }
  await refresh()
  const stop = followSources({ everyMs: FOLLOW_MS, ...options }, refresh)
  return {
    refresh,
    async stop() {
      await stop()
      await receivers.stop()
    },
  }
}
