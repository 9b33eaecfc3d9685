/**
 * The demo's pipelines: a bucket whose notifications come twice or not at all, with one line and one object that cannot
 * be read, and a folder into which anybody may put files. Both go on growing.
 */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { pauseOf } from '../../../app/cli/ending.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { type AppDemo, type DemoCloud, DemoJournal, type DemoSummary } from '../../../app/demo.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { ingestApp } from '../app.ts'
import { addPipeline, updatePipeline } from '../configure.ts'
import { type PipelineInput, type PipelineSecret, SERVICE, streamOf } from '../pipeline.ts'
import { type IngestRuntime, ingestRuntime } from '../runtime.ts'
import { ingestSource } from '../sources.ts'
import { booksText, isOpen, type PipelineStatus, pipelineStatus } from '../status.ts'
import { arrival, type DemoObject, firstObjects, folderFile } from './objects.ts'

const BUCKET_PIPELINE = 'demo-bucket'
const FOLDER_PIPELINE = 'demo-folder'
const PIPELINES = [BUCKET_PIPELINE, FOLDER_PIPELINE]
const BUCKET = 'tide-gauges'
const QUEUE = 'arrivals'
const FOLDER = 'demo-drop'
const OBJECTS = 30
const FAST_OBJECTS = 6
const FOLDER_FILES = 3
const STEP_MS = 12_000
/** So that a demo that is left alone for days does not grow without end. */
const STEPS_MAX = 5_000
const FOLDER_EVERY = 4
/** Objects that are meant to be bad. */
const BROKEN = 1
const JOURNAL_FILE = 'demo-ingest.jsonl'
const stepSchema = z.object({ n: z.int().min(0), atMs: z.int() })
const MAPPING = { title: 'station', text: ['message'], time: 'at', facets: ['station', 'severity'] }

export const ingestDemo: AppDemo = {
  world: () => ({
    sqs: { queues: [QUEUE] },
    s3: { buckets: [{ name: BUCKET, notify: [{ queue: QUEUE, envelope: 's3' }] }] },
  }),
  begin(cloud) {
    const folder = join(cloud.home, FOLDER)
    const step = world(cloud, folder)
    return {
      config: '',
      intro: () =>
        `It reads what a queue announces of the bucket ${BUCKET}, and every file put into ${folder}.`,
      places: [['/ingest', 'pipelines of objects: their books, and what could not be read']],
      connect: (runtime) => connect(ingestRuntime(runtime), cloud, folder),
      live: (_runtime, stop) => live(step, stop),
      settle: (runtime, stop) => settle(ingestRuntime(runtime), cloud, stop),
      summary: (runtime) => summary(ingestRuntime(runtime), cloud),
    }
  },
}

/** What the bucket begins with, and again what had come before. Returns how one more comes; false when there were enough. */
function world(cloud: DemoCloud, folder: string): () => boolean {
  const { seed, home, toMs, isFast } = cloud
  for (const object of firstObjects({ seed, toMs, count: isFast ? FAST_OBJECTS : OBJECTS }))
    put(cloud, object)
  mkdirSync(folder, { recursive: true })
  for (let n = 0; n < FOLDER_FILES; n++)
    drop(folder, `gauge-${n}.ndjson`, folderFile(n, { seed, atMs: toMs }))
  const journal = new DemoJournal(join(home, JOURNAL_FILE), stepSchema)
  const happen = ({ n, atMs }: z.output<typeof stepSchema>): void => {
    put(cloud, arrival(n, { seed, atMs }))
    if (n % FOLDER_EVERY === 0) drop(folder, `reading-${n}.ndjson`, folderFile(n, { seed, atMs }))
  }
  for (const step of journal.before) happen(step)
  return () => {
    if (journal.size >= STEPS_MAX) return false
    const step = { n: journal.size, atMs: systemClock.now() }
    journal.note(step)
    happen(step)
    return true
  }
}

function put({ sim, at }: DemoCloud, { key, body, atMs, isLost, isTwice }: DemoObject): void {
  const { store } = sim.s3
  Object.assign(store.notices.faults, { lose: isLost ? 1 : 0, duplicate: isTwice ? 1 : 0 })
  at(atMs, () => store.put(BUCKET, key, body))
}

/** Under another name first, as whoever writes into a drop folder should. One that is there is left alone. */
function drop(folder: string, name: string, text: string): void {
  const file = join(folder, name)
  if (existsSync(file)) return
  writeFileSync(`${file}.part`, text)
  renameSync(`${file}.part`, file)
}

/** Anew at every start: the cloud may be at another port. */
async function connect(runtime: IngestRuntime, { sim }: DemoCloud, folder: string): Promise<void> {
  const { accessKeyId, secretAccessKey, region } = sim.s3.account
  const { baseUrl } = sim.s3
  await configure(runtime, BUCKET_PIPELINE, {
    config: {
      queue: { kind: 'sqs', url: sim.sqs.queueUrl(QUEUE), region, endpoint: baseUrl },
      location: `s3://${BUCKET}/`,
      store: { region, endpoint: baseUrl, pathStyle: true },
      listEveryMinutes: 1,
      mapping: MAPPING,
    },
    secret: { aws: { accessKeyId, secretAccessKey } },
  })
  await configure(runtime, FOLDER_PIPELINE, {
    config: { queue: { kind: 'folder', path: folder }, location: `file://${folder}`, mapping: MAPPING },
  })
}

type Configured = { config: PipelineInput; secret?: PipelineSecret }

async function configure(
  runtime: IngestRuntime,
  name: string,
  { config, secret }: Configured,
): Promise<void> {
  if (await runtime.accounts.find(SERVICE, name)) await updatePipeline(runtime, { name, config, secret })
  else await addPipeline(runtime, { name, config, secret: secret ?? {} })
}

/** Something comes, and is announced, mostly. */
async function live(step: () => boolean, stop: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(systemClock, STEP_MS, stop).catch(() => {
      // Told to stop: seen below.
    })
    if (stop.aborted || !step()) return
  }
}

const LOOK_MS = 100

async function settle(runtime: IngestRuntime, cloud: DemoCloud, stop: AbortSignal): Promise<void> {
  const { engine, ingest } = runtime
  for (const pipeline of PIPELINES) {
    const stream = streamOf(pipeline)
    await engine.streams.open(stream)
    await engine.enqueue(ingest.kinds.list, { pipeline }, { stream })
  }
  while (!stop.aborted && !(await summary(runtime, cloud)).isSettled) {
    await sleep(systemClock, LOOK_MS, stop).catch(() => {
      // Told to stop: the loop ends by itself.
    })
  }
}

/** The books are compared with the bucket itself: what they do not know of is not settled. */
async function summary(runtime: IngestRuntime, { sim }: DemoCloud): Promise<DemoSummary> {
  const { ingest } = runtime
  const there = sim.s3.store.history(BUCKET).filter(({ state }) => state === 'current').length
  const all = await Promise.all(PIPELINES.map((name) => pipelineStatus(ingest.tables, name)))
  const [bucket] = all as [PipelineStatus]
  const pauses = await Promise.all(
    PIPELINES.map((name) => pauseOf(openedSources(ingestApp, runtime), ingestSource(name))),
  )
  return {
    text: all.map((one) => `${one.pipeline}: ${booksText(one)}.`).join(' '),
    isSettled: all.every((one) => one.listing !== null && !isOpen(one)) && bucket.listing?.total === there,
    hasFailed: (bucket.listing?.bad ?? 0) > BROKEN,
    paused: pauses.find((pause) => pause)?.reason ?? null,
    json: { pipelines: all },
  }
}
