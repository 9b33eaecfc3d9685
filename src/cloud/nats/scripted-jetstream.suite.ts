/**
 * As much of a NATS server with JetStream as the client speaks with, over TCP: one stream with one pull consumer, whose
 * time is the test's. It answers in the words of the protocol, and can be told to answer with an error.
 */
import { createServer, type Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'

export const STREAM = 'events'
export const CONSUMER = 'tidemark'
const ACK = `$JS.ACK.${STREAM}.${CONSUMER}`
const NEXT = `$JS.API.CONSUMER.MSG.NEXT.${STREAM}.${CONSUMER}`
const INFO = `$JS.API.CONSUMER.INFO.${STREAM}.${CONSUMER}`

type Message = {
  sequence: number
  body: Buffer
  headers: Readonly<Record<string, string>>
  deliveries: number
  visibleAtMs: number
}
type Waiting = { session: Session; reply: string }
type Session = { socket: Socket; subscriptions: Map<string, string> }
export type StatusLine = { status: number; description: string }

export class ScriptedJetStream {
  readonly #clock: Clock
  readonly #ackWaitMs: number
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #sockets = new Set<Socket>()
  #messages: Message[] = []
  #waiting: Waiting[] = []
  #sequence = 0
  /** In place of messages. */
  status: StatusLine | undefined
  /** Nobody is let in. */
  isClosedToAll = false
  hasConsumer = true
  /** What each receipt was told, in order. */
  readonly told: string[] = []

  constructor(options: { clock: Clock; ackWaitMs: number }) {
    this.#clock = options.clock
    this.#ackWaitMs = options.ackWaitMs
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    return `nats://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  send(body: string, headers: Readonly<Record<string, string>> = {}): void {
    this.#sequence += 1
    const message = {
      sequence: this.#sequence,
      body: Buffer.from(body),
      headers,
      deliveries: 0,
      visibleAtMs: 0,
    }
    this.#messages.push(message)
    this.#serveWaiting()
  }

  #accept(socket: Socket): void {
    const session: Session = { socket, subscriptions: new Map() }
    let buffered = Buffer.alloc(0)
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (data) => {
      buffered = Buffer.concat([buffered, typeof data === 'string' ? Buffer.from(data) : data])
      for (let used = this.#take(session, buffered); used > 0; used = this.#take(session, buffered)) {
        buffered = buffered.subarray(used)
      }
    })
    const info = { server_id: 'scripted', version: '2.11.0', headers: true, max_payload: 1_048_576, proto: 1 }
    socket.write(`INFO ${JSON.stringify(info)}\r\n`)
  }

  /** One command of the client; how many bytes it had, 0 where it is not all there. */
  #take(session: Session, bytes: Buffer): number {
    const end = bytes.indexOf('\r\n')
    if (end < 0) return 0
    const words = bytes.toString('utf8', 0, end).split(' ')
    const command = words[0]?.toUpperCase()
    if (command === 'CONNECT' && this.isClosedToAll) session.socket.end("-ERR 'Authorization Violation'\r\n")
    if (command === 'PING') session.socket.write('PONG\r\n')
    if (command === 'SUB') session.subscriptions.set(words.at(-1)!, words[1]!)
    if (command === 'UNSUB') session.subscriptions.delete(words[1]!)
    if (command !== 'PUB' && command !== 'HPUB') return end + 2
    const length = Number(words.at(-1))
    const total = end + 2 + length + 2
    if (bytes.length < total) return 0
    const headerBytes = command === 'HPUB' ? Number(words.at(-2)) : 0
    const payload = bytes.subarray(end + 2 + headerBytes, end + 2 + length)
    const hasReply = words.length === (command === 'HPUB' ? 5 : 4)
    this.#published(session, words[1]!, hasReply ? words[2]! : '', payload.toString())
    return total
  }

  #published(session: Session, subject: string, reply: string, payload: string): void {
    if (subject === INFO) this.#info(session, reply)
    else if (subject === NEXT) this.#next(session, reply, JSON.parse(payload))
    else if (subject.startsWith(`${ACK}.`)) this.#receipt(session, { subject, reply, payload })
    else this.#status(session, reply, { status: 503, description: '' })
  }

  #info(session: Session, reply: string): void {
    const config = { ack_policy: 'explicit', ack_wait: this.#ackWaitMs * 1_000_000, durable_name: CONSUMER }
    const nowMs = this.#clock.now()
    const held = this.#messages.filter(({ visibleAtMs }) => visibleAtMs > nowMs).length
    const answer = this.hasConsumer
      ? {
          stream_name: STREAM,
          name: CONSUMER,
          config,
          num_pending: this.#messages.length - held,
          num_ack_pending: held,
        }
      : { error: { code: 404, err_code: 10_014, description: 'consumer not found' } }
    this.#deliver(session, reply, Buffer.from(JSON.stringify(answer)))
  }

  #next(session: Session, reply: string, request: { batch: number; no_wait?: boolean }): void {
    let given = 0
    if (!this.status) for (; given < request.batch && this.#give({ session, reply }); given++);
    if (given === request.batch) return
    if (this.status) this.#status(session, reply, this.status)
    else if (request.no_wait) this.#status(session, reply, { status: 404, description: 'No Messages' })
    else this.#waiting.push({ session, reply })
  }

  #serveWaiting(): void {
    // Who has gone does not listen to the subject of the answer any more.
    this.#waiting = this.#waiting.filter(({ session, reply }) => sidOf(session, reply) !== undefined)
    const first = this.#waiting[0]
    if (first && this.#give(first)) this.#waiting.shift()
  }

  #give({ session, reply }: Waiting): boolean {
    const nowMs = this.#clock.now()
    const message = this.#messages.find(({ visibleAtMs }) => visibleAtMs <= nowMs)
    if (!message) return false
    message.deliveries += 1
    message.visibleAtMs = nowMs + this.#ackWaitMs
    const { deliveries, sequence } = message
    const receipt = `${ACK}.${deliveries}.${sequence}.${sequence}.${nowMs * 1_000_000}.0`
    const lines = Object.entries(message.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const headers = lines.length > 0 ? `NATS/1.0\r\n${lines.join('')}` : undefined
    this.#deliver(session, reply, message.body, headers, receipt)
    return true
  }

  /** As the server does, it confirms whatever it is told, also about what it has given to another. */
  #receipt(session: Session, told: { subject: string; reply: string; payload: string }): void {
    const [deliveries, sequence] = told.subject
      .slice(ACK.length + 1)
      .split('.')
      .map(Number)
    this.told.push(`${told.payload} ${sequence}`)
    const message = this.#messages.find((one) => one.sequence === sequence && one.deliveries === deliveries)
    if (message && told.payload === '+ACK') this.#messages = this.#messages.filter((one) => one !== message)
    if (message && told.payload === '+WPI') message.visibleAtMs = this.#clock.now() + this.#ackWaitMs
    if (message && told.payload === '-NAK') message.visibleAtMs = 0
    if (told.reply) this.#deliver(session, told.reply, Buffer.alloc(0))
    this.#serveWaiting()
  }

  #status(session: Session, reply: string, { status, description }: StatusLine): void {
    this.#deliver(session, reply, Buffer.alloc(0), `NATS/1.0 ${status} ${description}\r\n`)
  }

  #deliver(session: Session, subject: string, body: Buffer, headers?: string, reply = ''): void {
    const sid = sidOf(session, subject)
    if (sid === undefined) return
    const to = `${subject} ${sid} ${reply ? `${reply} ` : ''}`
    const head = headers === undefined ? '' : `${headers}\r\n`
    const sizes = headers === undefined ? `${body.length}` : `${head.length} ${head.length + body.length}`
    session.socket.write(
      Buffer.concat([
        Buffer.from(`${headers === undefined ? 'MSG' : 'HMSG'} ${to}${sizes}\r\n${head}`),
        body,
        Buffer.from('\r\n'),
      ]),
    )
  }
}

/** Clients listen to one subject with a star for the answers of all requests. */
function sidOf({ subscriptions }: Session, subject: string): string | undefined {
  for (const [sid, pattern] of subscriptions) {
    if (pattern === subject) return sid
    if (pattern.endsWith('*') && subject.startsWith(pattern.slice(0, -1))) return sid
  }
  return undefined
}
