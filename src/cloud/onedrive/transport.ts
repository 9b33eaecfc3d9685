/**
 * One HTTP call: the token, the time-out, the way out. Knows nothing of Graph's methods.
 *
 * Invariants:
 * - the token goes to Graph's own origin and nowhere else; the addresses of sessions, downloads and monitors, which
 *   are keys themselves, get no token, and are https or of Graph's origin
 * - `timeoutMs` measures silence: while a body is sent, what the other side takes of it counts as being heard
 * - a call whose signal aborts rejects with the signal's reason at once
 * - a token that was refused is reported, and the call made once more with a new one
 * - when a call ends, its connection is free: read to its end, or closed
 */

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { type HttpAnswer, type HttpBody, type HttpExchange, isStream } from '../../base/http-exchange.ts'
import { SilenceWatch } from '../silence-watch.ts'
import type { TokenSource } from '../token-source.ts'
import { type Asked, answers, classify, strangeAddress } from './errors.ts'

export type TransportOptions = {
  exchange: HttpExchange
  clock: Clock
  /** With its version: `https://graph.microsoft.com/v1.0`. */
  apiUrl: string
  token: TokenSource
  timeoutMs: number
}

export type Call = {
  verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Under the API's address, with its query; whoever puts something into it encodes it. */
  path: string
  headers?: Record<string, string>
  body?: HttpBody
  /** Called while a body is sent, which may be read again only by asking anew. */
  bodyBytes?: number
}

/** To an address that the service gave: without a token. */
export type AddressCall = Omit<Call, 'path'> & { url: string; asked: Exclude<Asked, 'graph'> }

const TOKEN_ATTEMPTS_MAX = 2
const ERROR_BYTES_MAX = 64 * 1024
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ADDRESS_CHARS_MAX = 32_768
const unzip = promisify(gunzip)

export class Transport {
  readonly #options: TransportOptions
  readonly #api: URL

  constructor(options: TransportOptions) {
    this.#options = { ...options, apiUrl: options.apiUrl.replace(/\/+$/, '') }
    this.#api = new URL(options.apiUrl)
  }

  /** To Graph. An answer other than `expected` (by default all of success) becomes an error. */
  async open(
    call: Call,
    signal?: AbortSignal,
    expected: (status: number) => boolean = isSuccess,
  ): Promise<Answer> {
    const watch = this.#watch(signal)
    try {
      for (let attempt = 1; ; attempt++) {
        const access = await watch.unless(this.#options.token.access(watch.signal))
        const authorization = `Bearer ${access}`
        const answer = await this.#send(
          this.#urlOf(call.path),
          call,
          { authorization, ...GRAPH_HEADERS },
          watch,
        )
        if (expected(answer.status)) return answer
        const error = await this.#errorOf(answer, 'graph')
        if (answer.status !== 401) throw error
        this.#options.token.refused(access)
        // A body that streams is used up: the caller has to bring it anew.
        if (attempt >= TOKEN_ATTEMPTS_MAX || call.bodyBytes !== undefined) throw error
      }
    } catch (error) {
      watch.end()
      throw error
    }
  }

  /** To an address that the service gave. */
  async openAddress(call: AddressCall, signal?: AbortSignal, expected = isSuccess): Promise<Answer> {
    const url = this.transferUrl(call.url, call.asked === 'session' ? 'The upload' : 'The download')
    const watch = this.#watch(signal)
    try {
      const answer = await this.#send(url, call, TRANSFER_HEADERS, watch)
      if (expected(answer.status)) return answer
      throw await this.#errorOf(answer, call.asked)
    } catch (error) {
      watch.end()
      throw error
    }
  }

  /** The path of a link that Graph gave; throws where it leads elsewhere, since the token would go there. */
  pathOfLink(link: string): string {
    const url = link.length <= ADDRESS_CHARS_MAX ? URL.parse(link) : null
    const base = this.#api.pathname.replace(/\/+$/, '')
    if (url?.origin !== this.#api.origin || !url.pathname.startsWith(`${base}/`))
      throw strangeAddress('A link')
    return url.pathname.slice(base.length) + url.search
  }

  /** Where bytes of files may be sent to and fetched from. */
  transferUrl(address: string, what: string): string {
    const url = address.length <= ADDRESS_CHARS_MAX ? URL.parse(address) : null
    if (url?.protocol !== 'https:' && url?.origin !== this.#api.origin) throw strangeAddress(what)
    if (url.username || url.password) throw strangeAddress(what)
    return url.href
  }

  #urlOf(path: string): string {
    return `${this.#options.apiUrl}${path}`
  }

  #watch(caller: AbortSignal | undefined): SilenceWatch {
    return new SilenceWatch({ ...this.#options, caller, errors: answers })
  }

  async #send(
    url: string,
    call: Omit<Call, 'path'>,
    headers: Record<string, string>,
    watch: SilenceWatch,
  ): Promise<Answer> {
    const sent = this.#options.exchange({
      method: call.verb,
      url,
      headers: { ...headers, ...call.headers },
      body: isStream(call.body) ? watch.sending(call.body) : call.body,
      bodyBytes: call.bodyBytes,
      signal: watch.signal,
      onSent: () => watch.moved(),
    })
    return new Answer(await watch.hear(sent), watch)
  }

  async #errorOf(answer: Answer, asked: Asked): Promise<Error> {
    const { status, headers } = answer
    const body = await answer.beginning(ERROR_BYTES_MAX)
    return classify({ status, headers, body, asked, nowMs: this.#options.clock.now() })
  }
}

const GRAPH_HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'gzip',
  'user-agent': 'NONISV|Tidemark|tidemark',
}
const TRANSFER_HEADERS = {
  accept: '*/*',
  'accept-encoding': 'identity',
  'user-agent': 'NONISV|Tidemark|tidemark',
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** An answer whose body has yet to be read: by one of `json`, `beginning`, `stream`, `bytes`, `skip`. */
export class Answer {
  readonly status: number
  readonly headers: HttpAnswer['headers']
  readonly #watch: SilenceWatch
  readonly #body: HttpAnswer['body']
  #failure: { error: unknown } | undefined
  #wake: (() => void) | undefined
  #isListening = false

  constructor(answer: HttpAnswer, watch: SilenceWatch) {
    this.status = answer.status
    this.headers = answer.headers
    this.#watch = watch
    this.#body = answer.body
    this.#body.on('error', (error) => {
      this.#failure ??= { error }
    })
  }

  /** The body in the schema's form; `whenEmpty` in place of a body that has nothing. */
  async json<T>(schema: z.ZodType<T>, what: string, whenEmpty?: () => T): Promise<T> {
    const body = await this.#all(what)
    if (body.length === 0) {
      if (whenEmpty) return whenEmpty()
      throw answers.cutShort(what)
    }
    const type = this.headers.get('content-type')
    if (!/^application\/(?:[\w.+-]{1,40}\+)?json\b/i.test(type ?? ''))
      throw answers.wrongContentType(type, 'JSON')
    return answers.decode(schema, answers.parseJson(body.toString('utf8'), what), what)
  }

  /** The text, or as much of it as is asked for. An error whose text breaks off is still that error. */
  async beginning(bytesMax: number): Promise<string> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let ended = false
    try {
      while (bytes < bytesMax) {
        const chunk = await this.#next()
        ended = chunk === undefined
        if (!chunk) break
        chunks.push(chunk)
        bytes += chunk.length
      }
    } catch (error) {
      if (this.#watch.stopped) throw error
    } finally {
      if (!ended) this.#body.destroy()
    }
    const whole = Buffer.concat(chunks)
    const plain = this.#isZipped() && ended ? await unzipped(whole, bytesMax).catch(() => whole) : whole
    return plain.toString('utf8', 0, bytesMax)
  }

  /** Reads what nobody needs, so that the connection serves again. */
  async skip(): Promise<void> {
    await this.beginning(ERROR_BYTES_MAX)
    this.#watch.end()
  }

  /**
   * The body as it comes; nothing is read from the connection beyond what is taken from the stream. Fails where it
   * has other than `bytesExpected`.
   */
  stream(
    bytesExpected: number | undefined,
    onBytes: (bytes: number) => void | Promise<void>,
  ): ReadableStream<Uint8Array> {
    let bytes = 0
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const chunk = await this.#next()
            bytes += chunk?.length ?? 0
            if (bytesExpected !== undefined && (chunk ? bytes > bytesExpected : bytes < bytesExpected)) {
              throw answers.cutShort('the download')
            }
            if (!chunk) {
              this.#watch.end()
              controller.close()
              return
            }
            await onBytes(chunk.length)
            controller.enqueue(chunk)
          } catch (error) {
            this.leave()
            throw error
          }
        },
        cancel: () => this.leave(),
      },
      { highWaterMark: 0 },
    )
  }

  /** Nothing of it is wanted: closes the connection. */
  leave(): void {
    this.#watch.end()
    this.#body.destroy()
  }

  /** The whole body as it comes, for few bytes; fails where it has other than `bytesExpected`. */
  async bytes(bytesExpected: number): Promise<Buffer> {
    const body = await this.#raw('the download')
    if (body.length !== bytesExpected) throw answers.cutShort('the download')
    return body
  }

  async #all(what: string): Promise<Buffer> {
    const body = await this.#raw(what)
    if (!this.#isZipped() || body.length === 0) return body
    return await unzipped(body, ANSWER_BYTES_MAX).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') throw answers.tooLarge(what, ANSWER_BYTES_MAX)
      throw answers.damagedAnswer(what, 'it cannot be unpacked')
    })
  }

  async #raw(what: string): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    try {
      await this.#watch.hear(this.#collect(chunks, what))
    } catch (error) {
      this.#body.destroy()
      throw error
    } finally {
      this.#watch.end()
    }
    return Buffer.concat(chunks)
  }

  /** One wait for all: for small answers, of which there are many, this is cheaper than chunk by chunk. */
  #collect(chunks: Uint8Array[], what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let bytes = 0
      this.#body.on('data', (chunk: Uint8Array) => {
        this.#watch.moved()
        bytes += chunk.length
        if (bytes > ANSWER_BYTES_MAX) reject(answers.tooLarge(what, ANSWER_BYTES_MAX))
        else chunks.push(chunk)
      })
      this.#body.on('end', resolve)
      this.#body.on('close', () => reject(this.#failure?.error ?? new Error('The connection was closed')))
      if (this.#body.destroyed && !this.#body.readableEnded) reject(this.#failure?.error)
    })
  }

  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    for (const event of ['readable', 'end', 'close']) this.#body.on(event, () => this.#wake?.())
  }

  /** The next bytes; undefined at the end. */
  async #next(): Promise<Uint8Array | undefined> {
    this.#listen()
    for (;;) {
      if (this.#watch.signal.aborted) throw this.#watch.signal.reason
      const chunk = this.#body.read() as Uint8Array | null
      if (chunk !== null) return chunk
      if (this.#failure) throw answers.unreachable(this.#failure.error)
      if (this.#body.readableEnded) return undefined
      if (this.#body.destroyed) throw answers.unreachable(new Error('The connection was closed'))
      await this.#watch.hear(
        new Promise<void>((resolve) => {
          this.#wake = resolve
        }),
      )
    }
  }

  #isZipped(): boolean {
    return /^(?:x-)?gzip$/i.test(this.headers.get('content-encoding') ?? '')
  }
}

async function unzipped(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  return await unzip(bytes, { maxOutputLength: bytesMax })
}
