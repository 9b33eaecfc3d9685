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
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { createHttpExchange, type HttpExchange } from '../../base/http-exchange.ts'
import type { Value } from '../contract.ts'
import { AnswerError, ServerError, UnreadError } from './errors.ts'

/** Behind others the server lets a transaction wait for five seconds each. */
const ANSWER_MS_MAX = 60_000
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const URL_HINT =
  'Write it as libsql://NAME.turso.io, or http://HOST:PORT for a server of your own; the token goes to ledger.token.'

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
  if (parsed.username !== '' || parsed.search !== '' || parsed.hash !== '')
    throw new UsageError('The URL of a libSQL database holds no user, token or options.', { hint: URL_HINT })
  const scheme = parsed.protocol === 'libsql:' ? (tls === '0' ? 'http:' : 'https:') : parsed.protocol
  const path = parsed.pathname.replace(/\/$/, '')
  return {
    url: `${scheme}//${parsed.host}${path}`,
    where: `${parsed.protocol}//${parsed.host}${path}`,
    token,
  }
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

  async #post(url: string, body: string, answerMsMax: number): Promise<unknown> {
    if (this.#isClosed) throw closedError()
    this.usage.requests += 1
    const ending = new AbortController()
    this.#live.add(ending)
    const cancel = systemClock.timer(answerMsMax, () =>
      ending.abort(new AnswerError(`no answer within ${Math.round(answerMsMax / 1_000)} s`)),
    )
    try {
      const { token } = this.target
      const { status, body: answer } = await this.#exchange({
        method: 'POST',
        url: `${url}/v3/pipeline`,
        headers: {
          'content-type': 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body,
        signal: ending.signal,
      })
      const text = await readText(answer)
      if (status !== 200) throw refusal(status, text)
      return parseAnswer(text)
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
    if (bytes > ANSWER_BYTES_MAX) throw new AnswerError('an answer was larger than any that is expected')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new AnswerError('the answer is not one of a libSQL server', { cause })
  }
}

/** The server or a proxy before it; its words are cut short, since a proxy may send a whole page. */
function refusal(status: number, text: string): ServerError {
  const told = toldBy(text)
  const message = (told.message ?? text.trim()).slice(0, 300) || `HTTP ${status}`
  return new ServerError(message, { status, code: told.code })
}

function toldBy(text: string): { message?: string; code?: string } {
  try {
    const told: unknown = JSON.parse(text)
    if (typeof told === 'string') return { message: told }
    const { message, error, code } = told as { message?: unknown; error?: unknown; code?: unknown }
    const words = [message, error].find((one) => typeof one === 'string')
    return { message: words as string | undefined, code: typeof code === 'string' ? code : undefined }
  } catch {
    return {}
  }
}

type Post = (url: string, body: string, answerMsMax: number) => Promise<unknown>

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
    try {
      return await this.#once(steps, options)
    } catch (thrown) {
      if (thrown instanceof UnreadError) throw thrown
      const isGone = this.#baton !== null && thrown instanceof ServerError && thrown.isLostStream
      this.forget()
      if (!options.isFirst || !isGone) throw thrown
      return this.#once(steps, options)
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
    const answer = (await this.#post(this.#url, body, options.answerMsMax ?? ANSWER_MS_MAX)) as PipelineAnswer
    this.#baton = answer.baton ?? null
    // The server may want to be asked elsewhere for what is on this stream.
    this.#url = answer.base_url ?? this.#url
    return this.#read(answer, steps.length)
  }

  #read({ results }: PipelineAnswer, count: number): BatchAnswer {
    const batch = results?.[0]
    if (!batch) throw new AnswerError('the answer is not one of a libSQL server')
    if (batch.type === 'error') throw batchError(batch.error)
    const { step_results, step_errors } = batch.response.result
    const errors = Array.from({ length: count }, (_, at) => {
      const error = step_errors[at]
      return error ? new ServerError(error.message, { code: error.code ?? undefined }) : undefined
    })
    const decoded = Array.from({ length: count }, (_, at) => this.#result(step_results[at]))
    const state = results.at(-1)
    const isOpen = state?.type === 'ok' && state.response.is_autocommit === false
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

function batchError({ message, code }: RawError): ServerError {
  const isUnread = /^(?:SQL_|ARGS_)/.test(code ?? '')
  return new (isUnread ? UnreadError : ServerError)(message, { code: code ?? undefined })
}

/** The server's words; what is not in them here is not used. */
type PipelineAnswer = {
  baton?: string | null
  base_url?: string | null
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

/** A number is a float, as node:sqlite has it: the same statement means the same on both. */
function encode(value: Value): object {
  if (value === null) return { type: 'null' }
  if (typeof value === 'number') return { type: 'float', value }
  if (typeof value === 'string') return { type: 'text', value }
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
