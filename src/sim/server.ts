/**
 * The HTTP server of the simulated cloud: reads a call, asks the services whose it is, lets faults happen
 * to it, and answers. On the loopback address only.
 *
 * A string in an answer's body is ASCII and is written byte for byte; other text comes as a Buffer. That
 * spares the hot path (raw mail in base64) a second look at every character.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, sleep } from '../clock.ts'
import type { FaultEffect } from './fault-rules.ts'
import type { FaultPlan, Faults, Refusal } from './faults.ts'

export type SimCall = {
  verb: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: Buffer
}

export type AnswerBody = string | Buffer | readonly (string | Buffer)[]

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
  /** Faults leave it alone: the control API. */
  isExempt?: boolean
  run(plan?: FaultPlan): SimAnswer | Promise<SimAnswer>
  /** An error in the service's own shape. */
  refuse(refusal: Refusal): SimAnswer
  effect?(effect: FaultEffect): void
  /** Before anything else: an answer that ends it here, or what to do when the exchange is over. */
  admit?(): SimAnswer | (() => void) | undefined
}

export type Service = { match(call: SimCall): Operation | undefined }

export type SimServer = { port: number; origin: string; close(): Promise<void> }

export type ServedCall = { atMs: number; operation: string; account?: string; status: number; fault?: string }

export type ServerOptions = {
  port?: number
  services: readonly Service[]
  faults: Faults
  clock: Clock
  onServed?: (served: ServedCall) => void
}

const HOST = '127.0.0.1'
const BODY_BYTES_MAX = 160 * 2 ** 20
const KEEP_ALIVE_MS = 60_000

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
  const { request, response, services, faults } = exchange
  const body = await readBody(request)
  if (!body) {
    response.writeHead(413, { connection: 'close' }).end()
    return
  }
  const call = {
    ...splitUrl(request.url ?? '/'),
    verb: request.method ?? 'GET',
    headers: request.headers,
    body,
  }
  const operation = findOperation(services, call)
  if (!operation) return send(exchange, { name: 'unknown', answer: notFound() })
  const { name, account } = operation
  const admitted = operation.admit?.()
  if (typeof admitted === 'function') response.once('close', admitted)
  else if (admitted) return send(exchange, { name, account, answer: admitted })
  const plan = operation.isExempt
    ? undefined
    : faults.plan({ method: name, account, place: 'request', isNextPage: operation.isNextPage === true })
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
  send(exchange, { name, account, answer })
}

/** Only the beginning of the answer; then the end of the connection, a false end, or a long silence. */
async function sendPart(
  exchange: Exchange,
  input: { operation: Operation; plan: FaultPlan; answer: SimAnswer; part: number },
): Promise<void> {
  const { response } = exchange
  const { name, account } = input.operation
  const whole = Buffer.concat(pieces(input.answer.body).map(asBuffer))
  const kept = whole.subarray(0, Math.min(whole.length - 1, Math.floor(whole.length * input.part)))
  if (whole.length === 0) return cut(exchange, { name, account, fault: 'truncated' })
  const { status, headers } = input.answer
  if (input.plan.truncate?.close === false) {
    return send(exchange, {
      name,
      account,
      answer: { status, headers: headers ?? {}, body: kept },
      fault: 'short',
    })
  }
  note(exchange, { name, account, status, fault: input.plan.truncate ? 'truncated' : 'stalled' })
  response.writeHead(status, { ...headers, 'content-length': whole.length })
  await new Promise<void>((resolve) => response.write(kept, () => resolve()))
  if (input.plan.truncate) return response.socket?.destroy() as undefined
  await hold(exchange, input.plan.stall?.ms ?? null)
  if (!response.destroyed) response.end(whole.subarray(kept.length), input.answer.onSent)
}

/** Waits for so long, or until the caller gives up. */
async function hold({ clock, response, signal }: Exchange, ms: number | null): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort(new Error('the caller has gone')))
  if (response.destroyed) return
  const either = AbortSignal.any([signal, gone.signal])
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

function send(exchange: Exchange, { answer, ...outcome }: Outcome & { answer: SimAnswer }): void {
  const { response } = exchange
  note(exchange, { ...outcome, status: answer.status })
  const body = pieces(answer.body)
  let bytes = 0
  for (const piece of body) bytes += piece.length
  const hasBody = answer.status !== 204 && answer.status !== 304
  response.writeHead(answer.status, hasBody ? { ...answer.headers, 'content-length': bytes } : answer.headers)
  if (answer.onSent && !outcome.fault) response.once('finish', answer.onSent)
  if (!hasBody || body.length === 0) {
    response.end()
    return
  }
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

function pieces(body: AnswerBody): readonly (string | Buffer)[] {
  return typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body
}

function asBuffer(piece: string | Buffer): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece
}

function findOperation(services: readonly Service[], call: SimCall): Operation | undefined {
  for (const service of services) {
    const operation = service.match(call)
    if (operation) return operation
  }
  return undefined
}

/** Undefined when it is too long. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  if (!transfer && (length === undefined || length === '0')) return EMPTY
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)
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
