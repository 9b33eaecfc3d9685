/**
 * Whether this process lives (/healthz) and whether it is of use (/readyz); 503 when it is not so. Anyone may ask, and
 * hears nothing but that; whoever brings the token also hears the reasons, and what was seen.
 */
import type { Context } from 'hono'
import type { Services } from '../app/services.ts'
import type { CancelTimer, Clock } from '../base/clock.ts'
import { asTidemarkError } from '../base/errors.ts'
import type { App, AppEnv } from './app-env.ts'
import type { Security } from './security.ts'

const LOOK_MS = 500
/** Twenty looks: the last ten seconds. */
const LOOKS_KEPT = 20
/** Blocked for this long, nothing else was answered either. */
const BLOCKED_MS = 5_000
const DATABASE_MS = 2_000
/** Reading the marks goes through all segments; probes come every few seconds. */
const MARKS_KEPT_MS = 30_000

type Reason = { code: string; text: string }

export type Health = { close(): void }

export function addHealth(
  app: App,
  services: Pick<Services, 'engine' | 'ledger' | 'role' | 'clock'>,
  security: Pick<Security, 'identify'>,
): Health {
  const { clock } = services
  const loop = watchLoop(clock)
  const marks = cachedMarks(services)
  app.get('/healthz', (c) => {
    const blockedMs = Math.round(loop.worstMs())
    const isBlocked = blockedMs > BLOCKED_MS
    const reasons = isBlocked
      ? [{ code: 'loop-blocked', text: `The process did nothing for ${seconds(blockedMs)} just now.` }]
      : []
    return answer(c, security, { reasons, about: { loopDelayMs: blockedMs } })
  })
  app.get('/readyz', async (c) => {
    const reasons: Reason[] = [...engineReasons(services)]
    const found = await databaseLook(services)
    reasons.push(...found.reasons)
    const markMovedAt = found.workers === undefined ? marks.last() : await marks.read()
    return answer(c, security, {
      reasons,
      about: {
        role: services.role,
        engine: services.engine.state,
        database: found.workers === undefined ? 'away' : 'ok',
        databaseMs: found.ms,
        heartbeatAgeMs: found.heartbeatAgeMs,
        workers: found.workers ?? null,
        markMovedAt,
        markMovedAgeMs: markMovedAt === null ? null : Math.max(0, services.ledger.now() - markMovedAt),
      },
    })
  })
  return { close: loop.close }
}

async function answer(
  c: Context<AppEnv>,
  security: Pick<Security, 'identify'>,
  { reasons, about }: { reasons: readonly Reason[]; about: Record<string, unknown> },
): Promise<Response> {
  c.header('cache-control', 'no-store')
  const isWell = reasons.length === 0
  const status = isWell ? 'ok' : 'unavailable'
  // Whose token it is cannot be asked of a database that is away; the server's own needs none.
  const identity = await security.identify(c).catch(() => undefined)
  const isKnown = identity?.user.role === 'admin'
  return c.json(isKnown ? { status, reasons, ...about } : { status }, isWell ? 200 : 503)
}

function engineReasons({ engine, role }: Pick<Services, 'engine' | 'role'>): Reason[] {
  if (role === 'web' || engine.state === 'started') return []
  return [{ code: 'engine', text: `The engine is ${engine.state}, not started: no job runs here.` }]
}

type DatabaseLook = {
  reasons: Reason[]
  ms: number
  workers?: number
  heartbeatAgeMs: number | null
}

/** One read tells whether the database answers, and whether it still hears from this process. */
async function databaseLook({
  engine,
  ledger,
  role,
  clock,
}: Pick<Services, 'engine' | 'ledger' | 'role' | 'clock'>): Promise<DatabaseLook> {
  const fromMs = clock.monotonicMs()
  try {
    const workers = await within(clock, DATABASE_MS, ledger.workers())
    const ms = Math.round(clock.monotonicMs() - fromMs)
    const nowMs = ledger.now()
    const alive = workers.filter((worker) => worker.lease_until > nowMs).length
    const own = workers.find(({ id }) => id === engine.owner)
    const heartbeatAgeMs = own ? Math.max(0, nowMs - own.heartbeat_at) : null
    const reasons: Reason[] = []
    if (role !== 'web' && engine.state === 'started' && !(own && own.lease_until > nowMs)) {
      const since =
        heartbeatAgeMs === null ? 'It is not known there' : `The last was ${seconds(heartbeatAgeMs)} ago`
      reasons.push({
        code: 'heartbeat',
        text: `The database has no fresh heartbeat of this process. ${since}.`,
      })
    }
    return { reasons, ms, workers: alive, heartbeatAgeMs }
  } catch (thrown) {
    const { code = 'ledger-down' } = asTidemarkError(thrown)
    const ms = Math.round(clock.monotonicMs() - fromMs)
    // Its message may name hosts and files, which is nobody's business here.
    const reason = { code, text: `The database does not answer (asked for ${seconds(ms)}).` }
    return { reasons: [reason], ms, heartbeatAgeMs: null }
  }
}

function cachedMarks({ ledger, clock }: Pick<Services, 'ledger' | 'clock'>): {
  read(): Promise<number | null>
  last(): number | null
} {
  let last: number | null = null
  let readMs = Number.NEGATIVE_INFINITY
  return {
    last: () => last,
    async read() {
      if (clock.monotonicMs() - readMs < MARKS_KEPT_MS) return last
      try {
        const streams = await within(clock, DATABASE_MS, ledger.streams())
        last = streams.reduce<number | null>(
          (max, { moved_at }) => Math.max(max ?? 0, moved_at ?? 0) || null,
          null,
        )
        readMs = clock.monotonicMs()
      } catch {
        // Only told, not decided by: what was known last is told.
      }
      return last
    },
  }
}

/** How late timers are: what blocks the event loop makes them late. */
function watchLoop(clock: Clock): { worstMs(): number; close: () => void } {
  const late: number[] = []
  let dueMs = 0
  let cancel: CancelTimer = () => {}
  const lookLater = (): void => {
    dueMs = clock.monotonicMs() + LOOK_MS
    cancel = clock.timer(LOOK_MS, () => {
      late.push(Math.max(0, clock.monotonicMs() - dueMs))
      if (late.length > LOOKS_KEPT) late.shift()
      lookLater()
    })
  }
  lookLater()
  return {
    worstMs: () => Math.max(0, clock.monotonicMs() - dueMs, ...late),
    close: () => cancel(),
  }
}

async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  let cancel: CancelTimer = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = clock.timer(ms, () => reject(new Error(`no answer within ${ms} ms`)))
  })
  // What comes after the time is over is nobody's business any more.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    cancel()
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
