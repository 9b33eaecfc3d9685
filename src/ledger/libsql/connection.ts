/**
 * From a URL to streams: hrana 3 over HTTP, which libsql-server and Turso speak. A stream is a connection to SQLite on
 * the server. The server names it by a baton that changes with every answer, so a stream has one request at a time;
 * left alone for some ten seconds, or by a restart, it is gone, and whatever transaction it had with it.
 *
 * By hand instead of @libsql/client, which brings a native library that is not needed here, and sends statements that
 * belong together without the condition that those before them were run.
 *
 * The token stays inside `Target`; `where` is what people and logs get to see.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { createHttpExchange, type HttpExchange } from '../../base/http-exchange.ts'
import type { Value } from '../contract.ts'
import {
  AnswerError,
  NO_TOKEN,
  ServerError,
  serverError,
  TOO_LARGE,
  TooLargeError,
  UNHELD,
  UnreadError,
} from './errors.ts'

/** Behind others the server lets a transaction wait for five seconds each. */
const ANSWER_MS_MAX = 60_000
/** Of a page of rows this is never near; a process should not have to hold more at once. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024
/** Before what was refused the lock is sent again. */
export const REFUSED_PAUSE_MS = 20
/** A server that has too much to do says so, after seconds of its own, and may have less a moment later. */
const BUSY_MS_MAX = 60_000
const BUSY_PAUSE_MS = 500
const URL_HINT =
  'Write it as libsql://NAME.turso.io, or http://HOST:PORT for a server of your own; the token goes to ledger.token.'
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

export type Target = { url: string; where: string; token: string | undefined }

export function parseTarget(url: string, token: string | undefined): Target {
  let parsed: URL | undefined
  try {
    parsed = new URL(url)
  } catch {
    // The error would quote the URL, and with it what may be a secret.
  }
  if (!parsed || !/^(?:libsql|https?):$/.test(parsed.protocol) || parsed.hostname === '')
    throw new UsageError('The URL of the libSQL database cannot be read.', { hint: URL_HINT })
  const tls = parsed.searchParams.get('tls')
  parsed.searchParams.delete('tls')
  if (`${parsed.username}${parsed.password}${parsed.search}${parsed.hash}` !== '')
    throw new UsageError('The URL of a libSQL database holds no user, token or options.', { hint: URL_HINT })
  const isAsked = parsed.protocol === 'libsql:' && tls === '0'
  const scheme = parsed.protocol === 'libsql:' ? (isAsked ? 'http:' : 'https:') : parsed.protocol
  const path = parsed.pathname.replace(/\/$/, '')
  const secret = usableToken(token)
  if (secret !== undefined && scheme === 'http:' && !isAsked && !LOOPBACK.test(parsed.hostname))
    throw new UsageError(`The token would travel to ${parsed.host} for everybody on the way to read.`, {
      hint: `Write https:// in ledger.url; or, on a network that nobody else listens to, libsql://${parsed.host}${path}?tls=0.`,
    })
  return {
    url: `${scheme}//${parsed.host}${path}`,
    where: `${parsed.protocol}//${parsed.host}${path}`,
    token: secret,
  }
}

/** As a header can have it: out of a file or a variable it may come with the end of its line. */
function usableToken(token: string | undefined): string | undefined {
  const bare = token?.trim()
  if (bare === undefined || bare === '') return undefined
  if (/^[\x21-\x7e]+$/.test(bare)) return bare
  throw new UsageError('ledger.token is no token: it has blanks, or characters that no token has.', {
    hint: 'Take it as the server gave it out, without quotes or a name before it: tidemark config set ledger.token',
  })
}

export type Step = {
  sql: string
  args?: readonly Value[]
  /**
   * When it is run: `always`, the default; `open`, if the one before it was and a transaction is under way; `begun`, if
   * the first one was.
   */
  when?: 'always' | 'open' | 'begun'
}

export type StepResult = {
  columns: readonly string[]
  /** Read by whoever asked for them: a number that JavaScript does not have is their trouble alone. */
  rows: () => Value[][]
  changes: number
  /** As they are billed; a server that passes writes on to another one tells none. */
  rowsRead: number
  rowsWritten: number
}

/** Of each step its result, or its error, or neither where it was not run. */
export type BatchAnswer = {
  results: (StepResult | undefined)[]
  errors: (ServerError | undefined)[]
  /** A transaction is under way. */
  isOpen: boolean
}

export type BatchOptions = {
  /** Nothing of what it builds on is on the stream: where that is gone, a new one does as well. */
  isFirst: boolean
  /** What was begun only for looking ends with it. */
  thenRollBack?: boolean
  answerMsMax?: number
}

/** What was asked of the server so far. */
export type Usage = { requests: number; rowsRead: number; rowsWritten: number }

export class Connection {
  readonly target: Target
  readonly usage: Usage = { requests: 0, rowsRead: 0, rowsWritten: 0 }
  readonly #exchange: HttpExchange & { close(): void }
  /** Of the requests that are under way. */
  readonly #live = new Set<AbortController>()
  #isClosed = false

  constructor(target: Target) {
    this.target = target
    this.#exchange = createHttpExchange()
  }

  /** What is under way ends without an answer, and nothing more is sent. */
  close(): void {
    this.#isClosed = true
    for (const one of this.#live) one.abort(closedError())
    this.#exchange.close()
  }

  stream(): Stream {
    return new Stream((url, body, answerMsMax) => this.#post(url, body, answerMsMax), this)
  }

  /** The text of the answer. */
  async #post(url: string, body: string, answerMsMax: number): Promise<string> {
    if (this.#isClosed) throw closedError()
    this.usage.requests += 1
    const ending = new AbortController()
    this.#live.add(ending)
    const cancel = systemClock.timer(answerMsMax, () =>
      ending.abort(new AnswerError(`no answer within ${Math.round(answerMsMax / 1_000)} s`)),
    )
    try {
      const { token } = this.target
      const {
        status,
        headers,
        body: answer,
      } = await this.#exchange({
        method: 'POST',
        url,
        headers: {
          'content-type': 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body,
        signal: ending.signal,
      })
      const text = await readText(answer)
      if (status === 200) return text
      if (status >= 300 && status < 400) throw redirection(status, { to: headers.get('location'), from: url })
      throw refusal(status, text, token)
    } finally {
      cancel()
      this.#live.delete(ending)
    }
  }
}

function closedError(): ServerError {
  return new ServerError('the ledger was closed', { code: 'CLOSED' })
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > ANSWER_BYTES_MAX)
      throw new ServerError(`an answer of more than ${ANSWER_BYTES_MAX / 1024 / 1024} MB`, { code: UNHELD })
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Reads an answer; where that is not what it is taken for, somebody else has answered. */
function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof ServerError || cause instanceof AnswerError) throw cause
    throw strangeAnswer(cause)
  }
}

function strangeAnswer(cause?: unknown): AnswerError {
  return new AnswerError('the answer is not one of a libSQL server', { cause })
}

/** None is followed: the token is for the place that was named. */
function redirection(status: number, { to, from }: { to: string | null; from: string }): ServerError {
  const place = to !== null && URL.canParse(to, from) ? new URL(to, from).origin : 'another place'
  return new ServerError(`it sends us on to ${place}, which is not followed`, { status })
}

/** The server or a proxy before it; its words are cut short, since a proxy may send a whole page. */
function refusal(status: number, text: string, token: string | undefined): ServerError {
  // Somebody on the way may repeat what it was sent.
  const told = toldBy(token === undefined ? text : text.replaceAll(token, '***'))
  const message = told.message.slice(0, 300) || `HTTP ${status}`
  const isAsked = status === 401 && token === undefined
  return new ServerError(message, { status, code: isAsked ? NO_TOKEN : told.code })
}

function toldBy(text: string): { message: string; code?: string | undefined } {
  try {
    const told: unknown = JSON.parse(text)
    if (typeof told === 'string') return { message: told }
    const { message, error, code } = told as { message?: unknown; error?: unknown; code?: unknown }
    const words = [message, error].find((one) => typeof one === 'string')
    if (typeof words === 'string')
      return { message: words, code: typeof code === 'string' ? code : undefined }
  } catch {
    // A page, or words.
  }
  return { message: text.trim() }
}

type Post = (url: string, body: string, answerMsMax: number) => Promise<string>

/** A kept connection that was closed just when it was used again. */
const CLOSED = /^(?:ECONNRESET|EPIPE)$/

export class Stream {
  readonly #post: Post
  readonly #connection: Connection
  #baton: string | null = null
  #url: string

  constructor(post: Post, connection: Connection) {
    this.#post = post
    this.#connection = connection
    this.#url = connection.target.url
  }

  /** Throws if there was no answer, or one that refuses all of it: then nothing is known of the steps. */
  async batch(steps: readonly Step[], options: BatchOptions): Promise<BatchAnswer> {
    const untilMs = systemClock.monotonicMs() + BUSY_MS_MAX
    for (;;) {
      try {
        return await this.#anew(steps, options)
      } catch (thrown) {
        // It has opened no stream for us: nothing of what was asked was done.
        const isBusy = thrown instanceof ServerError && thrown.status === 429
        if (!isBusy || !options.isFirst || systemClock.monotonicMs() > untilMs) throw thrown
        await sleep(systemClock, BUSY_PAUSE_MS)
      }
    }
  }

  /** On a new stream where that of before is gone, and nothing builds on it. */
  async #anew(steps: readonly Step[], options: BatchOptions): Promise<BatchAnswer> {
    try {
      return await this.#once(steps, options)
    } catch (thrown) {
      if (thrown instanceof UnreadError || thrown instanceof TooLargeError) throw thrown
      const isGone = this.#baton !== null && thrown instanceof ServerError && thrown.isLostStream
      // What only looks can be asked twice.
      const isCut = options.thenRollBack === true && CLOSED.test((thrown as NodeJS.ErrnoException).code ?? '')
      this.forget()
      if (!options.isFirst || !(isGone || isCut)) throw thrown
      return this.#once(steps, options)
    }
  }

  /**
   * All rows of a SELECT, however many: an answer to `batch` has a limit on the server. Only in a transaction that is
   * under way.
   */
  async rows({ sql, args }: Step): Promise<StepResult> {
    const body = JSON.stringify({ baton: this.#baton, batch: { steps: [encodeStep({ sql, args }, 0)] } })
    try {
      const text = await this.#post(`${this.#url}/v3/cursor`, body, ANSWER_MS_MAX)
      return reading(() => {
        const [head, ...entries] = text.trimEnd().split('\n')
        this.#follow(JSON.parse(head!) as Place)
        return this.#result(readCursor(entries))!
      })
    } catch (thrown) {
      this.forget()
      throw thrown
    }
  }

  /** The next batch is on a new stream; the server ends this one by itself. */
  forget(): void {
    this.#baton = null
    this.#url = this.#connection.target.url
  }

  async #once(steps: readonly Step[], options: BatchOptions): Promise<BatchAnswer> {
    const requests: object[] = [{ type: 'batch', batch: { steps: steps.map(encodeStep) } }]
    if (options.thenRollBack) requests.push({ type: 'execute', stmt: { sql: 'ROLLBACK', want_rows: false } })
    requests.push({ type: 'get_autocommit' })
    const body = JSON.stringify({ baton: this.#baton, requests })
    const text = await this.#post(`${this.#url}/v3/pipeline`, body, options.answerMsMax ?? ANSWER_MS_MAX)
    return reading(() => {
      const answer = JSON.parse(text) as PipelineAnswer
      this.#follow(answer)
      return this.#read(answer, steps.length)
    })
  }

  /**
   * The server may want to be asked elsewhere for what is on this stream. Not where others can listen, though; and a
   * token goes nowhere else because of an answer that anybody on the way could have written.
   */
  #follow({ baton, base_url: url }: Place): void {
    this.#baton = baton ?? null
    if (url == null) return
    const { url: named, token } = this.#connection.target
    const isNamed = URL.canParse(url) && new URL(url).origin === new URL(named).origin
    const isEncrypted = named.startsWith('https:')
    if (isEncrypted && !url.startsWith('https:'))
      throw new AnswerError('it wants to be asked without encryption')
    if (!isEncrypted && !isNamed && token !== undefined)
      throw new AnswerError('without encryption, it wants the token to be sent elsewhere')
    this.#url = url.replace(/\/$/, '')
  }

  #read({ results }: PipelineAnswer, count: number): BatchAnswer {
    const batch = results?.[0]
    if (!batch) throw strangeAnswer()
    const state = results.at(-1)
    const isOpen = state?.type === 'ok' && state.response.is_autocommit === false
    if (batch.type === 'error') throw batchError(batch.error, isOpen)
    const { step_results, step_errors } = batch.response.result
    const errors = Array.from({ length: count }, (_, at) => {
      const error = step_errors[at]
      return error ? serverError(error) : undefined
    })
    const decoded = Array.from({ length: count }, (_, at) => this.#result(step_results[at]))
    return { results: decoded, errors, isOpen }
  }

  #result(raw: RawResult | null | undefined): StepResult | undefined {
    if (!raw) return undefined
    const rowsRead = raw.rows_read ?? 0
    const rowsWritten = raw.rows_written ?? 0
    this.#connection.usage.rowsRead += rowsRead
    this.#connection.usage.rowsWritten += rowsWritten
    return {
      columns: raw.cols.map(({ name }) => name ?? ''),
      rows: () => raw.rows.map((row) => row.map(decode)),
      changes: raw.affected_row_count,
      rowsRead,
      rowsWritten,
    }
  }
}

/** Of one step: its columns, its rows, its end. */
function readCursor(lines: readonly string[]): RawResult {
  const result: RawResult = { cols: [], rows: [], affected_row_count: 0 }
  let isWhole = false
  for (const line of lines) {
    const entry = JSON.parse(line) as CursorEntry
    if (entry.error) throw serverError(entry.error)
    if (entry.type === 'step_begin') result.cols = entry.cols!
    if (entry.type === 'row') result.rows.push(entry.row!)
    isWhole ||= entry.type === 'step_end'
  }
  if (!isWhole) throw new AnswerError('the answer ends before its end')
  return result
}

function batchError(raw: RawError, isOpen: boolean): ServerError {
  const error = serverError(raw)
  const { message, code } = error
  if (/^(?:SQL_|ARGS_)/.test(code ?? '')) return new UnreadError(message, { code })
  return code === TOO_LARGE ? new TooLargeError(message, { code, isOpen }) : error
}

/** The server's words; what is not in them here is not used. */
type Place = { baton?: string | null; base_url?: string | null }
type PipelineAnswer = Place & {
  results?: (
    | {
        type: 'ok'
        response: {
          result: { step_results: (RawResult | null)[]; step_errors: (RawError | null)[] }
          is_autocommit?: boolean
        }
      }
    | { type: 'error'; error: RawError }
  )[]
}
type RawError = { message: string; code?: string | null }
type CursorEntry = { type: string; cols?: RawResult['cols']; row?: RawValue[]; error?: RawError }
type RawResult = {
  cols: { name: string | null }[]
  rows: RawValue[][]
  affected_row_count: number
  rows_read?: number
  rows_written?: number
}
type RawValue =
  | { type: 'null' }
  | { type: 'integer'; value: string }
  | { type: 'float'; value: number }
  | { type: 'text'; value: string }
  | { type: 'blob'; base64: string }

const IS_OPEN = { type: 'not', cond: { type: 'is_autocommit' } }

function encodeStep({ sql, args = [], when = 'always' }: Step, at: number): object {
  const stmt = { sql, args: args.map(encode) }
  if (when === 'always') return { stmt }
  if (when === 'begun') return { stmt, condition: { type: 'ok', step: 0 } }
  const condition = at === 0 ? IS_OPEN : { type: 'and', conds: [{ type: 'ok', step: at - 1 }, IS_OPEN] }
  return { stmt, condition }
}

/**
 * As node:sqlite has it, so that the same statement means the same on both: a number is a float, none is NULL, and half
 * of a surrogate pair is the character for what cannot be written. The server reads no request with such a half in it.
 */
function encode(value: Value): object {
  if (value === null || Number.isNaN(value)) return { type: 'null' }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError(`${value} cannot be sent to a libSQL server`)
    return { type: 'float', value }
  }
  if (typeof value === 'string') return { type: 'text', value: value.toWellFormed() }
  if (typeof value === 'bigint') return { type: 'integer', value: String(value) }
  const { buffer, byteOffset, byteLength } = value
  return { type: 'blob', base64: Buffer.from(buffer, byteOffset, byteLength).toString('base64') }
}

function decode(raw: RawValue): Value {
  switch (raw.type) {
    case 'null':
      return null
    case 'integer':
      return toNumber(raw.value)
    case 'blob':
      return Buffer.from(raw.base64, 'base64')
    default:
      return raw.value
  }
}

function toNumber(text: string): number {
  const n = Number(text)
  if (!Number.isSafeInteger(n)) throw new RangeError(`${text} is too large to be a number in JavaScript`)
  return n
}

/** The server's time; see server-clock.ts. Of the primary, like every look. */
export async function serverMs(stream: Stream, answerMsMax?: number): Promise<number> {
  const sql = `SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)`
  const { results, errors } = await stream.batch([{ sql: 'BEGIN' }, { sql, when: 'begun' }], {
    isFirst: true,
    thenRollBack: true,
    answerMsMax,
  })
  const error = errors.find((one) => one !== undefined)
  if (error) throw error
  return Number(results[1]!.rows()[0]![0])
}
