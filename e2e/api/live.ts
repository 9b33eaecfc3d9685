/** A reader of the live events, as a browser reads them; each is held against the document. */
import assert from 'node:assert/strict'
import type { Body, Contract } from './contract.ts'
import { until } from './server.ts'

export type LiveEvent = { id: string; n: number; type: string; data: Body }

export class LiveReader {
  readonly events: LiveEvent[] = []
  readonly #contract: Contract
  readonly #stop = new AbortController()
  #ended: Promise<void> = Promise.resolve()
  #failure: unknown

  private constructor(contract: Contract) {
    this.#contract = contract
  }

  /** As `ask` does; `lastEventId` is what the reader before has seen last. */
  static async open(
    contract: Contract,
    {
      ask,
      lastEventId,
    }: { ask: (path: string, init: RequestInit) => Promise<Response>; lastEventId?: string },
  ): Promise<LiveReader> {
    const reader = new LiveReader(contract)
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const response = await ask('/api/events', { headers, signal: reader.#stop.signal })
    contract.checkHead(contract.document.operation('getEvents'), response)
    reader.#ended = reader.#read(response).catch((thrown: unknown) => {
      if (!reader.#stop.signal.aborted) reader.#failure = thrown
    })
    await reader.seen(({ type }) => type === 'hello')
    return reader
  }

  /** All but states, of which only the newest counts. */
  get happenings(): LiveEvent[] {
    return this.events.filter(({ type }) => type !== 'hello' && !type.startsWith('snapshot'))
  }

  get lastId(): string {
    return this.events.at(-1)!.id
  }

  seen(wanted: (event: LiveEvent) => boolean): Promise<LiveEvent> {
    return until(async () => {
      if (this.#failure) throw this.#failure
      return this.events.find(wanted)
    }, `an event ${wanted}`)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#ended
    if (this.#failure) throw this.#failure
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let text = ''
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      const frames = text.split('\n\n')
      text = frames.pop()!
      for (const frame of frames) this.#take(frame)
    }
  }

  #take(frame: string): void {
    if (frame.startsWith(':')) return
    const fields = new Map(frame.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]))
    assert.deepEqual(
      [...fields.keys()].filter((name) => name !== 'retry'),
      ['id', 'event', 'data'],
      frame,
    )
    const [id, type] = [fields.get('id')!, fields.get('event')!]
    const data = JSON.parse(fields.get('data')!)
    const { document } = this.#contract
    assert.ok(document.events[type], `events of type ${type} are not in the document`)
    assert.equal(document.mistake(document.events[type], data), undefined, frame)
    this.events.push({ id, n: Number(/-(\d+)$/.exec(id)![1]), type, data })
  }
}
