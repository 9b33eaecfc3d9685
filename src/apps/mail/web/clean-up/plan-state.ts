/** What a plan asks of people next. */
import type { ArchivePlan } from '../../api/schemas.ts'

/** Before the proof, the next step is the proof; what is for good always looks so. */
export function startKind({
  wish,
  isFull,
}: Pick<ArchivePlan, 'wish' | 'isFull'>): 'danger' | 'primary' | 'plain' {
  if (!isFull) return 'plain'
  return wish.action === 'delete' ? 'danger' : 'primary'
}
