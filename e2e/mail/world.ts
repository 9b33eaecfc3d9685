/** A simulated Gmail, a home with its account connected, and the command line as a process that can be killed. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openVault } from '../../src/base/vault.ts'
import { runHere } from '../../src/cli/jobs/jobs.suite.ts'
import { GMAIL_SCOPES } from '../../src/cloud/gmail/auth.ts'
import { connectGmail } from '../../src/cloud/simulated-accounts.suite.ts'
import { Accounts } from '../../src/ledger/accounts.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { GmailAccountOptions } from '../../src/sim/gmail/gmail.ts'
import { type Sim, type SimOptions, startSim } from '../../src/sim/start.ts'

const TIDEMARK = fileURLToPath(new URL('../../bin/tidemark', import.meta.url))
export const ADDRESS = 'ann@example.com'
const LOOK_MS = 5
/** Every month is listed for itself, and every year is a file: ten years of them take a sync twice as long as three. */
const YEARS_DEFAULT = 3

export type Ended = { code: number | null; stdout: string; stderr: string }

export type WorldOptions = Omit<SimOptions, 'gmail'> & {
  messages: number
  years?: number
  fromMs?: number
  settings?: Record<string, string>
  /** A file in the home if left out. */
  ledgerUrl?: string
  accounts?: readonly GmailAccountOptions[]
  /** False: nobody has connected anything yet. */
  isConnected?: boolean
}

export class World {
  readonly sim: Sim
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  readonly ledgerUrl: string
  /** Ids that were there before anything began. */
  readonly initial: ReadonlySet<string>
  readonly #children = new Set<ChildProcess>()

  private constructor(sim: Sim, home: string, { settings, ledgerUrl }: WorldOptions) {
    this.sim = sim
    this.home = home
    this.ledgerUrl = ledgerUrl ?? `sqlite:${join(home, 'ledger.db')}`
    this.initial = new Set([...sim.gmail.mailbox(ADDRESS).dump()].map(({ id }) => id))
    this.env = {
      ...process.env,
      TIDEMARK_HOME: home,
      TIDEMARK_GMAIL_API_URL: sim.baseUrl,
      TIDEMARK_GMAIL_TOKEN_URL: sim.gmail.tokenUrl,
      TIDEMARK_GMAIL_AUTH_URL: sim.gmail.authUrl,
      TIDEMARK_GMAIL_REVOKE_URL: sim.gmail.revokeUrl,
      TIDEMARK_GMAIL_UNITS_PER_MINUTE: '100000000',
      TIDEMARK_GMAIL_REQUESTS_PER_SECOND_START: '1000',
      TIDEMARK_GMAIL_REQUESTS_PER_SECOND_MAX: '10000',
      // These are about the archive. Reading it into the index is a third of what a sync of a few messages costs.
      TIDEMARK_MAIL_INDEX: 'off',
      ...(ledgerUrl !== undefined && { TIDEMARK_LEDGER_URL: ledgerUrl }),
      ...settings,
    }
  }

  static async start(options: WorldOptions): Promise<World> {
    const {
      messages,
      years = YEARS_DEFAULT,
      fromMs,
      settings: _settings,
      ledgerUrl: _ledgerUrl,
      accounts,
      isConnected = true,
      ...rest
    } = options
    const sim = await startSim({
      ...rest,
      gmail: {
        quota: { unitsPerMinute: null },
        accounts: accounts ?? [
          { address: ADDRESS, messages, years, ...(fromMs === undefined ? {} : { fromMs }) },
        ],
      },
    })
    const home = mkdtempSync(join(tmpdir(), 'tidemark-mail-'))
    const world = new World(sim, home, options)
    if (isConnected) for (const { address } of sim.gmail.accounts) await world.connect(address)
    return world
  }

  /** As `account add` would, without a person to ask. */
  async connect(address: string, scopes: readonly string[] = [GMAIL_SCOPES.full]): Promise<void> {
    const ledger = await openLedger(this.ledgerUrl)
    try {
      const accounts = await Accounts.open(ledger)
      const vault = await openVault({ env: this.env, home: this.home })
      const settings = { spam: true, trash: true }
      await connectGmail({ accounts, vault, sim: this.sim }, address, { scopes, settings })
    } finally {
      await ledger.close()
    }
  }

  start(args: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
    const child = spawn(TIDEMARK, [...args], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#children.add(child)
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (text: Buffer) => (stdout += text.toString()))
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
    const ended = once(child, 'close').then(([code]) => {
      this.#children.delete(child)
      return { code: code as number | null, stdout, stderr }
    })
    return { child, ended }
  }

  /**
   * In this process, which has loaded its modules already: a command as a process of its own takes most of a second of
   * a core before it begins. `start` and `killAfter` are for what needs a process, and each command of docs/mail.md is
   * started as one in its test.
   */
  run(...args: string[]): Promise<Ended> {
    // Meant for a process that starts with them.
    if (this.env.NODE_OPTIONS !== undefined) return this.start(args).ended
    return runHere(args, this.env)
  }

  /** Of the server that was started in this home. */
  get token(): string {
    return readFileSync(join(this.home, 'server.token'), 'utf8').trim()
  }

  /** Requests that the simulator has answered. */
  get served(): number {
    return this.sim.log.served
  }

  /** Runs the command and kills it once `requests` more were answered; true if it ended before that. */
  async killAfter(args: readonly string[], requests: number): Promise<Ended | null> {
    const until = this.served + requests
    const { child, ended } = this.start(args)
    let result: Ended | null = null
    void ended.then((end) => {
      result = end
    })
    while (result === null && this.served < until) await pass(LOOK_MS)
    if (result !== null) return result
    child.kill('SIGKILL')
    await ended
    return null
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await this.sim.close()
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** Makes worlds for the tests of a file, and closes them behind the last. */
export function worldsOf(defaults: Partial<WorldOptions> = {}): {
  worldOf: (options: Partial<WorldOptions>) => Promise<World>
  syncedWorld: (options: Partial<WorldOptions>) => Promise<World>
} {
  const worlds: World[] = []
  after(async () => {
    for (const world of worlds) await world.close()
  })
  const worldOf = async (options: Partial<WorldOptions>): Promise<World> => {
    const world = await World.start({ messages: 0, ...defaults, ...options })
    worlds.push(world)
    return world
  }
  const syncedWorld = async (options: Partial<WorldOptions>): Promise<World> => {
    const world = await worldOf(options)
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    return world
  }
  return { worldOf, syncedWorld }
}
