/** One order in this process alone: comes as JSON in the first argument, its answer goes to the parent as a message. */
import { fileURLToPath } from 'node:url'
import { downloadAll, insertAll } from './limits.ts'
import { searchAll } from './search.ts'
import { serveGmail } from './served-gmail.ts'

export type Order =
  | { do: 'gmail'; messages: number; unitsPerMinute: number | null; profile: 'plain' | 'small' }
  | { do: 'download'; baseUrl: string; accessToken: string; ids: string }
  | { do: 'insert'; file: string; messages: number }
  | { do: 'search'; folder: string; archiveId: string; labels: Record<string, string>; rounds: number }

const FILE = fileURLToPath(import.meta.url)

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

async function answer(order: Order): Promise<void> {
  let message: { value: unknown } | { error: string }
  try {
    message = { value: await work(order) }
  } catch (error) {
    message = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
  // A server stays until it is stopped.
  process.send?.(message, () => {
    if (order.do !== 'gmail' || 'error' in message) process.exit(0)
  })
}

if (process.argv[1] === FILE && process.send) {
  // A parent that is gone takes its measurements with it.
  process.on('disconnect', () => process.exit(1))
  await answer(JSON.parse(process.argv[2] ?? '{}') as Order)
}
