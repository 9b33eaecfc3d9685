/** Looks after a proof that the server makes. It goes on without anybody who looks, so a look that fails is made again. */

import { ApiError } from '../../../../../web/src/problem.ts'
import type { ArchiveProof } from '../../api/schemas.ts'

export type ProofWatch = {
  look: (id: number) => Promise<ArchiveProof>
  show: (proof: ArchiveProof) => void
  /** Between two looks. */
  pause: () => Promise<void>
  /** Nobody wants to know any more. */
  isLeft: () => boolean
}

/** A server that starts anew is back long before. */
const FAILED_LOOKS_MAX = 120

/** The proof when it is over, or as it was when the page was left. */
export async function watchProof(first: ArchiveProof, watch: ProofWatch): Promise<ArchiveProof> {
  let now = first
  let failed = 0
  while (now.state === 'running' && !watch.isLeft()) {
    watch.show(failed === 0 ? now : { ...now, trouble: 'The server does not answer. It is asked again.' })
    await watch.pause()
    try {
      now = await watch.look(now.id)
      failed = 0
    } catch (cause) {
      failed += 1
      if (watch.isLeft() || failed > FAILED_LOOKS_MAX || !isPassing(cause)) throw cause
    }
  }
  return now
}

/** Not reached, too much asked, or unwell: not that it refuses. */
function isPassing(cause: unknown): boolean {
  return cause instanceof ApiError && (cause.status === 0 || cause.status === 429 || cause.status >= 500)
}
