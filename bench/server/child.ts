/** One part of a measurement in this process alone: its order comes as JSON in the first argument. */
import { fileURLToPath } from 'node:url'
import { type ClientOrder, startClients } from './clients.ts'
import { type HubOrder, serveHub } from './served-hub.ts'

const FILE = fileURLToPath(import.meta.url)

/** `start` begins, `begin` forgets what was seen until then, `stop` ends and is answered with what was seen. */
function obey(order: ClientOrder): string {
  let clients: ReturnType<typeof startClients> | undefined
  process.on('message', (message) => {
    if (message === 'start') clients = startClients(order)
    if (message === 'begin') clients?.forget()
    if (message === 'stop') process.send?.({ value: clients?.stop() })
  })
  return 'ready'
}

if (process.argv[1] === FILE && process.send) {
  // A parent that is gone takes its measurements with it.
  process.on('disconnect', () => process.exit(1))
  const order = JSON.parse(process.argv[2] ?? '{}') as ClientOrder | HubOrder
  process.send({ value: order.do === 'hub' ? await serveHub(order) : obey(order) })
}
