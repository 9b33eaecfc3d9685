/**
 * What the tests of `jobs`, `status`, `pause` and `bad` share: commands as `main` runs them, or the real
 * launcher as a child process, and a ledger with a little of everything in it, written through the
 * ledger itself.
 */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { processIdentity } from '../../base/process-identity.ts'
import type { ClaimedJob, NewJob, Settlement } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { type MainInput, runCommand } from '../main.ts'
import type { OutputStream } from '../output/output.ts'

export const ROOT = join(import.meta.dirname, '..', '..', '..')
export const BIN = join(ROOT, 'bin', 'tidemark')

export type Ended = { code: number | null; stdout: string; stderr: string }

/** A folder with a configuration, and the database that it names. */
export type TestHome = {
  name: 'SQLite' | 'PostgreSQL'
  path: string
  url: string
  /** In this process: everything but the launcher. */
  run(...args: string[]): Promise<Ended>
  json<T>(...args: string[]): Promise<T>
  /** The launcher. */
  launch(...args: string[]): Ended
  start(...args: string[]): ChildProcessWithoutNullStreams
  remove(): Promise<void>
}

export type HereOptions = {
  /** Output says that it is a terminal of this width. */
  columns?: number
  /** Called with all that was written so far. */
  onOutput?: (stdout: string, stderr: string) => void
}

export async function runHere(
  args: string[],
  env: MainInput['env'],
  options: HereOptions = {},
): Promise<Ended> {
  const { columns, onOutput } = options
  const written = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof written): OutputStream => ({
    write: (text) => {
      written[name] += text
      onOutput?.(written.stdout, written.stderr)
    },
    ...(columns && { isTTY: true, columns }),
  })
  const code = await runCommand({ args, env, stdout: stream('stdout'), stderr: stream('stderr') })
  return { code, ...written }
}

export function launch(args: string[], env: Record<string, string>): Ended {
  const { status, stdout, stderr, error } = spawnSync(BIN, args, { encoding: 'utf8', env })
  if (error) throw error
  return { code: status, stdout, stderr }
}

export function environment(home: string): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: home, TIDEMARK_HOME: home, TZ: 'UTC' }
}

export function sqliteHome(): TestHome {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-jobs-'))
  return homeAt({
    name: 'SQLite',
    path,
    url: `sqlite:${join(path, 'ledger.db')}`,
    removeDatabase: async () => {},
  })
}

export async function postgresHome(): Promise<TestHome> {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-jobs-'))
  const database = await freshDatabase()
  writeFileSync(join(path, 'config.toml'), `[ledger]\nurl = ${JSON.stringify(database.url)}\n`)
  return homeAt({ name: 'PostgreSQL', path, url: database.url, removeDatabase: () => database.drop() })
}

function homeAt(
  input: Pick<TestHome, 'name' | 'path' | 'url'> & { removeDatabase: () => Promise<void> },
): TestHome {
  const { name, path, url } = input
  const run = (...args: string[]): Promise<Ended> => runHere(args, environment(path))
  return {
    name,
    path,
    url,
    run,
    async json<T>(...args: string[]): Promise<T> {
      const ended = await run(...args, '--json')
      assert.equal(ended.stderr, '', `stderr of ${args.join(' ')}`)
      return JSON.parse(ended.stdout) as T
    },
    launch: (...args) => launch(args, environment(path)),
    start: (...args) => spawn(BIN, args, { env: environment(path) }),
    async remove() {
      rmSync(path, { recursive: true, force: true })
      await input.removeDatabase()
    },
  }
}

/** Wall time that is behind by so much. */
export function clockBehind(ms: number): Clock {
  return { ...systemClock, now: () => systemClock.now() - ms }
}

export const LEASE_MS = 600_000
export const ESCAPES = '\u001b[2J\u001b]0;owned\u0007\u202e'

/** Numbers of the jobs that tests ask about. */
export type Filled = {
  list: number
  fetches: number[]
  seal: number
  later: number
  failed: number
  dependent: number
  ready: number
  held: number
  orphan: number
  worker: number
}

/** What the ledger of `fillLedger` holds, two hours old except for what is held right now. */
export async function fillLedger(url: string): Promise<Filled> {
  const ledger = await openLedger(url, { clock: clockBehind(2 * 3_600_000) })
  try {
    const filled = await fill(ledger)
    return { ...filled, ...(await holdSome(url)) }
  } finally {
    await ledger.close()
  }
}

type Past = Omit<Filled, 'held' | 'orphan' | 'worker'>

async function fill(ledger: Ledger): Promise<Past> {
  const ann = await ledger.stream('mail:ann')
  const bob = await ledger.stream('mail:bob')
  const owner = await ledger.register({ ...deadProcess(), name: 'past' }, LEASE_MS)
  const [list] = await ledger.write({
    segments: [{ streamId: ann.id, from: 0, to: 100, mark: '2026-01', label: 'January', ref: 'january' }],
    jobs: [job('mail.list', { streamId: ann.id, segment: 'january', payload: '{"month":"2026-01"}' })],
  })
  const [listing] = await claim(ledger, owner, 'mail.list')
  const children = [1, 2, 3].map((n) =>
    job('mail.fetch', { streamId: ann.id, segment: listing!.segmentId, payload: JSON.stringify({ n }) }),
  )
  await settle(ledger, owner, {
    job: listing!,
    event: 'succeed',
    work: { counts: [{ segment: listing!.segmentId!, listed: 3, seal: true }], jobs: children },
  })
  const fetches = await claim(ledger, owner, 'mail.fetch')
  await settleFetches(ledger, owner, fetches)
  const [failed, dependent] = await failOne(ledger, owner)
  const [later, seal, ready] = await ledger.write({
    jobs: [
      job('mail.fetch', {
        streamId: bob.id,
        runAt: systemClock.now() + 180_000,
        ref: 'later',
        payload: '{"folder":"inbox","password":"hunter2"}',
      }),
      job('mail.seal', { streamId: bob.id, after: ['later', 'ready'], key: 'seal bob' }),
      job('mail.read', {
        streamId: bob.id,
        ref: 'ready',
        lane: 'bulk',
        payload: JSON.stringify({ text: ESCAPES }),
      }),
    ],
  })
  await ledger.retire(owner)
  return {
    list: list!.id,
    fetches: fetches.map(({ id }) => id),
    seal: seal!.id,
    later: later!.id,
    failed: failed!,
    dependent: dependent!,
    ready: ready!.id,
  }
}

/** One stored, one gone, one bad: the segment settles and the mark moves. */
async function settleFetches(ledger: Ledger, owner: number, fetches: readonly ClaimedJob[]): Promise<void> {
  const segment = fetches[0]!.segmentId!
  await settle(ledger, owner, {
    job: fetches[0]!,
    event: 'succeed',
    work: { counts: [{ segment, stored: 1 }] },
  })
  await settle(ledger, owner, {
    job: fetches[1]!,
    event: 'skip',
    note: { text: 'gone', code: 'gone' },
    work: { counts: [{ segment, gone: 1 }] },
  })
  await settle(ledger, owner, {
    job: fetches[2]!,
    event: 'skip',
    note: { text: 'isolated as bad', code: 'bad' },
    bad: [{ item: `message 3${ESCAPES}`, reason: 'no date', errorKind: 'permanent', payload: '{"n":3}' }],
  })
}

async function failOne(ledger: Ledger, owner: number): Promise<[failed: number, dependent: number]> {
  const [first, second] = await ledger.write({
    jobs: [job('demo.fail', { ref: 'first' }), job('demo.after', { after: ['first'], onDepFailure: 'fail' })],
  })
  const error = { kind: 'transient' as const, message: `connection reset ${ESCAPES}` }
  const [once] = await claim(ledger, owner, 'demo.fail')
  await settle(ledger, owner, { job: once!, event: 'retry', runAt: null, error })
  const [twice] = await claim(ledger, owner, 'demo.fail')
  await settle(ledger, owner, {
    job: twice!,
    event: 'fail',
    error: { kind: 'permanent', message: 'no such folder' },
  })
  return [first!.id, second!.id]
}

/** One job held by this very process, one by a process that has ended. */
async function holdSome(url: string): Promise<Pick<Filled, 'held' | 'orphan' | 'worker'>> {
  const ledger = await openLedger(url)
  try {
    const worker = await ledger.register({ ...processIdentity(), name: 'tester' }, LEASE_MS)
    const ghost = await ledger.register({ ...deadProcess(), name: 'ghost' }, LEASE_MS)
    const [held, orphan] = await ledger.write({ jobs: [job('demo.hold', {}), job('demo.ghost', {})] })
    const [holding] = await claim(ledger, worker, 'demo.hold')
    const progress = JSON.stringify({ done: 1_500_000, total: 6_000_000, unit: 'bytes', label: 'uploading' })
    await ledger.noteProgress(worker, [{ id: holding!.id, attempt: holding!.attempt, text: progress }])
    await claim(ledger, ghost, 'demo.ghost')
    return { held: held!.id, orphan: orphan!.id, worker }
  } finally {
    await ledger.close()
  }
}

export function job(kind: string, more: Partial<NewJob>): NewJob {
  return { kind, payload: '{}', ...more }
}

export async function claim(ledger: Ledger, owner: number, kind: string): Promise<ClaimedJob[]> {
  const room = { interactive: 100, bulk: 100 }
  const { claimed } = await ledger.cycle({ owner, claim: { owner, room, kinds: new Set([kind]) } })
  return claimed
}

export async function settle(ledger: Ledger, owner: number, settlement: Settlement): Promise<void> {
  const { settled } = await ledger.cycle({ owner, settle: [settlement] })
  const [result] = settled
  if (result?.status === 'error') throw result.error
  assert.equal(result?.status, 'held')
}

/** A process of this machine that has certainly ended. */
function deadProcess(): ReturnType<typeof processIdentity> {
  const { pid } = spawnSync('true')
  return { ...processIdentity(), pid, pidStart: '1' }
}
