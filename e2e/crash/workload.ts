/**
 * The workload of the crash harness: everything an app may do with the engine, in a form whose final state does
 * not depend on the order of things or on interruptions. What a handler does is a function of its payload
 * and of `job.failures`, which an interruption leaves as it is.
 *
 *   discover ─▶ list (one per segment, page by page) ─▶ store (batches; split, isolated) ─▶ page (follow-up)
 *                                                        └─▶ digest (one key, enqueued by every batch)
 *   edit ─▶ publish (one key, each version replaces the one before)
 *   upload (parts, resumed from a checkpoint) ─▶ step     a diamond of steps     a failure and its dependents
 */
import { z } from 'zod'
import { createEngine, type Engine, type EngineOptions } from '../../src/engine/engine.ts'
import type { AnyJobKind, JobRequest, RunContext } from '../../src/engine/job-kind.ts'
import { defineJob, request } from '../../src/engine/kinds.ts'
import { listingJobs } from './listing.ts'
import { pause, transient } from './pace.ts'
import { hash, type SourceSize } from './source.ts'
import { APP, apply, claimSeed, latestVersion, report, rowCount, schema } from './tables.ts'

export const VERSIONS = 6

/** Opens the ledger, makes the workload's tables, and puts the first jobs in, once. */
export async function openWorkload(
  size: SourceSize,
  { onViolation, ...options }: Omit<EngineOptions, 'jobs'> & { onViolation: (what: string) => void },
): Promise<Engine> {
  let engine: Engine | undefined
  const listing = listingJobs(size, () => engine!.ledger)
  const others = otherJobs(size, onViolation)
  engine = await createEngine({ ...options, jobs: [...listing.kinds, ...others.kinds] })
  await engine.ledger.migrateApp(APP, schema(engine.ledger.dialect))
  for (const stream of size.streams) await engine.streams.open(stream)
  await seed(engine, [
    ...size.streams.flatMap((stream) => [...listing.first(stream), ...others.first(stream)]),
  ])
  return engine
}

class AlreadySeeded extends Error {}

async function seed(engine: Engine, jobs: readonly JobRequest[]): Promise<void> {
  try {
    await engine.write({
      effects: async (tx) => {
        if (!(await claimSeed(tx))) throw new AlreadySeeded()
      },
      jobs,
    })
  } catch (thrown) {
    if (!(thrown instanceof AlreadySeeded)) throw thrown
  }
}

type Part = { kinds: AnyJobKind[]; first: (stream: string) => JobRequest[] }

function otherJobs(size: SourceSize, onViolation: (what: string) => void): Part {
  const steps = stepJobs(size)
  const editing = editingJobs(size, onViolation)
  const upload = uploadJob(size, steps.step)
  return {
    kinds: [...steps.kinds, ...editing.kinds, upload],
    first: (stream) => [
      ...steps.first(stream),
      ...editing.first(stream),
      ...Array.from({ length: size.uploads }, (_, n) =>
        request(upload, { name: `${stream} upload ${n}:` }, { stream, lane: 'bulk', priority: 1 }),
      ),
    ],
  }
}

const stepPayload = z.object({ name: z.string(), after: z.array(z.string()) })
export type Step = z.infer<typeof stepPayload>

/** A diamond (a; b and c after a; d after both), and a job that fails, with one dependent of each sort. */
function stepJobs(size: SourceSize): Part & { step: AnyJobKind } {
  const run = async (job: RunContext<Step>) => {
    const { name, after } = job.payload
    await pause(job, size, name)
    if (job.job.failures < hash(name) % 2) throw transient(`${name} needs a second try`)
    return {
      effects: async (tx: Parameters<typeof apply>[0]) => {
        const seen = (await rowCount(tx, 'steps', after)) + (await rowCount(tx, 'parts', after))
        if (seen !== after.length) await report(tx, `${name} ran before what it waits for`)
        await apply(tx, 'steps', [{ name }])
      },
    }
  }
  const step = defineJob({ kind: 'crash.step', payload: stepPayload, run })
  const afterFail = defineJob({ kind: 'crash.after-fail', payload: stepPayload, onDepFailure: 'fail', run })
  const afterCancel = defineJob({
    kind: 'crash.after-cancel',
    payload: stepPayload,
    onDepFailure: 'cancel',
    run,
  })
  const afterRun = defineJob({ kind: 'crash.after-run', payload: stepPayload, onDepFailure: 'run', run })
  const doomed = defineJob({
    kind: 'crash.doomed',
    payload: z.object({}),
    attempts: 2,
    run: async () => {
      throw transient('never works')
    },
  })
  const first = (stream: string): JobRequest[] => {
    const name = (letter: string): string => `${stream} ${letter}`
    const one = (letter: string, ...after: string[]): JobRequest =>
      request(
        step,
        { name: name(letter), after: after.map(name) },
        { stream, ref: name(letter), after: after.map(name) },
      )
    const dependent = (kind: typeof step): JobRequest =>
      request(kind, { name: name(kind.kind), after: [] }, { stream, after: [name('doomed')] })
    return [
      ...[one('d', 'b', 'c'), one('b', 'a'), one('c', 'a'), one('a')],
      request(doomed, {}, { stream, ref: name('doomed') }),
      ...[afterFail, afterCancel, afterRun].map(dependent),
    ]
  }
  return { step, kinds: [step, afterFail, afterCancel, afterRun, doomed], first }
}

/** Uploads its parts one commit at a time; half-way it steps aside; what follows waits for its end. */
function uploadJob(size: SourceSize, step: AnyJobKind) {
  return defineJob({
    kind: 'crash.upload',
    payload: z.object({ name: z.string() }),
    run: async (job) => {
      const { name } = job.payload
      const state = {
        done: 0,
        rested: false,
        ...(job.checkpoint as { done: number; rested: boolean } | null),
      }
      while (state.done < size.parts) {
        if (state.done === Math.ceil(size.parts / 2) && !state.rested)
          return { again: { afterMs: 5 }, checkpoint: { ...state, rested: true } }
        await pause(job, size, `${name} ${state.done}`)
        if (job.job.failures < 2 && state.done === 1 + job.job.failures * 3)
          throw transient('connection reset')
        const part = `${name} ${state.done}`
        state.done += 1
        const after = Array.from({ length: size.parts }, (_, n) => `${name} ${n}`)
        await job.commit({
          effects: (tx) => apply(tx, 'parts', [{ name: part }]),
          checkpoint: state,
          jobs:
            state.done === 1
              ? [request(step, { name: `${name} end`, after }, { after: [job.id] })]
              : undefined,
        })
      }
      return undefined
    },
  })
}

const version = z.object({ stream: z.string(), version: z.number() })

/** Each version of a text takes the place of the one before, also while that one is being published. */
function editingJobs(size: SourceSize, onViolation: (what: string) => void): Part {
  const active = new Map<string, number>()
  const publish = defineJob({
    kind: 'crash.publish',
    payload: version,
    key: ({ stream }) => stream,
    onKeyTaken: 'replace',
    run: async (job) => {
      const { stream, version } = job.payload
      const other = active.get(stream)
      if (other !== undefined) onViolation(`${stream}: version ${version} started while ${other} was running`)
      active.set(stream, version)
      try {
        // This one always listens: it is about who runs beside whom.
        await pause(job, { ...size, deaf: false }, `${stream} ${version}`, 4)
      } finally {
        active.delete(stream)
      }
      return {
        effects: async (tx) => {
          if ((await latestVersion(tx, stream)) >= version)
            await report(tx, `${stream}: version ${version} came late`)
          await apply(tx, 'published', [{ name: `${stream} ${version}`, value: String(version) }])
        },
      }
    },
  })
  const edit = defineJob({
    kind: 'crash.edit',
    payload: z.object({ stream: z.string() }),
    run: async (job) => {
      const { stream } = job.payload
      const { done } = (job.checkpoint as { done: number } | null) ?? { done: 0 }
      for (let version = done + 1; version <= VERSIONS; version++) {
        await pause(job, size, `${stream} edit ${version}`, 2)
        await job.commit({ jobs: [request(publish, { stream, version })], checkpoint: { done: version } })
      }
    },
  })
  return { kinds: [publish, edit], first: (stream) => [request(edit, { stream }, { stream })] }
}
