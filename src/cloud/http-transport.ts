/**
 * One HTTP call: the token, the time-out, the way out. Knows nothing of a service's methods.
 *
 * Invariants:
 * - `timeoutMs` measures silence: it runs only while we wait for the service, never while the answer's reader
 *   is busy, so a slow disk is not taken for a dead connection
 * - a call whose signal aborts rejects with the signal's reason at once, whatever fetch does
 * - a token that was refused is reported, and the call made once more with a new one
 * - when a call ends, its connection is free: read to its end, or closed
 */

import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import type { AnswerErrors, ErrorAnswer } from './answer-errors.ts'
import type { Fetch } from './oauth.ts'
import { SilenceWatch } from './silence-watch.ts'
import type { TokenSource } from './token-source.ts'

export type { TokenSource } from './token-source.ts'

/** What a service calls its failures. */
export type TransportErrors = Pick<
  AnswerErrors,
  'cutShort' | 'timedOut' | 'tooLarge' | 'unreachable' | 'wrongContentType'
> & { classify(answer: ErrorAnswer): TidemarkError }

export type TransportOptions = {
  fetch: Fetch
  clock: Clock
  apiUrl: string
  token: TokenSource
  timeoutMs: number
  errors: TransportErrors
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

export type HttpCall = {
  verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Of plain characters: whoever puts something into it encodes it. */
  path: string
  query?: Query
  body?: string | Uint8Array<ArrayBuffer>
  contentType?: string
  headers?: Readonly<Record<string, string>>
}

const TOKEN_ATTEMPTS_MAX = 2
const ERROR_BYTES_MAX = 64 * 1024
/** Nothing is heard while a body is sent, so a slow line gets this much time on top. */
const UPLOAD_BYTES_PER_S_MIN = 32 * 1024
/** After the last byte that matters: how long the end of the answer is awaited to keep the connection. */
const EPILOGUE_MS = 1_000

export class Transport {
  readonly #options: TransportOptions

  constructor(options: TransportOptions) {
    this.#options = { ...options, apiUrl: options.apiUrl.replace(/\/+$/, '') }
  }

  /** `read` gets the answer if its status says success; what else there is becomes an error. */
  async send<T>(call: HttpCall, read: (answer: Answer) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { answer, end } = await this.open(call, signal)
    try {
      return await read(answer)
    } finally {
      end()
    }
  }

  /** The same for an answer that is read bit by bit: whoever opens it ends it. */
  async open(call: HttpCall, signal?: AbortSignal): Promise<{ answer: Answer; end(): void }> {
    const watch = new SilenceWatch({ ...this.#options, caller: signal })
    try {
      const answer = await this.#open(call, watch)
      return {
        answer,
        end: () => {
          answer.leave()
          watch.end()
        },
      }
    } catch (thrown) {
      watch.end()
      throw thrown
    }
  }

  async #open(call: HttpCall, watch: SilenceWatch): Promise<Answer> {
    const { token, clock, errors } = this.#options
    for (let attempt = 1; ; attempt++) {
      const access = await watch.unless(token.access(watch.signal))
      const response = await this.#fetch(call, access, watch)
      const answer = new Answer(response, { watch, errors, refuseToken: () => token.refused(access) })
      if (answer.status >= 200 && answer.status < 300) return answer
      const body = await answer.beginning(ERROR_BYTES_MAX)
      answer.leave()
      if (answer.status === 401) {
        answer.refuseToken()
        if (attempt < TOKEN_ATTEMPTS_MAX) continue
      }
      throw errors.classify({ status: answer.status, body, headers: answer.headers, nowMs: clock.now() })
    }
  }

  async #fetch(call: HttpCall, access: string, watch: SilenceWatch): Promise<Response> {
    const { fetch, apiUrl, timeoutMs } = this.#options
    const headers: Record<string, string> = {
      authorization: `Bearer ${access}`,
      accept: '*/*',
      // Google compresses only for clients that say it twice.
      'user-agent': 'tidemark (gzip)',
      ...call.headers,
    }
    if (call.contentType) headers['content-type'] = call.contentType
    const uploadMs = ((call.body?.length ?? 0) / UPLOAD_BYTES_PER_S_MIN) * 1_000
    return await watch.hear(
      fetch(`${apiUrl}${call.path}${queryText(call.query)}`, {
        method: call.verb,
        headers,
        body: call.body,
        // The token goes where it was meant to go, and nowhere else.
        redirect: 'manual',
        signal: watch.signal,
      }),
      timeoutMs + uploadMs,
    )
  }
}

/** An answer whose body has yet to be read. */
export class Answer {
  readonly status: number
  readonly headers: Headers
  readonly refuseToken: () => void
  readonly #watch: SilenceWatch
  readonly #errors: TransportErrors
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #ended: boolean

  constructor(
    response: Response,
    call: { watch: SilenceWatch; errors: TransportErrors; refuseToken: () => void },
  ) {
    this.status = response.status
    this.headers = response.headers
    this.refuseToken = call.refuseToken
    this.#watch = call.watch
    this.#errors = call.errors
    this.#reader = response.body?.getReader()
    this.#ended = this.#reader === undefined
  }

  get contentType(): string | null {
    return this.headers.get('content-type')
  }

  /** The next bytes; undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#ended || !this.#reader) return undefined
    const { done, value } = await this.#watch.hear(this.#reader.read())
    if (done) this.#ended = true
    return value
  }

  /** The body, which says that it is JSON; calls that change many messages at once answer with nothing. */
  async jsonBytes(what: string, bytesMax: number): Promise<Buffer> {
    const chunks = await this.#read(bytesMax)
    if (!chunks) throw this.#errors.tooLarge(what, bytesMax)
    const body = Buffer.concat(chunks)
    const isJson = /^application\/(?:[\w.+-]{1,40}\+)?json\b/i.test(this.contentType ?? '')
    if (!isJson && body.length > 0) throw this.#errors.wrongContentType(this.contentType, 'JSON')
    const isNothing = this.status === 204 || this.headers.get('content-length') === '0'
    if (isJson && body.length === 0 && !isNothing) throw this.#errors.cutShort(what)
    return body
  }

  /** The text, or as much of it as is asked for. An error whose text breaks off is still that error. */
  async beginning(bytesMax: number): Promise<string> {
    const chunks: Uint8Array[] = []
    try {
      for (let bytes = 0; bytes < bytesMax; ) {
        const chunk = await this.next()
        if (!chunk) break
        chunks.push(chunk)
        bytes += chunk.length
      }
    } catch (error) {
      if (this.#watch.stopped || !(error instanceof TidemarkError)) throw error
    }
    return Buffer.concat(chunks).toString('utf8', 0, bytesMax)
  }

  /** All that matters was read: waits for the end just long enough to keep the connection. */
  async finish(): Promise<void> {
    if (this.#ended || !this.#reader) return
    try {
      const { done } = await this.#watch.hear(this.#reader.read(), EPILOGUE_MS)
      this.#ended = done
    } catch (error) {
      // Nothing is missing: whether the connection can be used again is all that this was about.
      if (this.#watch.stopped) throw error
    }
  }

  /** Closes the connection unless the answer was read to its end. */
  leave(): void {
    if (this.#ended) return
    this.#ended = true
    // It may have failed already, which whoever was reading has heard of.
    this.#reader?.cancel().catch(() => undefined)
  }

  async #read(bytesMax: number): Promise<Uint8Array[] | undefined> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    for (let chunk = await this.next(); chunk; chunk = await this.next()) {
      bytes += chunk.length
      if (bytes > bytesMax) return undefined
      chunks.push(chunk)
    }
    return chunks
  }
}

function queryText(query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one))
  }
  return search.size > 0 ? `?${search}` : ''
}
