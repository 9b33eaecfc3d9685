/** A home of Tidemark with one account connected to a simulated Gmail, and the sync as a process in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/base/clock.ts'
import { openVault } from '../../src/base/vault.ts'
import { GMAIL_SCOPES } from '../../src/cloud/gmail/auth.ts'
import { Accounts, accountKey } from '../../src/ledger/accounts.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { Processes, Running } from '../processes.ts'
import { ADDRESS, type Gmail } from './gmail.ts'

/** So high that they never hold anything up. */
export const UNBOUNDED = {
  TIDEMARK_GMAIL_UNITS_PER_MINUTE: '100000000',
  TIDEMARK_GMAIL_REQUESTS_PER_SECOND_START: '10000',
  TIDEMARK_GMAIL_REQUESTS_PER_SECOND_MAX: '10000',
}

export type HomeOptions = {
  folder: string
  processes: Processes
  gmail: Gmail
  settings: Record<string, string>
}

export class Home {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  readonly #processes: Processes

  private constructor(folder: string, env: NodeJS.ProcessEnv, processes: Processes) {
    this.folder = folder
    this.env = env
    this.#processes = processes
  }

  static async create({ folder, processes, gmail, settings }: HomeOptions): Promise<Home> {
    const path = mkdtempSync(join(folder, 'home-'))
    const env = {
      ...process.env,
      TIDEMARK_HOME: path,
      TIDEMARK_GMAIL_API_URL: gmail.at.baseUrl,
      TIDEMARK_GMAIL_TOKEN_URL: gmail.at.tokenUrl,
      TIDEMARK_GMAIL_AUTH_URL: gmail.at.authUrl,
      ...settings,
    }
    await connect(path, env, gmail)
    return new Home(path, env, processes)
  }

  sync(msMax: number, env: Record<string, string> = {}): Running {
    return this.#processes.tidemark(['mail', 'sync', '--json'], { env: { ...this.env, ...env }, msMax })
  }

  /** Runs a sync to its end. */
  async synced(msMax: number, env: Record<string, string> = {}): Promise<{ peakMb: number }> {
    const running = this.sync(msMax, env)
    const [peakMb, { code, signal, stderr }] = await Promise.all([running.watchMemory(), running.ended])
    if (code !== 0) throw new Error(`the sync ended with ${code ?? signal}: ${stderr.slice(-1_000)}`)
    return { peakMb }
  }

  /** What the ledger says about the first sync: from just before its first request to its last commit. */
  timing(): { ms: number; stored: number } {
    const [row] = this.#read(
      `SELECT (SELECT min(claimed_at) FROM jobs WHERE kind = 'mail.plan') AS from_ms,
         (SELECT max(settled_at) FROM jobs WHERE kind = 'mail.fetch') AS to_ms,
         (SELECT sum(stored) FROM segments) AS stored`,
    )
    return { ms: Number(row?.to_ms) - Number(row?.from_ms), stored: Number(row?.stored) }
  }

  archiveId(): string {
    return String(this.#read('SELECT archive_id FROM mail_boxes')[0]?.archive_id)
  }

  /** Ids by lower-case name. */
  labels(): Record<string, string> {
    const rows = this.#read('SELECT id, name FROM mail_labels')
    return Object.fromEntries(rows.map(({ id, name }) => [String(name).toLowerCase(), String(id)]))
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #read(sql: string): Record<string, unknown>[] {
    const db = new DatabaseSync(join(this.folder, 'ledger.db'), { readOnly: true })
    try {
      return db.prepare(sql).all()
    } finally {
      db.close()
    }
  }
}

/** As `account add` would, without a person to ask. */
async function connect(home: string, env: NodeJS.ProcessEnv, { at }: Gmail): Promise<void> {
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  try {
    const accounts = await Accounts.open(ledger)
    const vault = await openVault({ env, home })
    const { clientId, clientSecret } = at
    const refreshToken = at.accounts[0]!.refreshToken
    const secret = {
      kind: 'oauth',
      clientId,
      clientSecret,
      refreshToken,
      scopes: [GMAIL_SCOPES.full],
      obtainedAtMs: systemClock.now(),
    }
    const account = { service: 'gmail', name: ADDRESS }
    const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
    await accounts.add({ ...account, settings: { spam: true, trash: true }, sealed })
  } finally {
    await ledger.close()
  }
}
