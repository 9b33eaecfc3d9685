/** The orders of the mail bench, each in a process of its own. */
import { answerOrder } from '../order.ts'
import { downloadAll, insertAll } from './limits.ts'
import { searchAll } from './search.ts'
import { serveGmail } from './served-gmail.ts'

export type Order =
  | { do: 'gmail'; messages: number; unitsPerMinute: number | null; profile: 'plain' | 'small' }
  | { do: 'download'; baseUrl: string; accessToken: string; ids: string }
  | { do: 'insert'; file: string; messages: number }
  | { do: 'search'; folder: string; archiveId: string; labels: Record<string, string>; rounds: number }

async function work(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'gmail':
      return await serveGmail(order)
    case 'download':
      return await downloadAll(order)
    case 'insert':
      return insertAll(order)
    case 'search':
      return await searchAll(order)
  }
}

await answerOrder<Order>(import.meta.url, { work, stays: (order) => order.do === 'gmail' })
