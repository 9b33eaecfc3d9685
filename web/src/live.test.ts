import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { backoffMs, createLive, type Live, type LiveOptions, type LiveState } from './live.ts'

type Answer = (req: IncomingMessage, res: ServerResponse) => void

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A server that answers each connection by the next of the answers, and the last for good. */
async function serve(answers: Answer[]): Promise<string> {
  let served = 0
  const server: Server = createServer((req, res) => {
    answers[Math.min(served, answers.length - 1)]!(req, res)
    served += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/events`
}

const EVENT_STREAM = { 'content-type': 'text/event-stream' }
const sends =
  (text: string, after: 'stay' | 'end'): Answer =>
  (_, res) => {
    res.writeHead(200, EVENT_STREAM)
    res.write(text)
    if (after === 'end') res.end()
  }
const refuses =
  (status: number): Answer =>
  (_, res) => {
    res.writeHead(status)
    res.end()
  }

type Watched = {
  live: Live
  states: LiveState[]
  events: [string, unknown][]
  opens: boolean[]
  waits: number[]
  until: (isSo: () => boolean) => Promise<void>
}

/** Waits take no time, but for those without an end. */
function watch(url: string, options: Partial<LiveOptions> = {}): Watched {
  const [states, events, opens, waits]: [LiveState[], [string, unknown][], boolean[], number[]] = [
    [],
    [],
    [],
    [],
  ]
  const watchers = new Set<() => void>()
  const changed = (): void => {
    for (const fn of [...watchers]) fn()
  }
  const note = <T>(list: T[], one: T): void => {
    list.push(one)
    changed()
  }
  const live = createLive({
    url,
    fetch,
    random: () => 0,
    onState: (state) => note(states, state),
    onEvent: (type, data) => note(events, [type, data]),
    onOpen: ({ isFirst }) => note(opens, isFirst),
    poll: () => Promise.reject(new Error('unreachable')),
    wait: (ms, signal) => {
      waits.push(ms)
      changed()
      if (Number.isFinite(ms)) return new Promise((resolve) => setImmediate(resolve))
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
    },
    ...options,
  })
  open.push(() => live.stop())
  live.start()
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isSo()) return
        watchers.delete(look)
        resolve()
      }
      watchers.add(look)
      look()
    })
  return { live, states, events, opens, waits, until }
}

describe('the live connection', () => {
  test('hands on events as they come, parsed', async () => {
    const url = await serve([
      sends('id: e-1\nevent: snapshot\ndata: {"at":1}\n\nevent: odd\ndata: no json\n\n', 'stay'),
    ])
    const { states, events, opens, until } = watch(url)
    await until(() => events.length === 2)
    assert.deepEqual(events, [
      ['snapshot', { at: 1 }],
      ['odd', undefined],
    ])
    assert.deepEqual(states, ['live'])
    assert.deepEqual(opens, [true])
  })

  test('comes back after a drop and says which event it saw last', async () => {
    let resumed: string | undefined
    const url = await serve([
      sends('id: e-7\nevent: mark\ndata: 1\n\n', 'end'),
      (req, res) => {
        resumed = req.headers['last-event-id'] as string
        sends('id: e-8\nevent: mark\ndata: 2\n\n', 'stay')(req, res)
      },
    ])
    const { states, opens, events, until } = watch(url)
    await until(() => events.length === 2)
    assert.equal(resumed, 'e-7')
    assert.deepEqual(states, ['live', 'connecting', 'live'])
    assert.deepEqual(opens, [true, false])
  })

  test('polls where events are refused but requests work, and is live again by itself', async () => {
    let polls = 0
    const url = await serve([refuses(503), refuses(503), sends(': ping\n\n', 'stay')])
    const { states, until } = watch(url, {
      poll: async () => {
        polls += 1
      },
    })
    await until(() => states.at(-1) === 'live')
    assert.deepEqual(states, ['polling', 'live'])
    assert.equal(polls, 2)
  })

  test('says that it is offline where nothing answers, and waits longer each time', async () => {
    const { live, states, waits, until } = watch('http://127.0.0.1:9/api/events', {
      fetch: () => Promise.reject(new TypeError('fetch failed')),
    })
    await until(() => waits.length === 7)
    live.stop()
    assert.deepEqual(states, ['offline'])
    assert.deepEqual(waits.slice(0, 7), [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  })

  test('stays signed out until it is nudged', async () => {
    const url = await serve([refuses(401), sends(': ping\n\n', 'stay')])
    const { live, states, waits, until } = watch(url)
    await until(() => waits.length === 1)
    assert.deepEqual(waits, [Number.POSITIVE_INFINITY])
    live.nudge()
    await until(() => states.at(-1) === 'live')
    assert.deepEqual(states, ['signed-out', 'live'])
  })

  test('a connection on which nothing comes any more is made anew', async () => {
    const url = await serve([sends(': ping\n\n', 'stay')])
    const { opens, until } = watch(url, { silentMsMax: 20 })
    await until(() => opens.length === 2)
    assert.deepEqual(opens, [true, false])
  })

  test('a nudge makes the connection anew at once', async () => {
    const url = await serve([sends('event: mark\ndata: 1\n\n', 'stay')])
    const { live, opens, waits, events, until } = watch(url)
    await until(() => events.length === 1)
    live.nudge()
    await until(() => events.length === 2)
    assert.deepEqual(opens, [true, false])
    assert.deepEqual(waits, [])
  })

  test('stopped, it says nothing more; started again, it goes on', async () => {
    const url = await serve([sends('id: e-1\nevent: mark\ndata: 1\n\n', 'stay')])
    const { live, states, events, until } = watch(url)
    await until(() => events.length === 1)
    live.stop()
    live.start()
    await until(() => events.length === 2)
    assert.deepEqual(states, ['live'])
  })
})

test('the backoff is spread by up to a third', () => {
  assert.equal(
    backoffMs(3, () => 0),
    2_000,
  )
  assert.ok(backoffMs(3, () => 0.999) >= 1_333)
})
