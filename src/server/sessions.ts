/**
 * Who is signed in: random ids, kept in memory as hashes until they expire. Bounded; the oldest go first. A new
 * start of the server signs everyone out.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'

const DAY_MS = 86_400_000
/** Not used for this long. */
const IDLE_MS = 7 * DAY_MS
const AGE_MS = 30 * DAY_MS
const SESSIONS_MAX = 1_000
const ID_BYTES = 32
/** Told apart from the token, so that a page whose session is over is not taken for somebody who guesses. */
const PREFIX = 'session-'

/** Whose a session is, and the personal token for which it was given, with which it ends. */
export type SessionOf = { userId: number; tokenId?: number | undefined }

type Session = { of: SessionOf; startedMs: number; usedMs: number }

export class Sessions {
  readonly #clock: Clock
  readonly #sessions = new Map<string, Session>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#sessions.size
  }

  /** A new session's id, which is nowhere else. */
  start(of: SessionOf): string {
    this.#dropExpired()
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size >= SESSIONS_MAX && oldest !== undefined) this.#sessions.delete(oldest)
    const id = PREFIX + randomBytes(ID_BYTES).toString('base64url')
    const nowMs = this.#clock.now()
    this.#sessions.set(hashOf(id), { of, startedMs: nowMs, usedMs: nowMs })
    return id
  }

  /** Whose it is; undefined where it is over. */
  find(id: string): SessionOf | undefined {
    const key = hashOf(id)
    const session = this.#sessions.get(key)
    if (!session) return undefined
    if (this.#isOver(session)) {
      this.#sessions.delete(key)
      return undefined
    }
    session.usedMs = this.#clock.now()
    return session.of
  }

  end(id: string): void {
    this.#sessions.delete(hashOf(id))
  }

  #isOver({ startedMs, usedMs }: Session): boolean {
    const nowMs = this.#clock.now()
    return nowMs - usedMs > IDLE_MS || nowMs - startedMs > AGE_MS
  }

  #dropExpired(): void {
    for (const [key, session] of this.#sessions) if (this.#isOver(session)) this.#sessions.delete(key)
  }
}

export function isSessionId(text: string): boolean {
  return text.startsWith(PREFIX)
}

/** Takes the same time whatever the two have in common, and whatever their lengths. */
export function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
