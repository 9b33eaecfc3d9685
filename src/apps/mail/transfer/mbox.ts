/**
 * Mailbox files: many messages in one, each after a line `From …`.
 *
 * Lines of a message that could be taken for such a line are written with a `>` before them (mboxrd: every
 * `>*From `, which can be undone exactly; mboxo: only `From `, which cannot). A blank line follows each message.
 *
 * Gmail's Takeout puts the message's id, in decimal, into the `From ` line, and its thread and labels into two
 * headers at the very top. They are read and taken off: what remains is the message. So are those that Thunderbird
 * keeps its own state in; it leaves what was deleted in the file for a while. `formatMboxMessage` writes Takeout's,
 * and one header more where the message does not end with a line feed or begins with a blank, so that
 * what is read again is the same to the byte.
 */
import { parseDate } from '../mime/dates.ts'
import { isMessageAt } from './file-kind.ts'
import { formatLabelNames, parseLabelNames } from './label-names.ts'
import { MESSAGE_BYTES_MAX } from './source-item.ts'

export type MboxQuoting = 'mboxrd' | 'mboxo' | 'none'

const ENVELOPE_BYTES_MAX = 1_000

export type MboxItem =
  | {
      type: 'message'
      /** Of its `From ` line. */
      offset: number
      raw: Uint8Array
      id: string | null
      threadId: string | null
      labelNames: readonly string[]
      arrivedMs: number | null
    }
  | { type: 'damaged'; offset: number; reason: string }
  /** Deleted by Thunderbird, and not cleared away yet. */
  | { type: 'expunged'; offset: number }

/** Holds one message at a time, and of one that is too large nothing. */
export async function* readMbox(
  chunks: AsyncIterable<Uint8Array>,
  options: { quoting: MboxQuoting },
): AsyncGenerator<MboxItem> {
  const reader = new MboxReader(options.quoting)
  for await (const chunk of chunks) yield* reader.take(chunk)
  yield* reader.finish()
}

export type MboxMessage = {
  id: string
  threadId: string
  labelNames: readonly string[]
  arrivedMs: number
  raw: Uint8Array
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const QUOTE = 62
const THREAD_HEADER = 'X-GM-THRID'
const LABELS_HEADER = 'X-Gmail-Labels'
const END_HEADER = 'X-Tidemark-Final-Newline'

/** Quoted as mboxrd, with all that `readMbox` needs to give the same message. */
export function formatMboxMessage({ id, threadId, labelNames, arrivedMs, raw }: MboxMessage): Uint8Array {
  const bytes = asBuffer(raw)
  const endsLine = bytes.at(-1) === LF
  const sender = isGmailId(id) ? `${BigInt(`0x${id}`)}@xxx` : 'MAILER-DAEMON'
  const lines = [`From ${sender} ${envelopeDate(arrivedMs)}`]
  if (isGmailId(threadId)) lines.push(`${THREAD_HEADER}: ${BigInt(`0x${threadId}`)}`)
  lines.push(`${LABELS_HEADER}: ${formatLabelNames(labelNames)}`)
  const first = bytes.toString('latin1', 0, END_HEADER.length).toLowerCase()
  const isUnclear = bytes[0] === SPACE || bytes[0] === TAB || first === END_HEADER.toLowerCase()
  if (!endsLine || isUnclear) lines.push(`${END_HEADER}: ${endsLine ? 'yes' : 'no'}`)
  const head = Buffer.from(`${lines.join('\n')}\n`, 'latin1')
  return Buffer.concat([head, quoted(bytes), Buffer.from(endsLine ? '\n' : '\n\n')])
}

const SEPARATOR = Buffer.from('\nFrom ')
/** Of the line before a separator: its end, and a CR. */
const BLANK_LINE_BYTES = 2
const FROM = Buffer.from('From ')
const MOZILLA = Buffer.from('X-Mozilla-')

/** States: before the first line (`#envelope` null), and within a message. */
class MboxReader {
  readonly #quoting: MboxQuoting
  #rest: Buffer = Buffer.alloc(0)
  /** Where `#rest` begins in the file. */
  #offset = 0
  #envelope: { text: string; offset: number } | null = null
  /** As the first line says. */
  #hasDates = true
  #pieces: Buffer[] = []
  #bytes = 0

  constructor(quoting: MboxQuoting) {
    this.#quoting = quoting
  }

  *take(chunk: Uint8Array): Generator<MboxItem> {
    this.#rest = this.#rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#rest, chunk])
    yield* this.#scan(false)
  }

  *finish(): Generator<MboxItem> {
    yield* this.#scan(true)
    this.#keep(this.#rest.length)
    yield* this.#message()
  }

  *#scan(isEnd: boolean): Generator<MboxItem> {
    if (!this.#envelope) {
      const lineEnd = this.#rest.indexOf(LF)
      if (lineEnd === -1 && !isEnd && this.#rest.length <= ENVELOPE_BYTES_MAX) return
      this.#begin(lineEnd)
    }
    let from = 0
    for (;;) {
      const found = this.#rest.indexOf(SEPARATOR, from)
      if (found === -1) break
      const lineEnd = this.#rest.indexOf(LF, found + 1)
      const end = lineEnd === -1 ? this.#rest.length : lineEnd
      const isOpen = lineEnd === -1 && end - found <= ENVELOPE_BYTES_MAX && !isEnd
      const begins = isOpen ? null : this.#beginsMessage(found, end, isEnd)
      if (begins === null) {
        this.#keep(Math.max(0, found - BLANK_LINE_BYTES))
        return
      }
      if (!begins) {
        from = found + 1
        continue
      }
      this.#keep(found + 1)
      yield* this.#message()
      this.#open(end - found - 1)
      from = 0
    }
    // What may be the beginning of a separator waits for more.
    if (!isEnd) this.#keep(Math.max(0, this.#rest.length - SEPARATOR.length - BLANK_LINE_BYTES))
  }

  /** Is the line at `found` one of the file's? Null: what follows would tell. */
  #beginsMessage(found: number, end: number, isEnd: boolean): boolean | null {
    if (end - found > ENVELOPE_BYTES_MAX) return false
    if (isEnvelope(this.#rest.toString('latin1', found + 1, end))) return true
    // Without a date, as in Thunderbird's files, only after a blank line and before a message; and where other lines
    // have a date, only before its own headers: what else looks like it is a letter that quotes another.
    const before = this.#rest[found - 1] === CR ? found - 2 : found - 1
    const begins = this.#rest[before] === LF && isMessageAt(this.#rest, end + 1, isEnd)
    if (begins !== true || !this.#hasDates) return begins
    return this.#rest.subarray(end + 1, end + 1 + MOZILLA.length).equals(MOZILLA)
  }

  /** The first line. What stands before the first line of a message is none of it, and reported when that comes. */
  #begin(lineEnd: number): void {
    if (this.#rest.subarray(0, FROM.length).equals(FROM)) {
      this.#open(lineEnd === -1 ? this.#rest.length : lineEnd)
      this.#hasDates = isEnvelope(this.#envelope!.text)
    } else this.#envelope = { text: '', offset: 0 }
  }

  /** Leaves the line feed: it begins the next separator where a message has nothing. */
  #open(lineLength: number): void {
    const text = this.#rest.toString('latin1', 0, Math.min(lineLength, ENVELOPE_BYTES_MAX)).trimEnd()
    this.#envelope = { text, offset: this.#offset }
    this.#drop(lineLength)
  }

  /** Moves that much of the rest to the message. */
  #keep(bytes: number): void {
    if (bytes === 0) return
    this.#bytes += bytes
    if (this.#bytes > MESSAGE_BYTES_MAX) this.#pieces = []
    // A copy: a piece of a chunk would hold on to all of it.
    else this.#pieces.push(Buffer.from(this.#rest.subarray(0, bytes)))
    this.#drop(bytes)
  }

  #drop(bytes: number): void {
    this.#rest = this.#rest.subarray(bytes)
    this.#offset += bytes
  }

  *#message(): Generator<MboxItem> {
    const envelope = this.#envelope
    const content = Buffer.concat(this.#pieces)
    const isTooLarge = this.#bytes > MESSAGE_BYTES_MAX
    this.#pieces = []
    this.#bytes = 0
    if (!envelope) return
    const { offset } = envelope
    if (envelope.text === '') {
      const isBlank = !isTooLarge && content.every((byte) => byte <= SPACE)
      if (!isBlank) yield { type: 'damaged', offset, reason: 'the file does not begin with a "From " line' }
      return
    }
    // The line feed of the "From " line comes first.
    const found = isTooLarge ? null : withoutExtras(withoutBlankLine(content.subarray(1)))
    if (isTooLarge) {
      yield { type: 'damaged', offset, reason: `the message is larger than ${MESSAGE_BYTES_MAX / 1e6} MB` }
    } else if (!found || found.raw.length === 0) {
      yield { type: 'damaged', offset, reason: 'there is no message after the "From " line' }
    } else if (found.isExpunged) yield { type: 'expunged', offset }
    else {
      const { threadId, labelNames, endsLine } = found
      const unquoted = this.#quoting === 'none' ? found.raw : withoutQuotes(found.raw, this.#quoting)
      const raw = endsLine ? unquoted : unquoted.subarray(0, -1)
      yield { type: 'message', offset, raw, threadId, labelNames, ...parseEnvelope(envelope.text) }
    }
  }
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const ENVELOPE = new RegExp(
  `^From \\S.{0,400}? (?:${DAYS.join('|')}) (?:${MONTHS.join('|')}) {1,2}\\d{1,2} \\d{1,2}:\\d\\d(?::\\d\\d)?(?: [+-]\\d{4}| [A-Z]{1,5}){0,2} \\d{4}`,
)

/** "From the beginning, we …" is a line of a letter. */
function isEnvelope(line: string): boolean {
  return ENVELOPE.test(line)
}

function parseEnvelope(line: string): { id: string | null; arrivedMs: number | null } {
  const [, sender = '', date = ''] = /^From +(\S*)(.*)$/s.exec(line) ?? []
  const [, decimal] = /^(\d{1,20})@/.exec(sender) ?? []
  return { id: decimal === undefined ? null : gmailId(decimal), arrivedMs: parseDate(date) }
}

/** `Mon Nov 07 10:00:00 +0000 2022`, as Takeout has it. */
function envelopeDate(ms: number): string {
  const date = new Date(ms)
  const two = (value: number): string => String(value).padStart(2, '0')
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(':')
  const year = String(date.getUTCFullYear()).padStart(4, '0')
  return `${DAYS[date.getUTCDay()]} ${MONTHS[date.getUTCMonth()]} ${two(date.getUTCDate())} ${time} +0000 ${year}`
}

const ID_MAX = 2n ** 64n

/** The API's ids are the same numbers in hex. */
function gmailId(decimal: string): string | null {
  const id = BigInt(decimal)
  return id > 0n && id < ID_MAX ? id.toString(16) : null
}

function isGmailId(id: string): boolean {
  return /^[1-9a-f][0-9a-f]{0,15}$/.test(id)
}

/** The blank line between messages belongs to the file. */
function withoutBlankLine(content: Buffer): Buffer {
  const end = content.length
  if (content[end - 1] !== LF) return content
  const before = content[end - 2] === CR ? end - 2 : end - 1
  return before === 0 || content[before - 1] === LF ? content.subarray(0, before) : content
}

type Extras = {
  raw: Buffer
  threadId: string | null
  labelNames: string[]
  endsLine: boolean
  isExpunged: boolean
}

/** What Thunderbird puts on top, in its order. */
const MOZILLA_HEADERS = ['X-Account-Key', 'X-UIDL', 'X-Mozilla-Status', 'X-Mozilla-Status2', 'X-Mozilla-Keys']
const MOZILLA_EXPUNGED = 0x8

/** Takes off the headers that the writer has put on top, in their order, each once. */
function withoutExtras(content: Buffer): Extras {
  const extras: Extras = { raw: content, threadId: null, labelNames: [], endsLine: true, isExpunged: false }
  const thread = topHeader(extras.raw, THREAD_HEADER)
  if (thread) {
    extras.raw = extras.raw.subarray(thread.end)
    if (/^\d{1,20}$/.test(thread.value)) extras.threadId = gmailId(thread.value)
  }
  const labels = topHeader(extras.raw, LABELS_HEADER, 'folded')
  if (labels) {
    extras.raw = extras.raw.subarray(labels.end)
    extras.labelNames = parseLabelNames(labels.value)
  }
  const end = topHeader(extras.raw, END_HEADER)
  if (end) {
    extras.raw = extras.raw.subarray(end.end)
    extras.endsLine = end.value !== 'no'
  }
  // Below Takeout's headers they are the message's own.
  if (!thread && !labels && !end) Object.assign(extras, withoutMozilla(content))
  return extras
}

function withoutMozilla(content: Buffer): Pick<Extras, 'raw' | 'isExpunged'> {
  let raw = content
  let status: string | null = null
  for (const name of MOZILLA_HEADERS) {
    const header = topHeader(raw, name)
    if (!header) continue
    raw = raw.subarray(header.end)
    if (name === 'X-Mozilla-Status') status = header.value
  }
  if (status === null || !/^[0-9a-f]{1,8}$/i.test(status)) return { raw: content, isExpunged: false }
  return { raw, isExpunged: (Number.parseInt(status, 16) & MOZILLA_EXPUNGED) !== 0 }
}

function topHeader(raw: Buffer, name: string, form?: 'folded'): { value: string; end: number } | null {
  const start = name.length + 1
  if (raw.toString('latin1', 0, start).toLowerCase() !== `${name.toLowerCase()}:`) return null
  let end = start
  do {
    const lineEnd = raw.indexOf(LF, end)
    end = lineEnd === -1 ? raw.length : lineEnd + 1
  } while (form === 'folded' && (raw[end] === SPACE || raw[end] === TAB))
  return { value: raw.toString('latin1', start, end).replace(/\r?\n/g, '').trim(), end }
}

/** Places where a line begins with `From `, after any number of `>`: [start of the line, start of From]. */
function* fromLines(raw: Buffer): Generator<[lineStart: number, fromStart: number]> {
  for (let at = raw.indexOf(FROM); at !== -1; at = raw.indexOf(FROM, at + FROM.length)) {
    let lineStart = at
    while (lineStart > 0 && raw[lineStart - 1] === QUOTE) lineStart--
    if (lineStart === 0 || raw[lineStart - 1] === LF) yield [lineStart, at]
  }
}

function quoted(raw: Buffer): Buffer {
  const pieces: Uint8Array[] = []
  let from = 0
  for (const [lineStart] of fromLines(raw)) {
    pieces.push(raw.subarray(from, lineStart), Uint8Array.of(QUOTE))
    from = lineStart
  }
  return from === 0 && pieces.length === 0 ? raw : Buffer.concat([...pieces, raw.subarray(from)])
}

function withoutQuotes(raw: Buffer, quoting: 'mboxrd' | 'mboxo'): Buffer {
  const pieces: Uint8Array[] = []
  let from = 0
  for (const [lineStart, fromStart] of fromLines(raw)) {
    const quotes = fromStart - lineStart
    if (quotes === 0 || (quoting === 'mboxo' && quotes > 1)) continue
    pieces.push(raw.subarray(from, lineStart))
    from = lineStart + 1
  }
  return pieces.length === 0 ? raw : Buffer.concat([...pieces, raw.subarray(from)])
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
