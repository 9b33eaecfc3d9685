/**
 * Hears what other processes announce, over a connection of its own that comes back by itself.
 *
 * States: connecting → listening → (lost) → connecting … → stopped. After every gap it says `anything`,
 * because what was announced meanwhile is not known.
 */
import type pg from 'pg'
import { sleep, systemClock } from '../../base/clock.ts'
import type { Announcement } from '../contract.ts'
import { connect, hangUp, type Target } from './connection.ts'

const RECONNECT_MS = [50, 100, 250, 500, 1_000, 2_000, 5_000]
/** A connection on which nothing is ever sent may be gone without anybody having noticed. */
const PING_MS = 30_000
const PING_ANSWER_MS_MAX = 10_000

export function channelOf(target: Target): string {
  return `tidemark_${target.schema}`
}

export class Listener {
  readonly #target: Target
  readonly #instance: string
  readonly #tell: (what: Announcement | 'anything') => void
  readonly #stop = new AbortController()
  #client: pg.Client | undefined

  constructor(target: Target, instance: string, tell: (what: Announcement | 'anything') => void) {
    this.#target = target
    this.#instance = instance
    this.#tell = tell
  }

  /** Returns once it listens, or once the first attempt has failed: then it keeps trying. */
  async start(): Promise<void> {
    try {
      await this.#connect()
    } catch {
      this.#reconnect()
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('stopped listening'))
    const client = this.#client
    this.#client = undefined
    if (client) await hangUp(client)
  }

  async #connect(): Promise<void> {
    const client = await connect(this.#target, 'plain')
    if (this.#stop.signal.aborted) return hangUp(client)
    this.#client = client
    client.on('notification', (message) => this.#hear(message.payload ?? ''))
    client.once('end', () => {
      if (this.#client !== client) return
      this.#client = undefined
      this.#reconnect()
    })
    try {
      await client.query(`LISTEN "${channelOf(this.#target)}"`)
      this.#ping(client)
    } catch (thrown) {
      this.#client = undefined
      await hangUp(client)
      throw thrown
    }
  }

  /** Our own `work` is no news; our own `control` is, to the rest of this process. */
  #hear(payload: string): void {
    const [what, from] = payload.split(' ')
    if (what === 'control') this.#tell('control')
    else if (from !== this.#instance) this.#tell('work')
  }

  #ping(client: pg.Client): void {
    const answered = (): void => {
      systemClock.timer(PING_MS, () => {
        if (this.#client !== client) return
        const ping: pg.QueryConfig & { query_timeout: number } = {
          text: 'SELECT 1',
          query_timeout: PING_ANSWER_MS_MAX,
        }
        // Hanging up is what `end` is waiting for.
        client.query(ping).then(answered, () => hangUp(client))
      })
    }
    answered()
  }

  #reconnect(): void {
    const { signal } = this.#stop
    const again = async (): Promise<void> => {
      for (let tries = 0; !signal.aborted; tries++) {
        await sleep(systemClock, RECONNECT_MS[Math.min(tries, RECONNECT_MS.length - 1)]!, signal)
        try {
          await this.#connect()
        } catch {
          continue // whoever works with the ledger hears of the outage; here it is only waited out
        }
        this.#tell('anything')
        return
      }
    }
    again().catch(() => {}) // only stop() ends the waiting
  }
}
