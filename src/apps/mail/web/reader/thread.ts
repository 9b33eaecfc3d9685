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

/** Of a message of one line, with what a browser adds. */
export const FRAME_PX_MIN = 120
/** Beyond some screens it scrolls by itself: a page without an end is no good, either. */
export const FRAME_PX_MAX = 6_000
/** A guess that is too small hides the last lines; a little room below does no harm. */
const ROOM = 1.1

/** How high the frame of a message is: as its HTML is by the server's guess, and never changing while it loads. */
export function frameHeightPx(guessedPx: number): number {
  return Math.round(Math.min(FRAME_PX_MAX, Math.max(FRAME_PX_MIN, guessedPx * ROOM)))
}
