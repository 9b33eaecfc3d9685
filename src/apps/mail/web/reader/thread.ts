/** A thread as the reader lays it out: which messages are shown as lines, and how high the frame of one is. */

/** Which messages of a long thread are shown as lines, and which only counted. */
/** Fewer than this are not worth a line that says that they are hidden. */
const FOLD_MIN = 3

export type FoldPart<T> = { message: T } | { folded: T[] }

/** The first, the last two, and whatever is open stay; the rest between them folds. */
export function foldThread<T>(messages: readonly T[], isOpen: (message: T) => boolean): FoldPart<T>[] {
  const parts: FoldPart<T>[] = []
  let run: T[] = []
  const flush = (): void => {
    if (run.length >= FOLD_MIN) parts.push({ folded: run })
    else parts.push(...run.map((message) => ({ message })))
    run = []
  }
  for (const [at, message] of messages.entries()) {
    if (at === 0 || at >= messages.length - 2 || isOpen(message)) {
      flush()
      parts.push({ message })
    } else run.push(message)
  }
  flush()
  return parts
}

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
