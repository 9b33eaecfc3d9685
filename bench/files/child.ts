/** The orders of the file bench, each in a process of its own. */
import { answerOrder } from '../order.ts'
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

await answerOrder<Order>(import.meta.url, { work, stays: (order) => order.do === 'drive' })
