/**
 * A process that ends between two steps, without a process: everything it still wants to write to the ledger is
 * refused, and what it was in the middle of is rolled back, as a kill would leave it.
 */
import { TidemarkError } from '../../src/base/errors.ts'
import type { Driver, Tx } from '../../src/ledger/contract.ts'

export type Severable = { driver: Driver; sever(): void; isSevered(): boolean }

/** `step` is told each time that the ledger is about to be asked. */
export function severable(driver: Driver, step: () => void): Severable {
  let isSevered = false
  const check = (): void => {
    if (isSevered) throw new TidemarkError('The process has ended.', { kind: 'permanent', code: 'ended' })
  }
  const guard =
    <T>(fn: (tx: Tx) => Promise<T>) =>
    async (tx: Tx): Promise<T> => {
      check()
      const result = await fn(tx)
      check()
      return result
    }
  const own: Pick<Driver, 'transaction' | 'read'> = {
    async transaction(fn) {
      step()
      check()
      return driver.transaction(guard(fn))
    },
    async read(fn) {
      step()
      check()
      return driver.read(guard(fn))
    },
  }
  const proxy = new Proxy(driver, {
    get(target, name) {
      if (name === 'transaction' || name === 'read') return own[name]
      // The ledger is closed once, by whoever opened it.
      if (name === 'close') return async () => {}
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    driver: proxy,
    sever: () => {
      isSevered = true
    },
    isSevered: () => isSevered,
  }
}
