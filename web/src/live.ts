/**
 * The live connection: events of the server as they happen, one connection a page.
 *
 *   connecting ─ answered ─▶ live ─ dropped, silent ─▶ connecting
 *   connecting ─ failed, but requests work ─▶ polling ─ answered ─▶ live
 *   connecting ─ failed, and requests fail ─▶ offline ─ answered ─▶ live
 *   any ─ 401 ─▶ signed-out, where it stays until `nudge`
 *
 * It never gives up while it is started: tries are spaced by a backoff, and a nudge (the tab is looked at again, the
 * network is back) tries at once. After a drop it says which event it saw last, and the server sends the rest.
 */
import { EventParser } from './sse.ts'

export type LiveState = 'connecting' | 'live' | 'polling' | 'offline' | 'signed-out'

export type LiveOptions = {
  url: string
  fetch: typeof fetch
  onEvent: (type: string, data: unknown) => void
  /** A connection stands; `isFirst` is false where events may have been missed before it. */
  onOpen: (open: { isFirst: boolean }) => void
  onState: (state: LiveState) => void
  /** Loads by an ordinary request what events would have told; throws where that fails too. */
  poll: () => Promise<void>
  /** Resolves after that time, or as soon as the signal is aborted. */
  wait?: (ms: number, signal: AbortSignal) => Promise<void>
  random?: () => number
  silentMsMax?: number
}

export type Live = {
  readonly state: LiveState
  start(): void
  stop(): void
  /** Tries again at once. */
  nudge(): void
}

/** The server sends a comment every 15 s: two of them missing means that nobody is there. */
const SILENT_MS_MAX = 40_000
const BACKOFF_MS = { first: 500, max: 10_000 }

/** 0.5 s, 1 s, 2 s … 10 s, each less up to a third, so that many pages do not come back in step. */
export function backoffMs(failures: number, random: () => number): number {
  const full = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.max(0, failures - 1))
  return Math.round(full * (1 - random() / 3))
}

export function createLive(options: LiveOptions): Live {
  return new LiveClient(options)
}

class LiveClient implements Live {
  readonly #options: LiveOptions
  readonly #wait: NonNullable<LiveOptions['wait']>
  #state: LiveState = 'connecting'
  #lastId = ''
  #opened = 0
  #failures = 0
  #run: AbortController | undefined
  #attempt: AbortController | undefined

  constructor(options: LiveOptions) {
    this.#options = options
    this.#wait = options.wait ?? waitFor
  }

  get state(): LiveState {
    return this.#state
  }

  start(): void {
    if (this.#run) return
    this.#run = new AbortController()
    void this.#loop(this.#run.signal)
  }

  stop(): void {
    this.#run?.abort()
    this.#attempt?.abort()
    this.#run = undefined
  }

  nudge(): void {
    this.#failures = 0
    this.#attempt?.abort()
  }

  async #loop(run: AbortSignal): Promise<void> {
    while (!run.aborted) {
      const attempt = new AbortController()
      this.#attempt = attempt
      const end = await this.#connect(attempt)
      if (run.aborted) return
      if (end === 'signed-out') this.#say('signed-out')
      else if (end === 'dropped') this.#say('connecting')
      else if (!attempt.signal.aborted) await this.#fallBack(run)
      if (run.aborted || attempt.signal.aborted) continue
      const ms = end === 'signed-out' ? Number.POSITIVE_INFINITY : backoffMs(this.#failures, this.#random)
      await this.#wait(ms, attempt.signal)
    }
  }

  /** Until the connection ends: `dropped` after it stood, `failed` where it never did. */
  async #connect(attempt: AbortController): Promise<'dropped' | 'failed' | 'signed-out'> {
    const quiet = new Silence(this.#options.silentMsMax ?? SILENT_MS_MAX, () => attempt.abort())
    let isOpen = false
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (this.#lastId) headers['last-event-id'] = this.#lastId
      const { fetch, url } = this.#options
      const response = await fetch(url, { headers, signal: attempt.signal, cache: 'no-store' })
      if (response.status === 401) return 'signed-out'
      if (!response.ok || !response.body)
        throw new Error(`The live events were refused (${response.status}).`)
      isOpen = true
      this.#open()
      await this.#read(response.body, quiet)
    } catch {
      // Dropped, refused, silent or nudged: whatever it was, the next try or the polling will tell.
    } finally {
      quiet.end()
    }
    if (!isOpen) this.#failures += 1
    return isOpen ? 'dropped' : 'failed'
  }

  #open(): void {
    this.#failures = 1
    this.#opened += 1
    this.#say('live')
    this.#options.onOpen({ isFirst: this.#opened === 1 })
  }

  async #read(body: ReadableStream<Uint8Array>, quiet: Silence): Promise<void> {
    const parser = new EventParser()
    const decoder = new TextDecoder()
    const reader = body.getReader()
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      quiet.broken()
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (event.id) this.#lastId = event.id
        this.#options.onEvent(event.type, parsed(event.data))
      }
    }
  }

  async #fallBack(run: AbortSignal): Promise<void> {
    try {
      await this.#options.poll()
      if (!run.aborted) this.#say('polling')
    } catch {
      // The reason is of no use here: the request shows it where it is made for a page.
      if (!run.aborted) this.#say('offline')
    }
  }

  readonly #random = (): number => (this.#options.random ?? Math.random)()

  #say(state: LiveState): void {
    if (state === this.#state) return
    this.#state = state
    this.#options.onState(state)
  }
}

/** Calls back when nothing was heard for that long. */
class Silence {
  readonly #ms: number
  readonly #onSilent: () => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(ms: number, onSilent: () => void) {
    this.#ms = ms
    this.#onSilent = onSilent
    this.broken()
  }

  broken(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onSilent, this.#ms)
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An event that is no JSON is for somebody else.
    return undefined
  }
}

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms) : undefined
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
