/** A server's engine API on a ledger of its own, with an engine whose jobs do what their payload says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { Role } from '../../app/runtime.ts'
import { OWNER } from '../../app/user.ts'
import { catalog } from '../../apps/catalog.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import { createEngine, defineJob, type Engine, type JobKind, TidemarkError } from '../../engine/index.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { addModules, createApp } from '../app.ts'
import { createEventHub } from '../event-hub.ts'
import { createSeries } from '../series.ts'
import type { ServerServices } from '../services.ts'
import { engineModule } from './module.ts'

export const STREAM = 'mail:ann@example.com'

const Task = z.object({
  does: z.enum(['succeed', 'wait', 'bad', 'spawn']),
  token: z.string().optional(),
  ids: z.array(z.string()).default(['a']),
})
export type Task = z.output<typeof Task>

export type ApiWorld = {
  services: ServerServices
  engine: Engine
  ledger: Ledger
  task: JobKind<Task>
  /** Fails for good, as a whole. */
  single: JobKind<Record<string, never>>
  /** Lets waiting tasks end. */
  letGo(): void
  get(path: string): Promise<{ status: number; body: Body }>
  post(path: string, body?: unknown): Promise<{ status: number; body: Body }>
  put(path: string, body?: unknown): Promise<{ status: number; body: Body }>
  close(): Promise<void>
}

/** An answer, whose form the server has held against the route's schema before. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every form
export type Body = any

export type ApiOptions = { ledgerUrl?: string; role?: Role; config?: Record<string, unknown> }

export async function startApi(options: ApiOptions = {}): Promise<ApiWorld> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-api-'))
  const ledger = options.ledgerUrl === undefined ? {} : { ledger: { url: options.ledgerUrl } }
  const config = catalog.parse({ ...ledger, ...options.config })
  const runtime = await openRuntime({ config, home, env: {}, role: options.role ?? 'all', apps })
  let letGo = (): void => {}
  const gone = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const task = taskKind(gone)
  const single = defineJob({
    kind: 'test.single',
    payload: z.object({}),
    attempts: 1,
    run: () => {
      throw new TidemarkError('it was told to, with Bearer abcdefghijklmnop1234567890', { kind: 'bug' })
    },
  })
  const engine = await createEngine({
    ledger: runtime.ledger,
    jobs: [task, single],
    random: () => 0.001,
    name: 'api',
    budgets: { calls: { rate: 100 } },
  })
  const clock = systemClock
  const series = createSeries({ engine, ledger: runtime.ledger, clock })
  const services: ServerServices = {
    ...runtime,
    engine,
    clock,
    catalog,
    hub: createEventHub({ clock }),
    series,
  }
  const app = createApp(() => {})
  // Who asks is the owner: that others may not is tested with the security of a whole server.
  app.use(async (c, next) => {
    c.set('identity', { by: 'token', user: OWNER })
    await next()
  })
  addModules(app, [engineModule], { services, checkAnswers: true })
  const ask = async (path: string, init?: RequestInit): Promise<{ status: number; body: Body }> => {
    const answer = await app.request(path, init)
    return { status: answer.status, body: answer.status === 304 ? null : await answer.json() }
  }
  const send = (method: string, path: string, body: unknown): Promise<{ status: number; body: Body }> =>
    ask(path, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
  return {
    services,
    engine,
    ledger: runtime.ledger,
    task,
    single,
    letGo,
    get: (path) => ask(path),
    post: (path, body) => send('POST', path, body),
    put: (path, body) => send('PUT', path, body),
    async close() {
      letGo()
      await series.close()
      await engine.stop()
      await runtime.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

function taskKind(gone: Promise<void>): JobKind<Task> {
  const task: JobKind<Task> = defineJob({
    kind: 'test.task',
    payload: Task,
    attempts: 1,
    items: { of: ({ ids }) => ids, only: (payload, ids) => ({ ...payload, ids: [...ids] }) },
    describe: {
      verb: 'doing',
      noun: 'task',
      input: ({ does, ...rest }) => ({ ...rest, because: `it is to ${does}` }),
    },
    async run(job) {
      switch (job.payload.does) {
        case 'succeed':
          return { note: 'as it was told' }
        case 'bad':
          throw new TidemarkError('this one never works', { kind: 'permanent' })
        case 'wait':
          job.progress({ done: 3, total: 10, unit: 'items', label: 'three of ten' })
          await Promise.race([
            gone,
            new Promise((resolve) => job.signal.addEventListener('abort', resolve, { once: true })),
          ])
          return
        case 'spawn':
          return { jobs: [{ kind: task, payload: { does: 'succeed', ids: ['a'] }, options: {} }] }
      }
    },
  })
  return task
}
