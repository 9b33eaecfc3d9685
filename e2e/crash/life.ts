/**
 * The life of one ledger under the harness: processes work on it and are killed, one after the other; after each
 * death the oracle looks at it; the last process finishes, and the end is compared with an undisturbed run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLibsql } from '../../scripts/libsql.ts'
import { freshDatabase } from '../../scripts/test-database.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { CommitPoint } from '../../src/ledger/cycle.ts'
import type { ChildOptions } from './child-options.ts'
import { Child, type Ended } from './child-process.ts'
import { checkEnd, checkInstant, checkSince, finalState } from './oracle.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'
import type { SourceSize } from './source.ts'

/** Those on which all of the short forms run; libSQL has a short form of its own. */
export const DATABASES = ['sqlite', 'postgres'] as const
export type Database = (typeof DATABASES)[number] | 'libsql'

/** At the n-th time at a commit point; or so long after the process was started, or after its n-th tick. */
export type Kill = { point: CommitPoint; hit: number } | { afterMs: number; tick?: number }

export const LEASE_MS = 1_500
const WORKERS = 8
const PROBLEMS_SHOWN_MAX = 12
const DIFFERENCES_SHOWN_MAX = 6

/** `restart`: of a server that holds nothing else, as a crash of it does: no good-bye. */
export type Place = { url: string; remove(): Promise<void>; restart?(): Promise<void> }

/** A ledger that does not exist yet. */
export async function freshPlace(database: Database): Promise<Place> {
  if (database === 'postgres') {
    const { url, drop } = await freshDatabase()
    return { url, remove: drop }
  }
  if (database === 'libsql') {
    const { url, stop, restart } = await startLibsql()
    return { url, remove: stop, restart }
  }
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-crash-'))
  return {
    url: `sqlite:${join(folder, 'ledger.db')}`,
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** What an undisturbed run looks like; the measure for all others. */
export type Reference = { state: string[]; hits: Partial<Record<CommitPoint, number>>; ms: number }

export class Life {
  readonly url: string
  readonly #size: SourceSize
  #last: Snapshot | undefined

  constructor(url: string, size: SourceSize) {
    this.url = url
    this.#size = size
  }

  start(options: Partial<ChildOptions> = {}): Child {
    return new Child({ ledger: this.url, size: this.#size, leaseMs: LEASE_MS, workers: WORKERS, ...options })
  }

  /** One process until it is done, or is killed. */
  async run(kill?: Kill, options: Partial<ChildOptions> = {}): Promise<Ended> {
    const child = this.start({ ...options, kill: kill && 'point' in kill ? kill : undefined })
    const cancelKill = kill && 'afterMs' in kill ? killLater(child, kill) : () => {}
    const ended = await child.ended
    cancelKill()
    return kill && ended.signal === 'SIGKILL' && !ended.hung ? ended : this.finished(child)
  }

  /** Throws unless the process ends by itself, and well. */
  async finished(child: Child): Promise<Ended> {
    const ended = await child.ended
    if (ended.hung) throw new Error(await this.#hang(ended))
    if (ended.code !== 0)
      throw new Error(`the process ended with ${ended.code ?? ended.signal}: ${ended.stderr}`)
    return ended
  }

  async #hang(ended: Ended): Promise<string> {
    const now = await takeSnapshot(this.url)
    const open = now?.jobs.filter(({ state }) => state === 'pending' || state === 'claimed') ?? []
    const lines = open.map((job) => JSON.stringify(job))
    return [
      `the process hung for ${Math.round(ended.ms)} ms: ${JSON.stringify(ended.sayings)}`,
      'open jobs:',
      ...lines,
    ].join('\n  ')
  }

  /** Throws if anything is wrong at this instant. */
  async look(what: string): Promise<Snapshot | undefined> {
    const now = await takeSnapshot(this.url)
    if (!now) return undefined
    const problems = [...checkInstant(this.#size, now), ...(this.#last ? checkSince(this.#last, now) : [])]
    this.#last = now
    refuse(what, problems)
    return now
  }

  /** Throws unless everything is done, right, and the same as without disturbance. */
  async judge(what: string, reference?: Reference): Promise<string[]> {
    const end = await this.look(what)
    if (!end) throw new Error(`${what}: there is no ledger`)
    refuse(what, checkEnd(this.#size, end))
    const state = finalState(end)
    const differences = reference ? difference(reference.state, state) : []
    if (differences.length > 0) {
      const why = end.errors.map(({ message, n }) => `jobs failed ${n} times: ${message}`)
      refuse(`${what}, compared with an undisturbed run`, [
        ...differences.slice(0, DIFFERENCES_SHOWN_MAX),
        ...why,
      ])
    }
    return state
  }
}

function killLater(child: Child, { tick = 0, afterMs }: { tick?: number; afterMs: number }): () => void {
  let cancel = (): void => {}
  const arm = (): void => {
    cancel = systemClock.timer(afterMs, () => child.signal('SIGKILL'), { keepAlive: true })
  }
  if (tick === 0) arm()
  else {
    child.onSaying = (saying) => {
      if (saying.say === 'tick' && saying.n === tick) arm()
    }
  }
  return () => cancel()
}

export async function undisturbed(url: string, size: SourceSize): Promise<Reference> {
  const life = new Life(url, size)
  const ended = await life.run()
  const done = ended.sayings.find((saying) => saying.say === 'done')
  return { state: await life.judge('an undisturbed run'), hits: done?.hits ?? {}, ms: ended.ms }
}

/** A whole life: each kill in turn, a look after each, then to the end. Returns the kills that came in time. */
export async function surviveKills(o: {
  url: string
  size: SourceSize
  kills: readonly Kill[]
  reference: Reference
}): Promise<Kill[]> {
  const life = new Life(o.url, o.size)
  const landed: Kill[] = []
  for (const [index, kill] of o.kills.entries()) {
    const ended = await life.run(kill)
    await life.look(`after kill ${index + 1} of ${JSON.stringify(o.kills)}`)
    if (ended.signal !== 'SIGKILL') break
    landed.push(kill)
  }
  await life.run()
  await life.judge(`after ${JSON.stringify(o.kills)}`, o.reference)
  return landed
}

function difference(wanted: readonly string[], found: readonly string[]): string[] {
  const [all, there] = [new Set(wanted), new Set(found)]
  return [
    ...wanted.filter((line) => !there.has(line)).map((line) => `missing: ${line}`),
    ...found.filter((line) => !all.has(line)).map((line) => `unexpected: ${line}`),
  ]
}

function refuse(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX)
  const more = problems.length > shown.length ? [`… and ${problems.length - shown.length} more`] : []
  throw new Error([`${what}:`, ...shown, ...more].join('\n  '))
}
