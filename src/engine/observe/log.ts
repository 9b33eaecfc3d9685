/**
 * Logs: one line per happening, for people (`pretty`) or programs (`json`), never with a secret in it.
 *
 * The level is shared by a logger and all its children and can be changed while running. A line below the level
 * costs one comparison. What is written has gone through redaction.ts, texts and fields alike.
 */
import type { Clock } from '../../base/clock.ts'
import { redactFields, redactText } from '../../base/redaction.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export type LogFields = Record<string, unknown>
export type LogFormat = 'pretty' | 'json'

export type Logger = {
  /** Of this logger, its parents and its children. */
  level: LogLevel
  enabled(level: LogLevel): boolean
  log(level: LogLevel, message: string, fields?: LogFields): void
  trace(message: string, fields?: LogFields): void
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A logger whose lines all carry these fields. */
  child(fields: LogFields): Logger
}

export type LoggerOptions = {
  clock: Clock
  /** Such as process.stderr. */
  stream: { write(text: string): unknown; isTTY?: boolean }
  level?: LogLevel
  format?: LogFormat
  /** Left out: colour on a terminal, none elsewhere. */
  colour?: boolean
}

type Writer = (level: LogLevel, message: string, fields: LogFields) => void
type Threshold = { level: LogLevel; rank: number }

const RANKS: Record<LogLevel, number> = { trace: 0, debug: 1, info: 2, warn: 3, error: 4 }

export async function createLogger(options: LoggerOptions): Promise<Logger> {
  const level = options.level ?? 'info'
  const threshold: Threshold = { level, rank: RANKS[level] }
  const write = options.format === 'json' ? await jsonWriter(options) : prettyWriter(options, threshold)
  return new LevelLogger(write, threshold, {})
}

/** Writes nothing; for those who were given no logger. */
export const silentLogger: Logger = {
  level: 'error',
  enabled: () => false,
  log() {},
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
}

class LevelLogger implements Logger {
  readonly #write: Writer
  readonly #threshold: Threshold
  readonly #bound: LogFields

  constructor(write: Writer, threshold: Threshold, bound: LogFields) {
    this.#write = write
    this.#threshold = threshold
    this.#bound = bound
  }

  get level(): LogLevel {
    return this.#threshold.level
  }

  set level(level: LogLevel) {
    this.#threshold.level = level
    this.#threshold.rank = RANKS[level]
  }

  enabled(level: LogLevel): boolean {
    return RANKS[level] >= this.#threshold.rank
  }

  log(level: LogLevel, message: string, fields?: LogFields): void {
    if (RANKS[level] < this.#threshold.rank) return
    this.#write(
      level,
      redactText(message),
      fields ? { ...this.#bound, ...redactFields(fields) } : this.#bound,
    )
  }

  trace(message: string, fields?: LogFields): void {
    this.log('trace', message, fields)
  }

  debug(message: string, fields?: LogFields): void {
    this.log('debug', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.log('info', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.log('warn', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.log('error', message, fields)
  }

  child(fields: LogFields): Logger {
    return new LevelLogger(this.#write, this.#threshold, { ...this.#bound, ...redactFields(fields) })
  }
}

/** pino is loaded only here: 19 ms that a short command need not spend. */
async function jsonWriter({ stream, clock }: LoggerOptions): Promise<Writer> {
  const { pino } = await import('pino')
  const lines = pino(
    {
      level: 'trace',
      base: null,
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => void stream.write(line) },
  )
  // Names that the line itself uses would stand in it twice.
  return (level, message, { level: _level, time: _time, msg: _msg, ...fields }) =>
    lines[level](fields, message)
}

const COLOURS: Record<LogLevel, string> = { trace: '90', debug: '90', info: '32', warn: '33', error: '31' }

function prettyWriter({ stream, clock, ...options }: LoggerOptions, threshold: Threshold): Writer {
  const colour = options.colour ?? stream.isTTY === true
  const paint = (code: string, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  return (level, message, fields) => {
    const time = paint('90', new Date(clock.now()).toISOString())
    const label = paint(COLOURS[level], level.toUpperCase().padEnd(5))
    const { text, stack } = prettyFields(fields)
    const tail = text && ` ${paint('90', text)}`
    stream.write(`${time} ${label} ${oneLine(message)}${tail}\n`)
    // Traces are for those who asked for details.
    if (stack && threshold.rank <= RANKS.debug) {
      for (const line of stack.split('\n').slice(1)) stream.write(`    ${oneLine(line.trim())}\n`)
    }
  }
}

function prettyFields(fields: LogFields): { text: string; stack: string | undefined } {
  let stack: string | undefined
  const parts: string[] = []
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue
    const error = asErrorFields(value)
    stack ??= error?.stack
    parts.push(`${oneLine(key)}=${prettyValue(error ? error.message : value)}`)
  }
  return { text: parts.join(' '), stack }
}

function asErrorFields(value: unknown): { message: string; stack?: string } | undefined {
  if (typeof value !== 'object' || value === null || !('message' in value)) return undefined
  const { message, stack } = value as { message: unknown; stack?: unknown }
  if (typeof message !== 'string') return undefined
  return { message, stack: typeof stack === 'string' ? stack : undefined }
}

function prettyValue(value: unknown): string {
  if (typeof value === 'string')
    return /^[^\s"=]+$/.test(value) ? oneLine(value) : oneLine(JSON.stringify(value))
  return oneLine(JSON.stringify(value) ?? String(value))
}

/** A file name or a server's answer may hold control characters: they must neither forge lines nor steer a terminal. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => {
    if (char === '\n') return '\\n'
    return char === '\t' ? ' ' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
