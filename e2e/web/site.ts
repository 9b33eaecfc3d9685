/** A simulated Gmail with a connected account, and `tidemark serve` on it as a process that can go and come back. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { setTimeout as pass } from 'node:timers/promises'
import type { DoneView, Overview } from '../../src/app/schemas.ts'
import { streamOf } from '../../src/apps/mail/account.ts'
import { withToken } from '../../src/server/server.suite.ts'
import type { Sim } from '../../src/sim/start.ts'
import { ADDRESS, type Ended, World, type WorldOptions } from '../mail/world.ts'
import { signInBy } from './browser.ts'

export { ADDRESS } from '../mail/world.ts'
export const STREAM = streamOf(ADDRESS)

const LOOK_MS = 50
/** What is not there by then never comes, also on a machine that is many times too busy. */
const PATIENCE_MS = 240_000

export type SiteOptions = WorldOptions & {
  /** So many messages cannot be read, until `heal()`: they become bad items. */
  poisoned?: number
  /** More arguments for `serve`. */
  args?: readonly string[]
}

export type Delivery = {
  labelIds?: readonly string[]
  internalMs?: number
  threadId?: string
  /** False: it is not looked for until somebody asks. */
  sync?: boolean
}

/** Asks until the answer is something else than undefined, null or false; says what it waited for if that is never. */
export async function until<Value>(
  what: string,
  ask: () => Promise<Value | undefined | null | false>,
  limitMs = PATIENCE_MS,
): Promise<Value> {
  const endMs = performance.now() + limitMs
  for (;;) {
    const value = await ask()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > endMs) throw new Error(`Not within ${limitMs / 1000} s: ${what}`)
    await pass(LOOK_MS)
  }
}

export async function startSite(options: SiteOptions): Promise<Site> {
  const { poisoned = 0, args = [], ...rest } = options
  const world = await World.start(rest)
  // Spread over the mailbox, from old to new.
  const all = [...world.initial]
  const ids = Array.from(
    { length: poisoned },
    (_, at) => all[Math.floor(((at + 1) * all.length) / (poisoned + 1))]!,
  )
  for (const id of ids) world.sim.faults.poison({ id, mode: 'batch' })
  const site = new Site(world, { args, poisoned: ids })
  try {
    await site.restart()
  } catch (error) {
    await site.close()
    throw error
  }
  return site
}

type Serving = { child: ChildProcess; ended: Promise<Ended> }

export class Site {
  readonly world: World
  readonly poisoned: readonly string[]
  readonly #args: readonly string[]
  #serving: Serving | undefined
  #url = ''
  #signIn = ''

  constructor(world: World, options: { args: readonly string[]; poisoned: readonly string[] }) {
    this.world = world
    this.poisoned = options.poisoned
    this.#args = options.args
  }

  /** `http://127.0.0.1:1234`; the same after a restart. */
  get url(): string {
    return this.#url
  }

  /** That of the home: made by its first start. */
  get token(): string {
    return this.world.token
  }

  /** The address that the server printed: it signs one browser in. */
  get signIn(): string {
    return this.#signIn
  }

  get sim(): Sim {
    return this.world.sim
  }

  /** The server goes, as with Ctrl-C, or as with kill -9. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const serving = this.#serving
    this.#serving = undefined
    serving?.child.kill(signal)
    await serving?.ended
  }

  /** The server comes, on the port that it had. */
  async restart(): Promise<void> {
    await this.stop()
    const port = this.#url === '' ? '0' : new URL(this.#url).port
    const serving = this.world.start(['serve', '--port', port, '--json', ...this.#args])
    this.#serving = serving
    const ready = await readyLine(serving)
    this.#url = ready.url
    this.#signIn = ready.signIn
    signInBy(this.#url, this.token)
  }

  async get<Answer>(path: string): Promise<Answer> {
    return this.#request<Answer>(path, {})
  }

  async post<Answer>(path: string, body: unknown = {}): Promise<Answer> {
    return this.#request<Answer>(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tidemark': '1' },
      body: JSON.stringify(body),
    })
  }

  /** Where a browser loads what only who is signed in may ask for. */
  async ticket(path: string): Promise<string> {
    return (await this.post<{ href: string }>('/api/tickets', { path })).href
  }

  overview(): Promise<Overview> {
    return this.get<Overview>('/api/overview')
  }

  /** When nothing is under way and nothing waits; then the books, as they stand. */
  settled(): Promise<Overview> {
    return until('everything is settled', async () => {
      const overview = await this.overview()
      return isSettled(overview) && overview
    })
  }

  /** Mail arrives, and is looked for. Without bytes it is a letter that fits the mailbox. */
  async deliver(raw?: Buffer | string, { sync = true, ...options }: Delivery = {}): Promise<string> {
    const bytes = raw === undefined ? {} : { raw: Buffer.from(raw) }
    const message = this.sim.gmail.mutations(ADDRESS).arrive({ ...bytes, ...options }, Math.random)
    if (sync) await this.sync()
    return message.id
  }

  /** Begins a look for new mail; one that is under way already may have passed what is new. */
  async sync(): Promise<void> {
    await until('a look for new mail begins', async () => {
      const { outcome } = await this.post<DoneView>('/api/mail/sync')
      return outcome === 'done'
    })
  }

  /** What could not be read can be from now on. */
  heal(): void {
    this.sim.faults.set({ poison: [] })
  }

  async close(): Promise<void> {
    await this.stop('SIGKILL')
    await this.world.close()
  }

  async #request<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(this.#url + path, withToken(init, this.token))
    const text = await response.text()
    assert.ok(response.ok, `${path}: ${response.status} ${text}`)
    return JSON.parse(text) as Answer
  }
}

function isSettled({ streams, jobs }: Overview): boolean {
  if (jobs.ready + jobs.deps + jobs.time + jobs.claimed > 0) return false
  return (
    streams.length > 0 &&
    streams.every(
      ({ segments, settledSegments, onTheirWay }) =>
        segments > 0 && settledSegments === segments && onTheirWay === 0,
    )
  )
}

/** The first line on stdout says where it is. */
async function readyLine({ child, ended }: Serving): Promise<{ url: string; signIn: string }> {
  const line = Promise.withResolvers<string>()
  let said = ''
  child.stdout?.on('data', (text: Buffer) => {
    said += text.toString()
    const end = said.indexOf('\n')
    if (end > 0) line.resolve(said.slice(0, end))
  })
  void ended.then(({ code, stderr }) => line.reject(new Error(`serve ended with ${code}: ${stderr}`)))
  return JSON.parse(await line.promise) as { url: string; signIn: string }
}
