/** A value that components can watch. */
import { useEffect, useState } from 'preact/hooks'

export type Store<T> = {
  get(): T
  set(value: T): void
  watch(fn: () => void): () => void
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const watchers = new Set<() => void>()
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return
      value = next
      for (const fn of watchers) fn()
    },
    watch: (fn) => {
      watchers.add(fn)
      return () => watchers.delete(fn)
    },
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get)
  useEffect(() => {
    const update = (): void => setValue(() => store.get())
    update()
    return store.watch(update)
  }, [store])
  return value
}
