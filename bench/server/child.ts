/** One part of a measurement in this process alone: its order comes as JSON in the first argument. */
import { answerOrder } from '../order.ts'
import { type ClientOrder, startClients } from './clients.ts'
import { type HubOrder, serveHub } from './served-hub.ts'

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

await answerOrder<ClientOrder | HubOrder>(import.meta.url, {
  work: async (order) => (order.do === 'hub' ? await serveHub(order) : obey(order)),
  stays: () => true,
})
