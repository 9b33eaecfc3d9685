/**
 * The app on a socket. Limits on everything that a client can hold on to: headers and requests must arrive in time,
 * idle connections end, and closing waits for answers under way, but not for ever.
 */
import {
  createServer as createNodeServer,
  type Server as NodeServer,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener, type Http2Bindings, type HttpBindings } from '@hono/node-server'
import { asProblem, ProblemError, problemResponse } from '../app/problem.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { asTidemarkError, TidemarkError, UsageError } from '../base/errors.ts'
import type { App, AppEnv } from './app-env.ts'

const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
/** Clients are told this. The server waits longer: a busy client that asks at the last moment is not cut off. */
const KEEP_ALIVE_MS = 10_000
const KEEP_ALIVE_BUFFER_MS = 10_000
const HEADER_BYTES_MAX = 16_384
const CONNECTIONS_MAX = 1_000
/** Connections on which nobody has shown a token yet. */
const STRANGERS_MAX = 500
const CLOSE_GRACE_MS = 5_000
const CLOSE_LOOK_MS = 20

export type HttpServerOptions = {
  app: App
  host?: string
  /** 0 takes any that is free. */
  port: number
  clock?: Clock
  /** How long answers under way may take when the server closes. */
  closeGraceMs?: number
  onError?: (thrown: unknown) => void
}

export type HttpServer = {
  host: string
  port: number
  /** `http://127.0.0.1:4141` */
  url: string
  readonly connections: Promise<number>
  /** Close what `createServer` gave first: it ends the live events, which would otherwise be cut off. */
  close(): Promise<void>
}

export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { app, host = '127.0.0.1', port, onError = () => {}, clock = systemClock } = options
  const strangers = new Strangers()
  const listener = getRequestListener((request, env) => app.fetch(request, admitting(env, strangers)), {
    // The engine's own requests in this process keep the Request and Response of Node.
    overrideGlobalObjects: false,
    errorHandler: (thrown) => refusal(thrown, onError),
  })
  const answers = new WeakMap<Duplex, ServerResponse>()
  const server = createNodeServer(
    {
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveTimeoutBuffer: KEEP_ALIVE_BUFFER_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      connectionsCheckingInterval: 1_000,
    },
    (incoming, outgoing) => {
      answers.set(incoming.socket, outgoing)
      listener(incoming, outgoing).catch(onError)
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  server.on('connection', (socket) => strangers.add(socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const answer = answers.get(socket)
    // In the middle of an answer, another one would be taken for a part of it.
    const isAnswering = answer?.headersSent === true && !answer.writableFinished
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering) socket.destroy(error)
    else socket.end(rawProblem(unreadable(error.code)), () => socket.destroy())
  })
  await listen(server, host, port)
  // A connection that could not be taken (no more files, say) must not end the process.
  server.on('error', onError)
  const bound = server.address() as AddressInfo
  return {
    host,
    port: bound.port,
    url: serverUrl(host, bound.port),
    get connections() {
      return new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n ?? 0)))
    },
    close: () => close(server, clock, options.closeGraceMs ?? CLOSE_GRACE_MS),
  }
}

/**
 * Connections of whom nothing is known. On one machine the owner and everyone else have one address, so no count by
 * address could tell them apart: when there are too many, the oldest goes. Whoever asks for something does so at
 * once, and is known before others could push their connection out; who only holds connections loses them.
 */
class Strangers {
  /** Oldest first. */
  readonly #sockets = new Set<Duplex>()

  add(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    const [oldest] = this.#sockets
    if (this.#sockets.size > STRANGERS_MAX) oldest?.destroy()
  }

  delete(socket: Duplex): void {
    this.#sockets.delete(socket)
  }
}

function admitting(env: HttpBindings | Http2Bindings, strangers: Strangers): AppEnv['Bindings'] {
  const { incoming, outgoing } = env as HttpBindings
  return { incoming, outgoing, admit: () => strangers.delete(incoming.socket) }
}

export function serverUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** What cannot even be read as a request; anything else the app has answered. */
function refusal(thrown: unknown, onError: (thrown: unknown) => void): Response {
  const isRequest = thrown instanceof Error && thrown.name === 'RequestError'
  if (!isRequest) onError(thrown)
  return problemResponse(
    isRequest
      ? new ProblemError(400, 'The address or the Host header is not valid.', { code: 'invalid-request' })
      : asProblem(asTidemarkError(thrown)),
  )
}

/** What Node could not even take for a request. */
function unreadable(code: string | undefined): ProblemError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError(431, `The headers have more than ${HEADER_BYTES_MAX} bytes.`, {
        code: 'too-long',
      })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ProblemError(408, 'The request did not arrive in time.', { code: 'too-slow' })
    default:
      return new ProblemError(400, 'This is no valid HTTP request.', { code: 'invalid-request' })
  }
}

function rawProblem({ problem }: ProblemError): string {
  const body = JSON.stringify(problem)
  const lines = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

function listen(server: NodeServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(listenError(error, host, port))
    server.once('error', failed)
    server.listen({ host, port }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): TidemarkError {
  switch (error.code) {
    case 'EADDRINUSE':
      return new UsageError(`Port ${port} on ${host} is taken by another program.`, {
        hint: 'It may be Tidemark already running. Stop it, or choose another port; 0 takes any that is free.',
        code: 'port-taken',
        cause: error,
      })
    case 'EACCES':
      return new UsageError(`This user may not listen on port ${port}.`, {
        hint: 'Choose a port above 1023.',
        code: 'port-denied',
        cause: error,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new UsageError(`${host} is no address of this machine.`, {
        hint: 'Use 127.0.0.1, 0.0.0.0 or one of its own addresses.',
        code: 'host-invalid',
        cause: error,
      })
    default:
      return new TidemarkError(`The server could not listen on ${host}:${port}: ${error.message}.`, {
        kind: 'transient',
        cause: error,
      })
  }
}

/** Connections whose answer is complete end at once; after the grace time all do. */
function close(server: NodeServer, clock: Clock, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve()
    const untilMs = clock.monotonicMs() + graceMs
    let cancel = (): void => {}
    server.close(() => {
      cancel()
      resolve()
    })
    const look = (): void => {
      if (clock.monotonicMs() >= untilMs) server.closeAllConnections()
      else server.closeIdleConnections()
      cancel = clock.timer(CLOSE_LOOK_MS, look, { keepAlive: true })
    }
    look()
  })
}
