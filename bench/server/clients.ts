/**
 * Clients of a server: live pages, each with its stream of events and what such a page asks for when something
 * changed, and a steady flow of reads. Reads come when they are due, whether or not earlier ones were answered, and
 * their time counts from when they were due: a server that stands still is not spared by clients that wait for it.
 */
import { Agent, get, type IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import { BENCH_HEADERS } from './session.ts'

export type ClientOrder = {
  do: 'clients'
  url: string
  account: string
  pages: number
  readsPerS: number
}

export type ClientReport = {
  /** Milliseconds of each read, in order of their size, by kind. */
  reads: Record<string, number[]>
  pageRequests: number
  events: number
  bytes: number
  errors: string[]
}

/** As in the pages: see REFRESH_MS_MIN in web/src/queries.ts. */
const REFRESH_MS = 2_000
const READ_MS_MAX = 10_000
const WORDS = [
  'report',
  'from:bob',
  'has:attachment',
  'subject:meeting invoice',
  'is:unread',
  'newer_than:2y plan',
]
const JOB_FILTERS = [
  '',
  '&state=pending',
  '&state=claimed',
  '&state=done',
  '&state=failed',
  '&kind=mail.fetch',
]

type Answer = { status: number; text: string; etag: string | undefined }

class Clients {
  readonly #order: ClientOrder
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 100 })
  readonly #closing = new AbortController()
  readonly #timers = new Set<NodeJS.Timeout>()
  #report: ClientReport = emptyReport()
  #ids: string[] = []

  constructor(order: ClientOrder) {
    this.#order = order
    for (let n = 0; n < order.pages; n++) this.#openPage(n)
    this.#readOn(0, performance.now())
  }

  forget(): void {
    this.#report = emptyReport()
  }

  stop(): ClientReport {
    this.#closing.abort()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#agent.destroy()
    const { reads, ...rest } = this.#report
    for (const list of Object.values(reads)) list.sort((a, b) => a - b)
    return { ...rest, reads }
  }

  #openPage(n: number): void {
    const asked = pathsOfPage(n, this.#order.account)
    const tags = new Map<string, string>()
    let isTimed = false
    const ask = (path: string): void => {
      this.#report.pageRequests += 1
      this.#get(path, tags.get(path)).then(
        ({ etag }) => {
          if (etag) tags.set(path, etag)
        },
        (error) => this.#failed(path, error),
      )
    }
    const refresh = (): void => {
      if (isTimed) return
      isTimed = true
      this.#later(REFRESH_MS, () => {
        isTimed = false
        for (const path of asked.live) ask(path)
      })
    }
    for (const path of [...asked.first, ...asked.live]) ask(path)
    if (asked.everyMs > 0)
      this.#every(asked.everyMs, () => ask(`/api/series?stepS=1&sinceS=${Date.now() / 1000 - 3}`))
    this.#listen(refresh)
  }

  #listen(onSnapshot: () => void): void {
    const request = get(`${this.#order.url}/api/events`, {
      agent: false,
      headers: BENCH_HEADERS,
      signal: this.#closing.signal,
    })
    request.on('error', (error) => this.#failed('/api/events', error))
    request.on('response', (response) => {
      if (response.statusCode !== 200) this.#failed('/api/events', new Error(String(response.statusCode)))
      response.setEncoding('utf8')
      response.on('error', (error) => this.#failed('/api/events', error))
      response.on('end', () => this.#failed('/api/events', new Error('ended')))
      response.on('data', (text: string) => {
        this.#report.bytes += text.length
        this.#report.events += text.split('\nevent: ').length - 1
        if (text.includes('event: snapshot')) onSnapshot()
      })
    })
  }

  /** Reads by the clock: what is late is caught up with. */
  #readOn(n: number, fromMs: number): void {
    const { readsPerS } = this.#order
    let due = n
    while (fromMs + (due * 1000) / readsPerS <= performance.now()) {
      this.#read(due, fromMs + (due * 1000) / readsPerS)
      due += 1
    }
    this.#later(Math.max(0, fromMs + (due * 1000) / readsPerS - performance.now()), () =>
      this.#readOn(due, fromMs),
    )
  }

  #read(n: number, dueMs: number): void {
    const { kind, path } = this.#pathOf(n)
    const report = this.#report
    this.#get(path).then(
      ({ text }) => {
        const list = report.reads[kind] ?? []
        list.push(performance.now() - dueMs)
        report.reads[kind] = list
        if (kind === 'search') this.#ids = idsIn(text, this.#ids)
      },
      (error) => this.#failed(path, error),
    )
  }

  #pathOf(n: number): { kind: string; path: string } {
    const { account } = this.#order
    const stream = `/api/streams/${encodeURIComponent(`mail:${account}`)}`
    const turn = Math.floor(n / 6)
    const id = this.#ids[turn % Math.max(1, this.#ids.length)]
    switch (n % 6) {
      case 0:
        return { kind: 'overview', path: '/api/overview' }
      case 1:
        return { kind: 'streams', path: '/api/streams' }
      case 2:
        return { kind: 'frontier', path: `${stream}/frontier` }
      case 3:
        return { kind: 'jobs', path: `/api/jobs?limit=50${JOB_FILTERS[turn % JOB_FILTERS.length]}` }
      case 4:
        if (id === undefined) return { kind: 'streams', path: stream }
        return { kind: 'message', path: `/api/mail/messages/${encodeURIComponent(account)}/${id}` }
      default:
        return {
          kind: 'search',
          path: `/api/mail/search?q=${encodeURIComponent(WORDS[turn % WORDS.length]!)}`,
        }
    }
  }

  #get(path: string, etag?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = { ...BENCH_HEADERS, ...(etag === undefined ? {} : { 'if-none-match': etag }) }
      const request = get(`${this.#order.url}${path}`, {
        agent: this.#agent,
        headers,
        signal: this.#closing.signal,
        timeout: READ_MS_MAX,
      })
      request.on('timeout', () => request.destroy(new Error(`no answer after ${READ_MS_MAX} ms`)))
      request.on('error', reject)
      request.on('response', (response: IncomingMessage) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (more: string) => {
          text += more
        })
        response.on('error', reject)
        response.on('end', () => {
          this.#report.bytes += text.length
          const status = response.statusCode ?? 0
          if (status === 200 || status === 304) resolve({ status, text, etag: response.headers.etag })
          else reject(new Error(`${status}: ${text.slice(0, 200)}`))
        })
      })
    })
  }

  #failed(path: string, error: unknown): void {
    if (this.#closing.signal.aborted) return
    this.#report.errors.push(`${path}: ${error instanceof Error ? error.message : String(error)}`)
  }

  #later(ms: number, fn: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#closing.signal.aborted) fn()
    }, ms)
    this.#timers.add(timer)
  }

  #every(ms: number, fn: () => void): void {
    this.#later(ms, () => {
      fn()
      this.#every(ms, fn)
    })
  }
}

export function startClients(order: ClientOrder): Clients {
  return new Clients(order)
}

function emptyReport(): ClientReport {
  return { reads: {}, pageRequests: 0, events: 0, bytes: 0, errors: [] }
}

/** Two overviews, a stream, the work, and the jobs, again and again. */
export function pathsOfPage(
  n: number,
  account: string,
): { first: string[]; live: string[]; everyMs: number } {
  const stream = `/api/streams/${encodeURIComponent(`mail:${account}`)}`
  const first = ['/', '/api/overview', '/api/accounts']
  switch (n % 5) {
    case 0:
    case 1:
      return { first, live: [`${stream}/frontier?cells=160`], everyMs: REFRESH_MS }
    case 2:
      return {
        first: [...first, `/api/bad?limit=100&stream=${encodeURIComponent(`mail:${account}`)}`],
        live: [`${stream}/frontier?cells=400`, `${stream}/segments?limit=100`],
        everyMs: 0,
      }
    case 3:
      return {
        first: [...first, '/api/schedules'],
        live: ['/api/limits', '/api/workers'],
        everyMs: REFRESH_MS,
      }
    default:
      return { first: [...first, '/api/schedules'], live: ['/api/jobs?limit=100'], everyMs: 0 }
  }
}

function idsIn(text: string, before: string[]): string[] {
  const { items } = JSON.parse(text) as { items: { id: string }[] }
  return items.length > 0 ? items.slice(0, 20).map(({ id }) => id) : before
}
