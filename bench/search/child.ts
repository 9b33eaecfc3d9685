/** The orders of the search bench, each in a process of its own. */
import { answerOrder } from '../order.ts'
import { type AskOrder, ask } from './asked-index.ts'
import { type FillOrder, fill } from './filled-index.ts'
import { type IndexOrder, indexAll } from './indexed-documents.ts'

export type Order = FillOrder | AskOrder | IndexOrder

async function work(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'fill':
      return await fill(order)
    case 'ask':
      return await ask(order)
    case 'index':
      return await indexAll(order)
  }
}

await answerOrder<Order>(import.meta.url, { work, stays: () => false })
