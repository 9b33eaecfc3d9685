/** What a source of mail gives, one after another. */
import { readFile, stat } from 'node:fs/promises'

/** Gmail takes up to 50 MB in; what is beyond this is not one message. */
export const MESSAGE_BYTES_MAX = 200_000_000

export type SourceMessage = {
  type: 'message'
  /** The file, and the place in it where it holds many. */
  place: string
  raw: Uint8Array
  /** Gmail's ids, where the source names them. */
  id: string | null
  threadId: string | null
  /** Names as people see them, such as `Inbox` or `Work/Plans`. */
  labelNames: readonly string[]
  /** Ids of Gmail's own labels that follow from flags, such as STARRED. */
  labelIds: readonly string[]
  /** When it arrived, where the source says so. */
  arrivedMs: number | null
  /** Of its file: the last resort. */
  modifiedMs: number
}

export type SourceItem =
  | SourceMessage
  /** What could not be read as a message, and why. */
  | { type: 'damaged'; place: string; reason: string }
  /** A file that is no mail. */
  | { type: 'ignored'; place: string }

/** The bytes of a file that is one message; a reason where it is none. */
export async function readMessageFile(
  path: string,
): Promise<{ raw: Uint8Array; modifiedMs: number } | { reason: string }> {
  try {
    const found = await stat(path)
    // A pipe or a device may never end, or never begin.
    if (!found.isFile()) return { reason: NO_FILE }
    const { size, mtimeMs } = found
    if (size === 0) return { reason: 'the file is empty' }
    if (size > MESSAGE_BYTES_MAX) return { reason: `it is larger than ${MESSAGE_BYTES_MAX / 1e6} MB` }
    return { raw: await readFile(path), modifiedMs: Math.trunc(mtimeMs) }
  } catch (thrown) {
    return { reason: unreadable(thrown) }
  }
}

export const NO_FILE = 'it is no file that holds mail'

export function unreadable(thrown: unknown): string {
  return `it cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`
}
