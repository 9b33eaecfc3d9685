/**
 * Waits for the work of some accounts. An account's work is over when nothing of it is left, and it is stuck when all
 * that is left cannot move: its stream is paused, or something is in the way that waiting will not change.
 */

import type { CliContext } from '../../../app/command.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { streamOf } from '../account.ts'
import type { Obstacle } from '../obstacles.ts'
import type { MailEngine } from './context.ts'
import type { SyncProgress } from './sync-progress.ts'

/** On a terminal, where the line is drawn over the last; elsewhere lines add up. */
const LOOK_TERMINAL_MS = 500
const LOOK_LINES_MS = 5_000
/** How soon the end is noticed, whatever is printed. */
const STEP_MS = 200
const PENDING_PAGE = 1_000
/** A server that starts again takes less; a full disk stays full. */
const LEDGER_MS_MAX = 60_000

export type Settling = {
  names: readonly string[]
  stop: AbortSignal
  /** How long Gmail may be out of reach; without end where it is undefined. */
  patienceMs: number | undefined
}

/** Until nothing is left to do for these accounts, nothing of it can move, or somebody says stop. */
export async function settle(
  { output }: CliContext,
  opened: MailEngine,
  { progress, ...settling }: Settling & { progress: SyncProgress },
): Promise<void> {
  const { engine } = opened
  const everyMs = output.isTerminal ? LOOK_TERMINAL_MS : LOOK_LINES_MS
  let drained = false
  const done = engine.drained().then(() => {
    drained = true
  })
  let shownMs = 0
  while (!drained && !settling.stop.aborted) {
    if (systemClock.monotonicMs() - shownMs >= everyMs) {
      shownMs = systemClock.monotonicMs()
      await progress.show()
    }
    checkLedger(progress, settling)
    if (!(await canMove(opened, settling))) return
    await Promise.race([done, sleep(systemClock, STEP_MS, settling.stop).catch(() => {})])
  }
}

function checkLedger({ ledger }: SyncProgress, { patienceMs }: Settling): void {
  const { trouble } = ledger
  if (!trouble || patienceMs === undefined || trouble.forMs < Math.min(patienceMs, LEDGER_MS_MAX)) return
  throw new TidemarkError(trouble.detail, {
    kind: 'transient',
    code: 'ledger-down',
    hint: 'Check the disk it is on (space, health, mount), or its server. Nothing is lost: the next tidemark mail sync goes on where this one was.',
  })
}

/** Others may have work too, or be paused with theirs: only these accounts are waited for. */
async function canMove(opened: MailEngine, settling: Settling): Promise<boolean> {
  const { engine, ledger, kinds } = opened
  const pauses = await ledger.pauses()
  const isPaused = (scope: string, target: string): boolean =>
    pauses.some((pause) => pause.scope === scope && pause.target === target)
  const pausedKinds = new Set(pauses.filter(({ scope }) => scope === 'kind').map(({ target }) => target))
  const running = new Set([...engine.dispatcher.running.values()].map(({ context }) => context.stream))
  for (const name of settling.names) {
    const stream = streamOf(name)
    if (running.has(stream)) return true
    if (isPaused('stream', stream) || pauses.some(({ scope }) => scope === 'all')) continue
    if (isHopeless(kinds.obstacles.of(name), settling.patienceMs)) continue
    const limit = pausedKinds.size > 0 ? PENDING_PAGE : 1
    const pending = await ledger.jobs({ state: 'pending', stream, limit })
    if (pending.some(({ kind }) => !pausedKinds.has(kind))) return true
    if ((await ledger.jobs({ state: 'claimed', stream, limit: 1 })).length > 0) return true
  }
  return false
}

/** What is wrong with the archive's files is put right by people, not by time. */
function isHopeless(obstacle: Obstacle | undefined, patienceMs: number | undefined): boolean {
  if (!obstacle || patienceMs === undefined) return false
  return obstacle.where === 'archive' || systemClock.monotonicMs() - obstacle.sinceMs >= patienceMs
}
