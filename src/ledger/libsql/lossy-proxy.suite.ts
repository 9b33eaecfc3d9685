/** Between a ledger and its server: passes requests on, and loses what it is told to. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** `request`: it never reaches the server. `answer`: the server has done it. `late`: it reaches the server when told. */
export type Loss = 'request' | 'answer' | 'late'

export class LossyProxy {
  readonly url: string
  readonly #close: () => Promise<void>
  #loss: { of: RegExp; what: Loss; onLost: () => void } | undefined
  #held: (() => Promise<void>) | undefined

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.#close = close
  }

  static async start(target: string): Promise<LossyProxy> {
    const server = createServer((incoming, outgoing) => {
      proxy.#handle(target, incoming, outgoing).catch(() => outgoing.destroy())
    })
    await once(server.listen({ port: 0, host: '127.0.0.1' }), 'listening')
    const proxy = new LossyProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    })
    return proxy
  }

  /** Of the next request that holds `of`; resolves when that is lost. */
  lose(what: Loss, of: RegExp): Promise<void> {
    return new Promise((resolve) => {
      this.#loss = { of, what, onLost: resolve }
    })
  }

  /** What was held back reaches the server now. */
  async deliver(): Promise<void> {
    await this.#held?.()
  }

  close(): Promise<void> {
    return this.#close()
  }

  async #handle(target: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part as Buffer)
    const body = Buffer.concat(parts)
    const found = this.#loss?.of.test(body.toString()) ? this.#loss : undefined
    const loss = found?.what
    if (found) this.#loss = undefined
    const pass = (): Promise<{ status: number; body: Buffer }> => forward(`${target}${incoming.url}`, body)
    if (loss === 'answer') await pass()
    if (loss === 'late') {
      this.#held = async () => {
        await pass()
      }
    }
    if (found) {
      outgoing.destroy()
      found.onLost()
      return
    }
    const answer = await pass()
    outgoing.writeHead(answer.status).end(answer.body)
  }
}

async function forward(url: string, body: Buffer): Promise<{ status: number; body: Buffer }> {
  const sent = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part as Buffer)
  return { status: answer.statusCode!, body: Buffer.concat(parts) }
}
