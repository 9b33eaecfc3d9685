/**
 * Connections of one role, as many as it may have. Who finds none free waits for one, in the order in which they came
 * and for as long as it takes: that others are busy says nothing about the server. Only connecting has a
 * time limit, and only a connection that cannot be had is an outage.
 */
import pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { Semaphore } from '../semaphore.ts'
import { clientConfig, cutOff, type Role, sessionSetup, type Target } from './connection.ts'
import { connectError } from './errors.ts'

const IDLE_MS_MAX = 60_000
/** What is under way when the ledger is closed may end by itself for so long. */
export const CLOSE_MS_MAX = 2_000

export class ConnectionPool {
  readonly #target: Target
  readonly #pool: pg.Pool
  readonly #clients = new Set<pg.ClientBase>()
  readonly #permits: Semaphore
  #closed = false

  constructor(target: Target, role: Role, max: number) {
    this.#target = target
    this.#permits = new Semaphore(max)
    const setup = sessionSetup(target, role)
    this.#pool = new pg.Pool({
      ...clientConfig(target),
      max,
      idleTimeoutMillis: IDLE_MS_MAX,
      onConnect: async (client: pg.ClientBase): Promise<void> => {
        client.on('error', () => {}) // see connect()
        await client.query(setup)
      },
    })
    // The pool has already dropped an idle connection that broke.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => this.#clients.add(client))
    this.#pool.on('remove', (client) => this.#clients.delete(client))
  }

  async connect(): Promise<pg.PoolClient> {
    if (this.#closed) throw closedError()
    await this.#permits.acquire()
    try {
      return await this.#pool.connect()
    } catch (thrown) {
      this.#permits.release()
      throw connectError(thrown, this.#target.where)
    }
  }

  release(client: pg.PoolClient, broken = false): void {
    client.release(broken)
    this.#permits.release()
  }

  /** A server that does not answer is not waited for. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#permits.refuseWaiting(closedError())
    const cancel = systemClock.timer(CLOSE_MS_MAX, () => this.#cut(), { keepAlive: true })
    await this.#pool.end()
    cancel()
  }

  #cut(): void {
    for (const client of this.#clients) cutOff(client)
  }
}

function closedError(): TidemarkError {
  return new TidemarkError('The ledger is closed.', { kind: 'bug' })
}
