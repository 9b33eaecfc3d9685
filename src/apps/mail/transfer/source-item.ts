/** What a source of mail gives, one after another. */

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
  /** What is passed over, and why. */
  | { type: 'ignored'; place: string; reason: string }

export const NO_FILE = 'it is no file that holds mail'

export function unreadable(thrown: unknown): string {
  return `it cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`
}
