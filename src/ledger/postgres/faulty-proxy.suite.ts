/**
 * A TCP proxy in front of PostgreSQL that reads the protocol's frames and breaks the connection at COMMIT:
 * - before: the server never gets it
 * - after: the server has committed, the client never hears of it
 * - late: the client's connection breaks, and the server gets it only when the test says so
 * - all-late: the same for the statements that are sent along with COMMIT
 *
 * Frozen, it passes on nothing at all, as a server that is suspended.
 */
import { once } from 'node:events'
import { createServer, connect as dial, type Server, type Socket } from 'node:net'

export type Fault = 'before' | 'after' | 'late' | 'all-late'

export class FaultyProxy {
  readonly #server: Server
  readonly #upstream: { host: string; port: number }
  readonly #sockets = new Set<Socket>()
  #fault: Fault | undefined
  #frozen = false
  #broken: (() => void) | undefined
  /** COMMITs that were kept back. */
  readonly late: { deliver: () => Promise<void> }[] = []

  private constructor(server: Server, upstream: { host: string; port: number }) {
    this.#server = server
    this.#upstream = upstream
    server.on('connection', (client) => this.#serve(client))
  }

  static async before(url: string): Promise<FaultyProxy> {
    const { hostname, port } = new URL(url)
    const server = createServer().listen({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    return new FaultyProxy(server, { host: hostname, port: Number(port) })
  }

  urlOf(url: string): string {
    const through = new URL(url)
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is not listening')
    through.hostname = '127.0.0.1'
    through.port = String(address.port)
    return through.href
  }

  /** Breaks the connection of the next COMMIT; resolves when it has. */
  breakNextCommit(fault: Fault): Promise<void> {
    this.#fault = fault
    return new Promise((resolve) => {
      this.#broken = resolve
    })
  }

  /** From now on nothing passes in either direction, and nobody is told. */
  freeze(): void {
    this.#frozen = true
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(client: Socket): void {
    const server = dial(this.#upstream)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {}) // a broken end is what this is for
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    }
    const line: Line = { client, server, muted: false, detached: false, held: [] }
    const toServer = new FrameReader({ startup: true }, (frame) => this.#forward(line, frame))
    client.on('data', (chunk: Buffer) => this.#frozen || toServer.push(chunk))
    const toClient = new FrameReader({ startup: false }, (frame) => {
      if (line.muted && isCommitted(frame)) this.#cut(line)
      if (!line.muted && !line.detached) client.write(frame)
    })
    server.on('data', (chunk: Buffer) => this.#frozen || toClient.push(chunk))
    client.on('close', () => line.detached || server.destroy())
    server.on('close', () => client.destroy())
  }

  #forward(line: Line, frame: Buffer): void {
    if (this.#fault === 'all-late' && (line.held.length > 0 || isWitness(frame))) line.held.push(frame)
    else if (this.#fault === undefined || !isCommit(frame)) line.server.write(frame)
    if (this.#fault === undefined || !isCommit(frame)) return
    const fault = this.#fault
    this.#fault = undefined
    if (fault === 'before') this.#cut(line)
    if (fault === 'after') {
      line.muted = true
      line.server.write(frame)
    }
    if (fault === 'late' || fault === 'all-late') {
      line.detached = true
      const frames = fault === 'late' ? [frame] : line.held
      this.late.push({
        deliver: async () => {
          line.server.end(Buffer.concat(frames))
          await once(line.server, 'close')
        },
      })
      line.client.destroy()
      this.#broken?.()
    }
  }

  #cut(line: Line): void {
    line.client.destroy()
    line.server.destroy()
    this.#broken?.()
  }
}

type Line = { client: Socket; server: Socket; muted: boolean; detached: boolean; held: Buffer[] }

function isCommit(frame: Buffer): boolean {
  return frame[0] === 'Q'.charCodeAt(0) && frame.toString('utf8', 5, frame.length - 1) === 'COMMIT'
}

/** Parse or Bind of the statement of that name. */
function isWitness(frame: Buffer): boolean {
  return 'PB'.includes(String.fromCharCode(frame[0]!)) && frame.subarray(5, 30).includes('witness\0')
}

function isCommitted(frame: Buffer): boolean {
  return frame[0] === 'C'.charCodeAt(0) && frame.toString('utf8', 5, frame.length - 1) === 'COMMIT'
}

/** Frames are a type byte, a length of four bytes that counts itself, and the rest; the first has no type. */
class FrameReader {
  readonly #emit: (frame: Buffer) => void
  #rest = Buffer.alloc(0)
  #startup: boolean

  constructor(options: { startup: boolean }, emit: (frame: Buffer) => void) {
    this.#startup = options.startup
    this.#emit = emit
  }

  push(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const lengthAt = this.#startup ? 0 : 1
      if (this.#rest.length < lengthAt + 4) return
      const size = lengthAt + this.#rest.readUInt32BE(lengthAt)
      if (this.#rest.length < size) return
      const frame = this.#rest.subarray(0, size)
      this.#rest = this.#rest.subarray(size)
      this.#startup = false
      this.#emit(frame)
    }
  }
}
