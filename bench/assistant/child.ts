/** The orders of the assistant's bench, each in a process of its own. */
import { answerOrder } from '../order.ts'
import {
  type BacklogOrder,
  type LatencyOrder,
  measureBacklog,
  measureLatency,
  measureUsers,
  type UsersOrder,
} from './assisting.ts'

export type Order = LatencyOrder | BacklogOrder | UsersOrder

async function work(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'latency':
      return await measureLatency(order)
    case 'backlog':
      return await measureBacklog(order)
    case 'users':
      return await measureUsers(order)
  }
}

await answerOrder<Order>(import.meta.url, { work, stays: () => false })
