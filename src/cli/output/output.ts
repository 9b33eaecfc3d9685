/** What commands print with: results to stdout, everything else to stderr, all of it escaped. */
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { redactText } from '../../base/redaction.ts'
import { escapeControl, escapeLines, safeJson } from './escape.ts'
import { alignedTable, type Column, plainTable } from './table.ts'

export type OutputStream = { write(text: string | Uint8Array): unknown; isTTY?: boolean; columns?: number }

export type Listing<Row> = {
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  /** What `--json` prints; the rows themselves when it is left out. */
  json?: unknown
  /** What to say when there are no rows. */
  empty?: string
}

const WIDTH_DEFAULT = 80
const NOTE_EVERY_MS = 2_000

export class Output {
  readonly #stdout: OutputStream
  readonly #stderr: OutputStream
  /** `--json`: results are JSON, and errors too. */
  json = false
  /** `--debug`: errors come with their stack. */
  debug = false
  /** Whether a person was told to run a command of this program. */
  hasSaidCommand = false

  constructor(stdout: OutputStream, stderr: OutputStream) {
    this.#stdout = stdout
    this.#stderr = stderr
  }

  get isTerminal(): boolean {
    return this.#stdout.isTTY === true
  }

  get width(): number {
    // None, or 0: terminals that do not know it.
    return this.#stdout.columns || WIDTH_DEFAULT
  }

  /** One line of the result. */
  line(text: string): void {
    this.#noticeCommand(text)
    this.#stdout.write(`${escapeControl(text)}\n`)
  }

  /** One line for the person at the terminal, which is not part of the result. */
  note(text: string): void {
    this.#noticeCommand(text)
    this.#stderr.write(`${escapeControl(text)}\n`)
  }

  /** For long commands, which say now and then how far they are: at most every few seconds, and only what is new. */
  pacedNotes(): (text: string) => void {
    let notedMs = systemClock.monotonicMs()
    let last = ''
    return (text) => {
      const nowMs = systemClock.monotonicMs()
      if (this.json || text === last || nowMs - notedMs < NOTE_EVERY_MS) return
      notedMs = nowMs
      last = text
      this.note(text)
    }
  }

  /** Text of our own, such as a help page, as it is. */
  raw(text: string): void {
    this.#stdout.write(text)
  }

  /** Content exactly as it is, whatever it holds: never for a terminal, unless the user insists. */
  bytes(content: Uint8Array): void {
    this.#stdout.write(content)
  }

  rawError(text: string): void {
    this.#stderr.write(text)
  }

  /** The result as JSON. */
  value(value: unknown): void {
    this.#stdout.write(`${safeJson(value, this.isTerminal ? 2 : undefined)}\n`)
  }

  /** One of many objects, for a program that reads line by line: on one line, wherever it is printed. */
  event(value: unknown): void {
    this.#stdout.write(`${safeJson(value)}\n`)
  }

  listing<Row>(listing: Listing<Row>): void {
    if (this.json) {
      this.value(listing.json ?? listing.rows)
      return
    }
    if (listing.rows.length === 0) {
      if (listing.empty) this.note(listing.empty)
      return
    }
    const lines = this.isTerminal ? alignedTable({ ...listing, width: this.width }) : plainTable(listing)
    this.#stdout.write(lines.map((line) => `${line}\n`).join(''))
  }

  /** What happened, and what to do about it. */
  error(thrown: unknown): void {
    const error = asTidemarkError(thrown)
    const hint =
      error.hint ??
      (error.kind === 'bug' && !this.debug ? 'Run it again with --debug to see where.' : undefined)
    if (this.json) {
      const { message, code, kind } = error
      this.#stderr.write(`${safeJson({ error: { message, hint, code, kind } })}\n`)
    } else {
      this.#stderr.write(`tidemark: ${escapeLines(error.message)}\n`)
      if (hint) this.#noticeCommand(hint)
      if (hint) this.#stderr.write(`  ${escapeLines(hint).replaceAll('\n', '\n  ')}\n`)
    }
    if (this.debug) this.#stderr.write(`${escapeLines(stackOf(error))}\n`)
  }

  #noticeCommand(text: string): void {
    this.hasSaidCommand ||= COMMAND.test(text)
  }
}

/** `tidemark mail sync`, and not the name of a file. */
const COMMAND = /(?<![\w/.-])tidemark [a-z-]/

/** An error that was only wrapped to be printed has no story of its own. */
function stackOf(error: TidemarkError): string {
  const stacks: string[] = []
  let current: unknown = error
  const seen = new Set<unknown>()
  while (current instanceof Error && !seen.has(current)) {
    seen.add(current)
    // What other libraries say may quote what they were given.
    stacks.push(redactText(current.stack ?? current.message))
    current = current instanceof TidemarkError || 'cause' in current ? current.cause : undefined
  }
  return stacks.join('\ncaused by ')
}
