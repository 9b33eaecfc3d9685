/** The orders of the ingest bench, each in a process of its own. */
import { answerOrder } from '../order.ts'
import {
  type AppendOrder,
  appendAll,
  type CarryOrder,
  carry,
  type IngestOrder,
  ingest,
  type SetUpOrder,
  setUp,
} from './ingesting.ts'
import { type CloudOrder, serveCloud } from './served-cloud.ts'
import { lookAtShards, type ShardsOrder } from './shard-table.ts'
import { type SwapOrder, swapVersions } from './swap.ts'

export type Order = CloudOrder | SetUpOrder | IngestOrder | AppendOrder | CarryOrder | ShardsOrder | SwapOrder

async function work(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'cloud':
      return await serveCloud(order)
    case 'set up':
      return await setUp(order)
    case 'ingest':
      return await ingest(order)
    case 'append':
      return await appendAll(order)
    case 'carry':
      return await carry(order)
    case 'shards':
      return await lookAtShards(order)
    case 'swap':
      return await swapVersions(order)
  }
}

await answerOrder<Order>(import.meta.url, { work, stays: (order) => order.do === 'cloud' })
