/** A simulated Gmail in a process of its own, as `tidemark sim` gives it, and its control API. */
import type { QuotaSettings, QuotaUsage } from '../../src/sim/quota.ts'
import { firstLine, type Processes, type Running } from '../processes.ts'

export type GmailOptions = {
  messages: number
  /** Null: no limit. */
  unitsPerMinute: number | null
  /** What the generator makes; the command line gives the mix of all kinds. */
  profile?: 'plain' | 'small'
}

export type GmailAddress = {
  baseUrl: string
  tokenUrl: string
  authUrl: string
  controlUrl: string
  clientId: string
  clientSecret: string
  accounts: { address: string; accessToken: string; refreshToken: string }[]
}

type Counts = Record<string, Record<string, number>>
export type Counters = { requests: Counts; parts: Counts; quota: Record<string, QuotaUsage> }

export const ADDRESS = 'ann@example.com'
export const SEED = 7
export const YEARS = 10
const MS_MAX = 3_600_000

export class Gmail {
  readonly at: GmailAddress
  readonly #running: Running

  constructor(at: GmailAddress, running: Running) {
    this.at = at
    this.#running = running
  }

  static async start(processes: Processes, options: GmailOptions): Promise<Gmail> {
    const { messages, unitsPerMinute, profile } = options
    if (profile !== undefined) {
      const order = { do: 'gmail', messages, unitsPerMinute, profile }
      const { ready, running } = await processes.serve<GmailAddress>(order, { msMax: MS_MAX })
      return new Gmail(ready, running)
    }
    const args = [
      ...['sim', '--json', '--account', ADDRESS, '--messages', String(messages), '--seed', String(SEED)],
      ...['--since', String(YEARS), '--units-per-minute', String(unitsPerMinute ?? 'unlimited')],
    ]
    const running = processes.tidemark(args, { env: process.env, msMax: MS_MAX })
    return new Gmail(await firstLine<GmailAddress>(running), running)
  }

  counters(): Promise<Counters> {
    return this.#control('GET', 'counters')
  }

  async resetCounters(): Promise<void> {
    await this.#control('DELETE', 'counters')
  }

  async setQuota(change: Partial<QuotaSettings>): Promise<void> {
    await this.#control('PUT', 'quota', change)
  }

  async ids(): Promise<string[]> {
    const { messages } = await this.#control<{ messages: { id: string }[] }>(
      'GET',
      `accounts/${encodeURIComponent(ADDRESS)}/dump?hashes=false`,
    )
    return messages.map(({ id }) => id)
  }

  stop(): Promise<void> {
    return this.#running.stop()
  }

  async #control<Value>(method: string, path: string, body?: object): Promise<Value> {
    const response = await fetch(`${this.at.controlUrl}/${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    })
    if (!response.ok) throw new Error(`the simulator answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as Value
  }
}
