/** What a file is, by how it begins: names say little, and mail programs give their files any. */

export type FileKind = 'mbox' | 'eml' | 'emlx' | 'gzip' | { passedOver: string }

/** As much of a file as is looked at. */
export const HEAD_BYTES = 16_384

/** Headers that a message has, and notes, settings and programs do not have two of. */
const TELLING =
  /^(?:from|to|cc|subject|date|message-id|received|return-path|delivered-to|mime-version|content-type|x-mozilla-status|x-gm-thrid)$/i
const TELLING_MIN = 2
const HEADER = /^([!-9;-~]{1,100})[ \t]*:/
/** Longer than any name of a header. */
const LINE_CHARS_MAX = 200
const PACKED = 'packed in a way that is not read here: unpack it first'
const OTHERS: readonly (readonly [start: string, what: string])[] = [
  ['\u0000\u0005\u0016\u0007', 'what a Mac keeps beside a file'],
  ['// <!-- <mdb:mork', "Thunderbird's index of a folder"],
  ['PK\u0003\u0004', 'a zip file: unpack it first'],
  ['BZh', PACKED],
  ['\u00fd7zXZ', PACKED],
  ['7z\u00bc\u00af', PACKED],
  ['SQLite format 3', 'a database'],
  ['!BDN', "Outlook's data file, which is not read here"],
]

/** `head`: the first bytes, or all. `by: 'person'`: somebody says that it is mail, and one header is enough. */
export function fileKindOf(head: Buffer, name: string, by: 'person' | 'walk'): FileKind {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  // Signs of an encoding that editors put before everything.
  const text = head.toString('latin1').replace(/^\u00ef\u00bb\u00bf/, '')
  const other = OTHERS.find(([start]) => text.startsWith(start))
  // The one name that says it all: such a file is one message, even if it begins like a mailbox.
  if (/\.eml$/i.test(name) && !other) return 'eml'
  if (isMailbox(text)) return 'mbox'
  // Apple's: the number of bytes of the message on a line of its own, the message, and a list of properties.
  if (/^\d{1,10}[ \t]*\r?\n/.test(text) && isMessage(text.slice(text.indexOf('\n') + 1))) return 'emlx'
  if (/\.mbo?x$/i.test(name)) return 'mbox'
  if (other) return { passedOver: other[1] }
  if (head.length === 0) return { passedOver: 'empty' }
  const isMail = isMessage(text) || (by === 'person' && HEADER.test(text))
  return isMail ? 'eml' : { passedOver: 'no mail' }
}

/** Thunderbird's lines say `From ` and no more; then a message must follow. */
function isMailbox(text: string): boolean {
  const from = /^(?:\r?\n)*From (?:\r?\n|(?=\S))/.exec(text)
  return from !== null && (!from[0].endsWith('\n') || isMessage(text.slice(from[0].length)))
}

/** As `isMessage`, in the middle of a file: reads no more than it needs. Null: more bytes would tell. */
export function isMessageAt(bytes: Buffer, start: number, isEnd: boolean): boolean | null {
  const told = new Set<string>()
  const limit = Math.min(bytes.length, start + HEAD_BYTES)
  for (let at = start; ; ) {
    const found = bytes.subarray(at, limit).indexOf('\n')
    if (found === -1 && limit === bytes.length && !isEnd) return null
    const end = found === -1 ? limit : at + found
    const line = bytes.toString('latin1', at, Math.min(end, at + LINE_CHARS_MAX))
    const name = HEADER.exec(line)?.[1]
    if (name === undefined && !(at > start && /^[ \t]/.test(line))) return false
    if (name !== undefined && TELLING.test(name)) told.add(name.toLowerCase())
    if (told.size >= TELLING_MIN) return true
    if (found === -1) return false
    at = end + 1
  }
}

/** Nothing but headers up to the first blank line, and some that only mail has. */
function isMessage(text: string): boolean {
  const end = text.search(/\r?\n\r?\n/)
  const lines = (end === -1 ? text : text.slice(0, end)).split(/\r?\n/)
  // The last line may be cut off where the head is longer than what was read.
  if (end === -1 && lines.length > 1) lines.pop()
  const told = new Set<string>()
  for (const [at, line] of lines.entries()) {
    if (at > 0 && /^[ \t]/.test(line)) continue
    const name = HEADER.exec(line)?.[1]
    if (name === undefined) return false
    if (TELLING.test(name)) told.add(name.toLowerCase())
  }
  return told.size >= TELLING_MIN
}
