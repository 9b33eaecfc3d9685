import { fileURLToPath } from 'node:url'

/**
 * For a child.ts: one order in this process alone. It comes as JSON in the first argument; its answer goes to the
 * parent as a message. A server (`stays`) ends when it is stopped.
 */
export async function answerOrder<Order>(
  file: string,
  { work, stays }: { work: (order: Order) => Promise<unknown>; stays: (order: Order) => boolean },
): Promise<void> {
  if (process.argv[1] !== fileURLToPath(file) || !process.send) return
  // A parent that is gone takes its measurements with it.
  process.on('disconnect', () => process.exit(1))
  const order = JSON.parse(process.argv[2] ?? '{}') as Order
  let message: { value: unknown } | { error: string }
  try {
    message = { value: await work(order) }
  } catch (error) {
    message = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
  process.send(message, () => {
    if ('error' in message || !stays(order)) process.exit(0)
  })
}
