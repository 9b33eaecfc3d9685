/** One order in this process alone: comes as JSON in the first argument, its answer goes to the parent as a message. */
import { fileURLToPath } from 'node:url'
import type { LimitOrder } from './limits.ts'
import type { DriveAt, DriveOrder } from './served-drive.ts'
import type { SyncOrder } from './subject.ts'
import type { Huge, Tree } from './tree.ts'

export type Order =
  | DriveOrder
  | SyncOrder
  | LimitOrder
  | { do: 'set-up'; home: string; at: DriveAt; tree?: Tree; huge?: Huge; isAgreed?: true }
  | { do: 'hash'; gigabytes: number }
  /** Nothing: what a process needs that does nothing. */
  | { do: 'bare' }

const FILE = fileURLToPath(import.meta.url)

/** Each loads only what it needs, so that the memory of one says nothing about another. */
async function work(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'drive':
      return await (await import('./served-drive.ts')).serveDrive(order)
    case 'sync':
      return await (await import('./subject.ts')).syncSteps(order)
    case 'limit':
      return await (await import('./limits.ts')).runLimit(order)
    case 'set-up':
      return await setUpHome(order)
    case 'hash':
      return (await import('./hash-speed.ts')).hashSpeeds(order)
    case 'bare':
      return process.resourceUsage().maxRSS / 1024
  }
}

async function setUpHome({ home, at, tree, huge, isAgreed }: Order & { do: 'set-up' }): Promise<true> {
  const { setUp, rootOf } = await import('./subject.ts')
  const { makeHere, makeHugeHere } = await import('./tree.ts')
  await setUp(home, at)
  if (tree) makeHere(rootOf(home), tree)
  if (huge) makeHugeHere(rootOf(home), huge)
  if (isAgreed) await (await import('./agreed.ts')).agreeOnAll(home, at)
  return true
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
    if (order.do !== 'drive' || 'error' in message) process.exit(0)
  })
}

if (process.argv[1] === FILE && process.send) {
  // A parent that is gone takes its measurements with it.
  process.on('disconnect', () => process.exit(1))
  await answer(JSON.parse(process.argv[2] ?? '{}') as Order)
}
