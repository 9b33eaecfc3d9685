/**
 * On a ledger that several machines share, any of them may be given a job, and only the one that has the folder can do
 * it. The others put it back, which costs no try. What comes too late, for a folder that was removed, is over.
 */

import { asTidemarkError } from '../../base/errors.ts'
import type { Outcome } from '../../engine/index.ts'

/** Of the error with which a drive of another machine is refused. */
export const ELSEWHERE = 'drive-elsewhere'
/** Of the error with which a drive is refused that nobody keeps in step. */
export const UNKNOWN = 'drive-unknown'

const AGAIN_MS = 1_000

const OVER = { skip: 'the folder is not kept in step any more' }

/** `counts`: what the books are told of work that is over. */
export async function orElsewhere(
  run: () => Promise<Outcome>,
  counts: Pick<Outcome, 'skipped'> = {},
): Promise<Outcome> {
  try {
    return await run()
  } catch (thrown) {
    const { code } = asTidemarkError(thrown)
    if (code === UNKNOWN) return { ...OVER, ...counts }
    if (code !== ELSEWHERE) throw thrown
    return { again: { afterMs: AGAIN_MS }, note: 'left to the machine that has its folder' }
  }
}
