/** Clients of the live events that connect and never read: what the process that serves them grows by. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Row } from '../bench.ts'
import { residentMb } from '../session.ts'
import type { HubOrder, HubReport } from './served-hub.ts'
import type { Session } from './session.ts'

export const SILENT = 'silent: 50 clients that do not read'
const CLIENTS = 50
const LOOK_MS = 500
const SERVE_MS_MAX = 300_000

/** Of single events, which may not be left out, and of states, of which the last is enough. */
const FLOWS: { name: string; order: HubOrder }[] = [
  { name: 'events of 20 kB, 50 a second', order: { do: 'hub', type: 'mark', bytes: 20_000, everyMs: 20 } },
  {
    name: 'snapshots of 200 kB, 10 a second',
    order: { do: 'hub', type: 'snapshot', bytes: 200_000, everyMs: 100 },
  },
]

export async function runSilent(session: Session): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, order } of FLOWS) {
    const row = (what: string, value: number, unit: string): Row => ({
      case: `${SILENT}, ${name}, ${what}`,
      subject: 'tidemark',
      value,
      unit,
    })
    const seen = await watch(session, order)
    rows.push(
      row('resident before', seen.beforeMb, 'MB'),
      row('resident at most', seen.mostMb, 'MB'),
      row('waiting at most', seen.queuedBytesMax / 1e6, 'MB'),
      row('still connected at the end', seen.clients - 1, 'clients'),
      row('missed by a client that reads', seen.missed, 'events'),
    )
    session.say(`${SILENT}: ${name}: ${Math.round(seen.beforeMb)} MB, at most ${Math.round(seen.mostMb)} MB`)
  }
  return rows
}

async function watch({ processes, sizes }: Session, order: HubOrder) {
  const { ready, running } = await processes.serve<{ url: string }>(order, { msMax: SERVE_MS_MAX })
  const pid = running.child.pid!
  const reading = new AbortController()
  const reader = readOn(ready.url, order.type, reading.signal)
  const sockets: Socket[] = []
  try {
    await sleep(systemClock, 2_000)
    const beforeMb = residentMb(pid)
    let mostMb = beforeMb
    for (let n = 0; n < CLIENTS; n++) sockets.push(await openSilent(ready.url))
    const untilMs = systemClock.monotonicMs() + sizes.silentMs
    while (systemClock.monotonicMs() < untilMs) {
      await sleep(systemClock, LOOK_MS)
      mostMb = Math.max(mostMb, residentMb(pid))
    }
    running.child.send('report')
    const [answer] = (await once(running.child, 'message')) as [{ value: HubReport }]
    return { beforeMb, mostMb, ...answer.value, missed: reader.missed() }
  } finally {
    reading.abort()
    for (const socket of sockets) socket.destroy()
    await running.stop()
  }
}

async function openSilent(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  // Being cut off is what is waited for.
  socket.on('error', () => {})
  socket.pause()
  await once(socket, 'connect')
  socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return socket
}

/** Numbers that are left out were missed; of states, only the order matters. */
function readOn(url: string, type: string, signal: AbortSignal): { missed(): number } {
  let [missed, last] = [0, 0]
  const read = async (): Promise<void> => {
    const response = await fetch(`${url}/api/events`, { signal })
    let rest = ''
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const id = Number(/^id: \w+-(\d+)$/m.exec(frame)?.[1] ?? Number.NaN)
        if (!frame.includes(`event: ${type}`)) continue
        if (last > 0 && type === 'mark') missed += id - last - 1
        last = id
      }
    }
  }
  read().catch(() => {
    // Ended on purpose; had it been cut off before, then from there on everything is missed.
    if (!signal.aborted) missed = Number.POSITIVE_INFINITY
  })
  return { missed: () => (last === 0 ? Number.POSITIVE_INFINITY : missed) }
}
