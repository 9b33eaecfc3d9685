/**
 * Ends that a folder is kept in step. Both sides stay as they are; only what is known of them is forgotten, and the
 * marker goes, so that the folder can be added anew.
 *
 *   paused ──▶ all its work canceled ──▶ rows and marker gone ──▶ what the books have listed settled as skipped
 *
 * What is under way ends first: what it writes must not be left behind. What was listed and canceled would keep the
 * mark of the stream from moving, also when the folder is added again: so it is taken up once more, and finds that
 * the folder is not kept in step any more.
 */
import { existsSync } from 'node:fs'
import { streamOf } from '../apps/file-sync/drive.ts'
import { machineId } from '../apps/file-sync/index.ts'
import type { DriveRow } from '../apps/file-sync/store/contract.ts'
import { type Clock, sleep } from '../clock.ts'
import { reclaimFromDead } from '../engine/sightings.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { deltaSchedule, lookSchedule } from './file-work.ts'
import { unmarkRoot } from './new-drive.ts'
import type { Runtime } from './runtime.ts'

/** Whoever asked for it waits: less than browsers do. */
const ENDED_MS_MAX = 20_000
const STEP_MS = 100
const CANCELED_PAGE = 1_000

type Opened = Pick<Runtime, 'ledger' | 'engine' | 'files'>

/** What could not be tidied up is returned: the folder is not kept in step any more all the same. */
export async function removeDrive(
  { ledger, engine, files }: Opened,
  { name, root, machine }: DriveRow,
  clock: Clock,
): Promise<{ unmarked?: unknown }> {
  const stream = streamOf(name)
  const wasPaused = !(await ledger.pause('stream', stream, 'the folder is being removed'))
  try {
    for (const schedule of [deltaSchedule(name), lookSchedule(name)]) await ledger.dropSchedule(schedule)
    await cancelAll({ ledger, engine }, stream, clock)
    await files.store.removeDrive(name)
    await redoListed(ledger, stream)
  } catch (thrown) {
    if (!wasPaused) await engine.resume('stream', stream)
    throw thrown
  }
  await engine.resume('stream', stream)
  await files.drives.reload()
  if (machine !== machineId() || !existsSync(root)) return {}
  try {
    unmarkRoot(root)
    return {}
  } catch (thrown) {
    // It only keeps the folder from being added anew, which is then said.
    return { unmarked: thrown }
  }
}

async function redoListed(ledger: Ledger, stream: string): Promise<void> {
  for (let before: number | undefined; ; ) {
    const page = await ledger.jobs({
      ...{ stream, state: 'canceled', limit: CANCELED_PAGE },
      ...(before === undefined ? {} : { before }),
    })
    for (const { id, segment_id: segment } of page) {
      if (segment !== null) await ledger.redo(id).catch(ignoreRedone)
    }
    if (page.length < CANCELED_PAGE) return
    before = page.at(-1)!.id
  }
}

/** One that depends on another is brought back with it. */
function ignoreRedone(thrown: unknown): void {
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
  if (!(await isLeft())) return
  await engine.start()
  const untilMs = clock.monotonicMs() + ENDED_MS_MAX
  while ((await isLeft()) && clock.monotonicMs() < untilMs) await sleep(clock, STEP_MS)
}

/** What failed is nothing to be retried any more, either. */
async function cancelAll(
  { ledger, engine }: Pick<Opened, 'ledger' | 'engine'>,
  stream: string,
  clock: Clock,
): Promise<void> {
  const untilMs = clock.monotonicMs() + ENDED_MS_MAX
  const some = (state: 'pending' | 'claimed' | 'failed') =>
    ledger.jobs({ stream, state, limit: CANCELED_PAGE })
  await reclaimFromDead(ledger)
  for (;;) {
    const ended = [...(await some('pending')), ...(await some('failed'))]
    const claimed = await some('claimed')
    if (ended.length + claimed.length === 0) return
    for (const { id } of [...ended, ...claimed]) await engine.cancel(id)
    if (ended.length > 0) continue
    if (clock.monotonicMs() > untilMs) {
      throw new TidemarkError('What is under way in this folder does not end.', {
        ...{ kind: 'transient', code: 'folder-busy' },
        hint: 'Nothing was removed. Try again in a moment, or stop what syncs it first.',
      })
    }
    await sleep(clock, STEP_MS)
  }
}
