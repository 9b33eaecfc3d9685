/**
 * Ends that a folder is kept in step. Both sides stay as they are; only what is known of them is forgotten, and the
 * marker goes, so that the folder can be added anew.
 *
 *   paused ──▶ what is under way stopped ──▶ rows and marker gone ──▶ what the books have listed settled as skipped
 *
 * What is under way ends first: what it writes must not be left behind. What was listed is not canceled, since that
 * would keep the mark of the stream from moving, also when the folder is added again: it is let go, and finds that the
 * folder is not kept in step any more. What was stopped is taken up once more for that, also where the removal fails.
 */

import { type Clock, sleep } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { reclaimFromDead } from '../../engine/observe/engines.ts'
import { REMOVAL } from '../../ledger/control.ts'
import { eachJob } from '../../ledger/each-job.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { streamOf } from './folder-pair.ts'
import { machineId } from './index.ts'
import { unmarkRoot } from './new-folder.ts'
import type { FilesRuntime } from './runtime.ts'
import type { FolderPairRow } from './store/contract.ts'
import { deltaSchedule, lookSchedule } from './work.ts'

/** Whoever asked for it waits: less than browsers do. */
const ENDED_MS_MAX = 20_000
const STEP_MS = 100

type Opened = Pick<FilesRuntime, 'ledger' | 'engine' | 'files'>

/** What could not be tidied up is returned: the folder is not kept in step any more all the same. */
export async function removeFolderPair(
  { ledger, engine, files }: Opened,
  { name, root, machine, markerId }: FolderPairRow,
  clock: Clock,
): Promise<{ unmarked?: unknown }> {
  const stream = streamOf(name)
  const wasPaused = !(await ledger.pause('stream', stream, 'the folder is being removed', REMOVAL))
  try {
    for (const schedule of [deltaSchedule(name), lookSchedule(name)]) await ledger.dropSchedule(schedule)
    await stopAll({ ledger, engine }, stream, clock)
    await files.store.removeFolderPair(name)
    if (files.indexing) await engine.enqueue(files.indexing.kind, { unit: name }, { stream })
    await redoListed(ledger, stream)
  } catch (thrown) {
    await redoListed(ledger, stream)
    await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
    if (!wasPaused) await engine.resume('stream', stream)
    throw thrown
  }
  await ledger.wakeStream(stream)
  await engine.resume('stream', stream)
  await files.pairs.reload()
  if (machine !== machineId()) return {}
  try {
    unmarkRoot(root, markerId)
    return {}
  } catch (thrown) {
    // It only keeps the folder from being added anew, which is then said.
    return { unmarked: thrown }
  }
}

async function redoListed(ledger: Ledger, stream: string): Promise<void> {
  for (const state of ['canceled', 'failed'] as const) {
    for await (const { id, segment_id: segment } of eachJob(ledger, { stream, state })) {
      if (segment !== null) await ledger.redo(id).catch(ignoreRefusal)
    }
  }
}

/** It ended meanwhile, or was brought back with another on which it depends. */
function ignoreRefusal(thrown: unknown): void {
  if (!(thrown instanceof UsageError)) throw thrown
}

/** Until nothing is left of it, for a process that runs no engine otherwise. */
export async function finishRemoval(
  { ledger, engine }: Pick<Opened, 'ledger' | 'engine'>,
  name: string,
  clock: Clock,
): Promise<void> {
  const stream = streamOf(name)
  const isLeft = async (): Promise<boolean> =>
    (await ledger.jobs({ stream, state: 'pending', limit: 1 })).length > 0
  // While all work is paused there is nothing to wait for: it ends when that goes on.
  const isHeld = (await ledger.pauses()).some(({ scope }) => scope !== 'stream')
  if (isHeld || !(await isLeft())) return
  await engine.start()
  const untilMs = clock.monotonicMs() + ENDED_MS_MAX
  while ((await isLeft()) && clock.monotonicMs() < untilMs) await sleep(clock, STEP_MS)
}

/** What runs, and what was asked for and is listed nowhere: looks, plans. Work that failed among it is over, too. */
async function stopAll(
  { ledger, engine }: Pick<Opened, 'ledger' | 'engine'>,
  stream: string,
  clock: Clock,
): Promise<void> {
  const untilMs = clock.monotonicMs() + ENDED_MS_MAX
  await reclaimFromDead(ledger)
  for (;;) {
    const stopped: number[] = []
    for (const state of ['pending', 'failed', 'claimed'] as const) {
      for await (const { id, segment_id: segment } of eachJob(ledger, { stream, state })) {
        if (state === 'claimed' || segment === null) stopped.push(id)
      }
    }
    if (stopped.length === 0) return
    for (const id of stopped) await engine.cancel(id).catch(ignoreRefusal)
    if (clock.monotonicMs() > untilMs) {
      throw new TidemarkError('What is under way in this folder does not end.', {
        kind: 'transient',
        code: 'folder-busy',
        hint: 'Nothing was removed. Try again in a moment, or stop what syncs it first.',
      })
    }
    await sleep(clock, STEP_MS)
  }
}
