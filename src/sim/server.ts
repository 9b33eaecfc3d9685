/**
 * The HTTP server of the simulated cloud: reads a call, asks the services whose it is, lets faults happen
 * to it, and answers. On the loopback address only.
 *
 * A string in an answer's body is ASCII and is written byte for byte; other text comes as a Buffer. That
 * spares the hot path (raw mail in base64) a second look at every character.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, sleep } from '../base/clock.ts'
import type { FaultEffect } from './fault-rules.ts'
import type { FaultPlan, Faults, Refusal } from './faults.ts'

export type SimCall = {
  verb: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** The scheme and host by which the caller came, also through a proxy: addresses in answers begin with it. */
  origin: string
  body: Buffer
  /** The body as it came, for an operation that `takesChunks`; `body` is empty then. */
  chunks?: readonly Buffer[]
}

/** Bytes that are made while they leave, so that a gigabyte needs no gigabyte. */
export type StreamBody = { bytes: number; read(): Iterable<Buffer> }

export type AnswerBody = string | Buffer | readonly (string | Buffer)[] | StreamBody

export type SimAnswer = {
  status: number
  headers?: Record<string, string>
  body: AnswerBody
  /** The whole answer has left: what it says is known to the caller now. */
  onSent?: () => void
}

/** One call, understood but not yet worked on. */
export type Operation = {
  /** `messages.list`, `batch`, `oauth.token`: what faults and counters call it. */
  name: string
  account?: string | undefined
  isNextPage?: boolean
  /** Ids of what it is about, for faults that strike one thing only. */
  targets?: readonly string[]
  /** Faults leave it alone: the control API. */
  isExempt?: boolean
  /** The body is not put together: one copy of every byte less. */
  takesChunks?: boolean
  /** A longer body is refused; 160 MiB otherwise. */
  bodyBytesMax?: number
  run(plan?: FaultPlan): SimAnswer | Promise<SimAnswer>
  /** An error in the service's own shape. */
  refuse(refusal: Refusal): SimAnswer
  effect?(effect: FaultEffect): void
  /** Before anything else: an answer that ends it here, or what to do when the exchange is over. */
  admit?(): SimAnswer | (() => void) | undefined
  /** For how long the answer's headers are held back; null: until the caller gives up. */
  stall?(): number | null | undefined
}

/** Undefined: the call is for somebody else. */
export type Routes = { match(call: SimCall): Operation | undefined }

export type NamedRoutes = Routes & { service: string }

export type SimServer = { port: number; origin: string; close(): Promise<void> }

export type ServedCall = { atMs: number; operation: string; account?: string; status: number; fault?: string }

export type ServerOptions = {
  port?: number
  routes: readonly NamedRoutes[]
  faults: Faults
  clock: Clock
  onServed?: (served: ServedCall) => void
  /** Bytes of bodies, as they come and go. */
  onBytes?: (operation: string, bytes: { received?: number; sent?: number }) => void
}

const HOST = '127.0.0.1'
const BODY_BYTES_MAX = 160 * 2 ** 20
const KEEP_ALIVE_MS = 60_000
/** What is made while it leaves and is no longer than this leaves with its headers, by one write. */
const TOGETHER_BYTES_MAX = 64 * 1024

export async function startServer(options: ServerOptions): Promise<SimServer> {
  const stop = new AbortController()
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true }, (request, response) => {
    serve({ ...options, request, response, signal: stop.signal }).catch((error: unknown) => {
      if (stop.signal.aborted || response.destroyed) return response.destroy()
      crash(response, error)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, HOST, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    origin: `http://${HOST}:${port}`,
    close: () =>
      new Promise((resolve) => {
        stop.abort(new Error('the simulated cloud is closing'))
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Exchange = ServerOptions & { request: IncomingMessage; response: ServerResponse; signal: AbortSignal }

async function serve(exchange: Exchange): Promise<void> {
  const { request, response, routes, faults } = exchange
  const call: SimCall = {
    ...splitUrl(request.url ?? '/'),
    verb: request.method ?? 'GET',
    headers: request.headers,
    origin: originOf(request),
    body: EMPTY,
  }
  const found = findOperation(routes, call)
  const operation = found?.operation
  const chunks = await readBody(exchange, operation)
  if (!chunks) {
    response.writeHead(413, { connection: 'close' }).end()
    return
  }
  if (operation?.takesChunks) call.chunks = chunks
  else if (chunks.length > 0) call.body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  if (!operation) return send(exchange, { name: 'unknown', answer: notFound() })
  const { name, account } = operation
  const admitted = operation.admit?.()
  if (typeof admitted === 'function') response.once('close', admitted)
  else if (admitted) return send(exchange, { name, account, answer: admitted })
  const stallMs = operation.stall?.()
  if (stallMs !== undefined) {
    note(exchange, { name, account, status: 0, fault: 'stalled' })
    await hold(exchange, stallMs)
    if (response.destroyed) return
  }
  const plan = operation.isExempt
    ? undefined
    : faults.plan({
        service: found!.service,
        method: name,
        account,
        place: 'request',
        isNextPage: operation.isNextPage === true,
        targets: operation.targets,
      })
  if (!plan) return send(exchange, { name, account, answer: await operation.run() })
  await suffer(exchange, operation, plan)
}

/** The call with what the plan holds for it, in the order in which it would happen to a real one. */
async function suffer(exchange: Exchange, operation: Operation, plan: FaultPlan): Promise<void> {
  const { response, clock, signal } = exchange
  const { name, account } = operation
  for (const effect of plan.effects) operation.effect?.(effect)
  if (plan.delayMs > 0) await sleep(clock, plan.delayMs, signal)
  if (plan.refuse) {
    return send(exchange, { name, account, answer: operation.refuse(plan.refuse), fault: 'refused' })
  }
  if (plan.reset === 'before') return cut(exchange, { name, account, fault: 'reset' })
  if (plan.stall?.at === 'start') {
    note(exchange, { name, account, status: 0, fault: 'stalled' })
    await hold(exchange, plan.stall.ms)
    if (response.destroyed) return
  }
  const answer = await operation.run(plan)
  if (plan.reset === 'after') return cut(exchange, { name, account, fault: 'reset' })
  if (plan.contentType) {
    const page = '<!DOCTYPE html><title>Error</title><p>Something went wrong on the way.</p>'
    const headers = { ...answer.headers, 'content-type': plan.contentType }
    const wrong = { status: answer.status === 204 ? 200 : answer.status, headers, body: page }
    return send(exchange, { name, account, answer: wrong, fault: 'content-type' })
  }
  const part = plan.truncate ? plan.truncate.share : 0.5
  if (plan.truncate || plan.stall) return sendPart(exchange, { operation, plan, answer, part })
  await send(exchange, { name, account, answer })
}

/** Only the beginning of the answer; then the end of the connection, a false end, or a long silence. */
async function sendPart(
  exchange: Exchange,
  input: { operation: Operation; plan: FaultPlan; answer: SimAnswer; part: number },
): Promise<void> {
  const { response } = exchange
  const { name, account } = input.operation
  const { status, headers, body } = input.answer
  const bytes = lengthOf(body)
  if (bytes === 0) return cut(exchange, { name, account, fault: 'truncated' })
  const keptBytes = Math.min(bytes - 1, Math.floor(bytes * input.part))
  if (input.plan.truncate?.close === false) {
    const short: SimAnswer = {
      status,
      headers: headers ?? {},
      body: { bytes: keptBytes, read: () => cutTo(body, keptBytes) },
    }
    return send(exchange, { name, account, answer: short, fault: 'short' })
  }
  note(exchange, { name, account, status, fault: input.plan.truncate ? 'truncated' : 'stalled' })
  response.writeHead(status, { ...headers, 'content-length': bytes })
  await writeStream(exchange, name, cutTo(body, keptBytes))
  await new Promise<void>((resolve) => response.write(EMPTY, () => resolve()))
  if (input.plan.truncate) return response.socket?.destroy() as undefined
  await hold(exchange, input.plan.stall?.ms ?? null)
  if (response.destroyed) return
  await writeStream(exchange, name, cutFrom(body, keptBytes))
  response.end(input.answer.onSent)
}

function* cutTo(body: AnswerBody, bytes: number): Iterable<Buffer> {
  let left = bytes
  for (const piece of buffersOf(body)) {
    if (left <= 0) return
    yield piece.length <= left ? piece : piece.subarray(0, left)
    left -= piece.length
  }
}

function* cutFrom(body: AnswerBody, bytes: number): Iterable<Buffer> {
  let skip = bytes
  for (const piece of buffersOf(body)) {
    if (skip < piece.length) yield skip > 0 ? piece.subarray(skip) : piece
    skip = Math.max(0, skip - piece.length)
  }
}

/** Waits whenever the socket is full: what is not taken yet is not made yet. */
async function writeStream(exchange: Exchange, name: string, pieces: Iterable<Buffer>): Promise<void> {
  const { response, onBytes } = exchange
  for (const piece of pieces) {
    if (response.destroyed) return
    onBytes?.(name, { sent: piece.length })
    if (response.write(piece)) continue
    await new Promise<void>((resolve) => {
      const done = (): void => {
        response.off('drain', done)
        response.off('close', done)
        resolve()
      }
      response.on('drain', done)
      response.on('close', done)
    })
  }
}

/** Waits for so long, or until the caller gives up. */
async function hold({ clock, response, signal, faults }: Exchange, ms: number | null): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort(new Error('the caller has gone')))
  if (response.destroyed) return
  const either = AbortSignal.any([signal, gone.signal, faults.released])
  if (ms !== null) return sleep(clock, ms, either).catch(() => {})
  await new Promise<void>((resolve) => either.addEventListener('abort', () => resolve(), { once: true }))
}

type Outcome = { name: string; account?: string | undefined; fault?: string }

function cut(exchange: Exchange, outcome: Outcome): void {
  note(exchange, { ...outcome, status: 0 })
  const { socket } = exchange.request
  // A real reset (RST), not a polite end.
  if ('resetAndDestroy' in socket) socket.resetAndDestroy()
  else exchange.response.destroy()
}

function send(
  exchange: Exchange,
  { answer, ...outcome }: Outcome & { answer: SimAnswer },
): void | Promise<void> {
  const { response, onBytes } = exchange
  note(exchange, { ...outcome, status: answer.status })
  const bytes = lengthOf(answer.body)
  const hasBody = answer.status !== 204 && answer.status !== 304
  response.writeHead(answer.status, hasBody ? { ...answer.headers, 'content-length': bytes } : answer.headers)
  if (answer.onSent && !outcome.fault) response.once('finish', answer.onSent)
  if (!hasBody || bytes === 0 || exchange.request.method === 'HEAD') {
    response.end()
    return
  }
  if (isStream(answer.body) && bytes > TOGETHER_BYTES_MAX) {
    return writeStream(exchange, outcome.name, answer.body.read()).then(() => void response.end())
  }
  onBytes?.(outcome.name, { sent: bytes })
  const body = answerPieces(answer.body)
  if (body.length > 1) response.cork()
  const last = body.length - 1
  for (let at = 0; at < last; at++) writePiece(response, body[at]!)
  const end = body[last]!
  if (typeof end === 'string') response.end(end, 'latin1')
  else response.end(end)
  if (body.length > 1) response.uncork()
}

function writePiece(response: ServerResponse, piece: string | Buffer): void {
  if (typeof piece === 'string') response.write(piece, 'latin1')
  else response.write(piece)
}

function note({ clock, onServed }: Exchange, outcome: Outcome & { status: number }): void {
  if (!onServed) return
  const { name, account, status, fault } = outcome
  const served: ServedCall = { atMs: clock.now(), operation: name, status }
  if (account !== undefined) served.account = account
  if (fault !== undefined) served.fault = fault
  onServed(served)
}

function isStream(body: AnswerBody): body is StreamBody {
  return typeof body === 'object' && 'read' in body
}

function lengthOf(body: AnswerBody): number {
  if (isStream(body)) return body.bytes
  let bytes = 0
  for (const piece of pieces(body)) bytes += piece.length
  return bytes
}

/** An answer's body for whoever puts it into another one. */
export function answerPieces(body: AnswerBody): readonly (string | Buffer)[] {
  return isStream(body) ? [...body.read()] : pieces(body)
}

function* buffersOf(body: AnswerBody): Iterable<Buffer> {
  if (isStream(body)) yield* body.read()
  else for (const piece of pieces(body)) yield asBuffer(piece)
}

function pieces(body: Exclude<AnswerBody, StreamBody>): readonly (string | Buffer)[] {
  return typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body
}

function asBuffer(piece: string | Buffer): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece
}

function findOperation(
  routes: readonly NamedRoutes[],
  call: SimCall,
): { service: string; operation: Operation } | undefined {
  for (const one of routes) {
    const operation = one.match(call)
    if (operation) return { service: one.service, operation }
  }
  return undefined
}

function originOf({ headers, socket }: IncomingMessage): string {
  const first = (name: string): string | undefined =>
    String(headers[name] ?? '')
      .split(',')[0]
      ?.trim() || undefined
  const host = first('x-forwarded-host') ?? headers.host ?? `${HOST}:${socket.localPort}`
  return `${first('x-forwarded-proto') ?? 'http'}://${host}`
}

/** Undefined when it is too long. By events: an async iterator costs more than a small call does. */
function readBody(
  { request, onBytes }: Exchange,
  operation: Operation | undefined,
): Promise<Buffer[] | undefined> | Buffer[] {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  if (!transfer && (length === undefined || length === '0')) return []
  const bytesMax = operation?.bodyBytesMax ?? BODY_BYTES_MAX
  const name = operation?.name ?? 'unknown'
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      onBytes?.(name, { received: chunk.length })
      if (bytes <= bytesMax) chunks.push(chunk)
      else resolve(undefined)
    })
    request.on('end', () => resolve(chunks))
    request.on('error', reject)
    request.on('close', () => reject(new Error('the caller has gone')))
  })
}

const EMPTY = Buffer.alloc(0)
const NO_QUERY = new URLSearchParams()

/** The path stays encoded; a service decodes its pieces. A whole address (as a batch part may hold) will do. */
export function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const from = /^https?:\/\/[^/?]*/.exec(url)?.[0].length ?? 0
  const mark = url.indexOf('?', from)
  const path = (mark < 0 ? url.slice(from) : url.slice(from, mark)) || '/'
  return { path, query: mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1)) }
}

export function jsonAnswer(value: unknown, status = 200, headers: Record<string, string> = {}): SimAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=UTF-8', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  }
}

export function htmlAnswer(html: string, status = 200): SimAnswer {
  return { status, headers: { 'content-type': 'text/html; charset=UTF-8' }, body: Buffer.from(html) }
}

function notFound(): SimAnswer {
  return htmlAnswer(
    '<!DOCTYPE html><title>Error 404 (Not Found)</title><p>The requested URL was not found.',
    404,
  )
}

/** A mistake in the simulator itself must not look like a fault that it was asked for. */
function crash(response: ServerResponse, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(501, { 'content-type': 'text/plain; charset=UTF-8' })
  response.end(`The simulator failed: ${text}\n`)
}

/** A piece of a path. */
export function safeDecode(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    // No id looks like this, so nothing will be found.
    return text
  }
}
