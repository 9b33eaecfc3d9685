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
