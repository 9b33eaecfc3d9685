import type { JobView } from '../../../src/app/schemas.ts'

/** In the middle of a line, where a badge would be too much. */
export const STAGE_TEXT: Record<JobView['stage'], string> = {
  ready: 'ready',
  deps: 'waits',
  time: 'waits',
  claimed: 'running',
  done: 'done',
  failed: 'failed',
  canceled: 'cancelled',
  skipped: 'skipped',
}
