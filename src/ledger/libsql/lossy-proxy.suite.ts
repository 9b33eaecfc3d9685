/** Between a ledger and its server: passes requests on, and loses or refuses what it is told to. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before } from 'node:test'
import { type LibsqlServer, startLibsql } from '../../../scripts/libsql.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'

/** `request`: it never reaches the server. `answer`: the server has done it. `late`: it reaches the server when told. */
export type Loss = 'request' | 'answer' | 'late'

export class LossyProxy {
  readonly url: string
  readonly #close: () => Promise<void>
  #loss: { of: RegExp; what: Loss; onLost: () => void } | undefined
  #held: (() => Promise<void>) | undefined
  #refusal: { of: RegExp; code: string; times: number } | undefined
  #replacement: { of: RegExp; status: number; body: string } | undefined

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

  /** So many requests that hold `of` are answered as the server does where none of the steps could be run. */
  refuse(of: RegExp, { code, times }: { code: string; times: number }): void {
    this.#refusal = { of, code, times }
  }

  /** The server does the next request that holds `of`, and somebody on the way answers in its place. */
  replace(of: RegExp, answer: { status: number; body: string }): void {
    this.#replacement = { of, ...answer }
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
    const refusal = this.#refusal
    if (refusal && refusal.times > 0 && refusal.of.test(body.toString())) {
      refusal.times -= 1
      outgoing.writeHead(200).end(refusalOf(body, refusal.code))
      return
    }
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
    const replaced = this.#replacement?.of.test(body.toString()) ? this.#replacement : undefined
    if (replaced) this.#replacement = undefined
    const { status, body: text } = replaced ?? answer
    outgoing.writeHead(status).end(text)
  }
}

/** A ledger behind such a proxy, with a table of notes, for all tests of a `describe`. */
export class Notes {
  server!: LibsqlServer
  proxy!: LossyProxy
  ledger!: Ledger

  constructor() {
    before(async () => {
      this.server = await startLibsql()
      this.proxy = await LossyProxy.start(this.server.url)
      this.ledger = await openLedger(this.proxy.url)
      await this.ledger.driver.transaction((tx) => tx.run(`CREATE TABLE notes (text TEXT PRIMARY KEY)`))
    })
    after(async () => {
      await this.ledger.close()
      await this.proxy.close()
      await this.server.stop()
    })
  }

  add(text: string): Promise<number> {
    return this.ledger.driver.transaction((tx) => tx.run(`INSERT INTO notes VALUES (?)`, [text]))
  }

  async count(text: string): Promise<number> {
    const row = await this.ledger.driver.read((tx) =>
      tx.get<{ n: number }>(`SELECT count(*) AS n FROM notes WHERE text = ?`, [text]),
    )
    return row!.n
  }
}

type Batch = { baton: string | null; requests: { batch?: { steps: { condition?: object }[] } }[] }

/** As a step that is bound to those before it is not run where they fail, so here: only the others have an error. */
function refusalOf(body: Buffer, code: string): string {
  const { baton, requests } = JSON.parse(body.toString()) as Batch
  const steps = requests[0]!.batch!.steps
  const step_errors = steps.map(({ condition }) => (condition ? null : { message: 'refused', code }))
  const result = { step_results: steps.map(() => null), step_errors }
  return JSON.stringify({
    baton,
    results: [
      { type: 'ok', response: { type: 'batch', result } },
      { type: 'ok', response: { type: 'get_autocommit', is_autocommit: true } },
    ],
  })
}

async function forward(url: string, body: Buffer): Promise<{ status: number; body: Buffer }> {
  const sent = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part as Buffer)
  return { status: answer.statusCode!, body: Buffer.concat(parts) }
}
