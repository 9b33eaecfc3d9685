/**
 * Waits for the work of some folders. It is over when nothing of it is left, and stuck when all that is left cannot
 * move: the stream is paused, or something is in the way that waiting will not change.
 */

import type { CliContext } from '../../../app/command.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import { type FolderPair, streamOf } from '../folder-pair.ts'
import type { OpenedFiles } from './context.ts'
import type { FilesProgress } from './sync-progress.ts'

/** On a terminal, where the line is drawn over the last; elsewhere lines add up. */
const LOOK_TERMINAL_MS = 500
const LOOK_LINES_MS = 5_000
/** How soon the end is noticed, whatever is printed. */
const STEP_MS = 100
const PENDING_PAGE = 1_000
/** A server that starts again takes less; a full disk stays full. */
const LEDGER_MS_MAX = 60_000
/** Plans that follow from what was done; one that changes nothing ends it before. */
const PLANS_MAX = 1_000

export type Settling = {
  names: readonly string[]
  stop: AbortSignal
  /** How long OneDrive may be out of reach; without end where it is undefined. */
  patienceMs: number | undefined
  progress: FilesProgress
}

/** Until both sides are in step as far as they can be, nothing can move, or somebody says stop. */
export async function settle(context: CliContext, opened: OpenedFiles, settling: Settling): Promise<void> {
  let before = ''
  for (let plans = 0; plans < PLANS_MAX; plans++) {
    await untilIdle(context, opened, settling)
    if (settling.stop.aborted || settling.progress.ledger.trouble) return
    const left = await unplannedOf(opened, settling.names)
    const now = JSON.stringify(left)
    if (left.length === 0 || now === before) return
    before = now
    const { engine, files } = opened
    for (const { name } of left) {
      await engine.enqueue(files.kinds.plan, { drive: name }, { stream: streamOf(name) })
    }
  }
}

/** What an action has left to be planned: the bell that asks for it may not have rung yet. */
async function unplannedOf(
  opened: OpenedFiles,
  names: readonly string[],
): Promise<(Pick<FolderPair, 'name'> & { unplanned: number; planned: number })[]> {
  const { store } = opened.files
  const left = []
  for (const name of names) {
    if (await isPaused(opened, name)) continue
    const row = await store.folderPair(name)
    const { unplanned } = await store.openCounts(name)
    const isKnown = row.scannedAt !== null && row.heardAt !== null && !row.isEnumerating
    if (unplanned > 0 && isKnown) left.push({ name, unplanned, planned: row.planned })
  }
  return left
}

async function untilIdle({ output }: CliContext, opened: OpenedFiles, settling: Settling): Promise<void> {
  const { progress, stop } = settling
  const everyMs = output.isTerminal ? LOOK_TERMINAL_MS : LOOK_LINES_MS
  let shownMs = systemClock.monotonicMs()
  while (!stop.aborted && (await canMove(opened, settling))) {
    checkLedger(settling)
    if (systemClock.monotonicMs() - shownMs >= everyMs) {
      shownMs = systemClock.monotonicMs()
      await progress.show()
    }
    await sleep(systemClock, STEP_MS, stop).catch(() => {
      // Told to stop: the loop ends by itself.
    })
  }
}

function checkLedger({ progress, patienceMs }: Settling): void {
  const { trouble } = progress.ledger
  if (!trouble || patienceMs === undefined || trouble.forMs < Math.min(patienceMs, LEDGER_MS_MAX)) return
  throw new TidemarkError(trouble.detail, {
    kind: 'transient',
    code: 'ledger-down',
    hint: 'Check the disk it is on (space, health, mount), or its server. Nothing is lost: the next tidemark files sync goes on where this one was.',
  })
}

async function isPaused({ ledger }: OpenedFiles, name: string): Promise<boolean> {
  return (await ledger.pauses()).some(
    ({ scope, target }) => scope === 'all' || (scope === 'stream' && target === streamOf(name)),
  )
}

/** Others may have work too, or be paused with theirs: only these folders are waited for. */
async function canMove(opened: OpenedFiles, settling: Settling): Promise<boolean> {
  const { engine, ledger } = opened
  const pauses = await ledger.pauses()
  const pausedKinds = new Set(pauses.filter(({ scope }) => scope === 'kind').map(({ target }) => target))
  const running = new Set([...engine.dispatcher.running.values()].map(({ context }) => context.stream))
  for (const name of settling.names) {
    const stream = streamOf(name)
    if (running.has(stream)) return true
    if (await isPaused(opened, name)) continue
    if (isHopeless(opened, name, settling.patienceMs)) continue
    const isFull =
      settling.patienceMs !== undefined && opened.files.kinds.obstacles.ofUploads(name) !== undefined
    if (await hasPending(opened, stream, { pausedKinds, isFull })) return true
    if ((await ledger.jobs({ state: 'claimed', stream, limit: 1 })).length > 0) return true
  }
  return false
}

/**
 * Where OneDrive is full, uploads that wait for room, and what depends on them, are put right by people: everything
 * else is done.
 */
async function hasPending(
  { ledger, files }: OpenedFiles,
  stream: string,
  { pausedKinds, isFull }: { pausedKinds: ReadonlySet<string>; isFull: boolean },
): Promise<boolean> {
  if (!isFull && pausedKinds.size === 0) {
    return (await ledger.jobs({ state: 'pending', stream, limit: 1 })).length > 0
  }
  for (const { kind } of files.jobs) {
    if (pausedKinds.has(kind)) continue
    const pending = await ledger.jobs({ state: 'pending', stream, kind, limit: isFull ? PENDING_PAGE : 1 })
    const canRun = ({ wait }: JobRow): boolean =>
      wait !== 'deps' && !(wait === 'time' && kind === files.kinds.upload.kind)
    if (isFull ? pending.some(canRun) : pending.length > 0) return true
  }
  return false
}

/** A full disk and a folder that is gone are put right by people, not by time. */
function isHopeless({ files }: OpenedFiles, name: string, patienceMs: number | undefined): boolean {
  const obstacle = files.kinds.obstacles.of(name)
  if (!obstacle || patienceMs === undefined) return false
  return obstacle.where !== 'cloud' || systemClock.monotonicMs() - obstacle.sinceMs >= patienceMs
}
