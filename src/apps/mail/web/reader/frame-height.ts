/**
 * How high the frame of a message should be. Its document runs no scripts and cannot be asked, so its text has to
 * tell; the frame scrolls by itself where the guess is too small, and never changes while it loads.
 */
const LINE_REM = 1.6
const LINE_CHARS = 80
const MARGIN_REM = 6
export const FRAME_REM_MIN = 14
export const FRAME_REM_MAX = 44

export function frameHeightRem(text: string): number {
  let lines = 0
  for (const line of text.split('\n')) {
    lines += Math.max(1, Math.ceil(line.length / LINE_CHARS))
    if (lines * LINE_REM > FRAME_REM_MAX) return FRAME_REM_MAX
  }
  return Math.min(FRAME_REM_MAX, Math.max(FRAME_REM_MIN, Math.ceil(MARGIN_REM + lines * LINE_REM)))
}
