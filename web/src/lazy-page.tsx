/** Pages whose code is loaded when they are first opened; then they are there at once. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ErrorNote, Skeleton } from './components/notes.tsx'

export type LazyPage = ComponentType & {
  /** Ahead of a click: the pointer is over the link. */
  preload: () => void
}

export function lazyPage(load: () => Promise<ComponentType>): LazyPage {
  let page: ComponentType | undefined
  let loading: Promise<ComponentType> | undefined
  const get = (): Promise<ComponentType> => {
    loading ??= load().then(
      (loaded) => {
        page = loaded
        return loaded
      },
      (error: unknown) => {
        loading = undefined
        throw error
      },
    )
    return loading
  }
  function Lazy() {
    const [state, setState] = useState<{ error?: unknown; tries: number }>({ tries: 0 })
    useEffect(() => {
      if (page) return
      let isHere = true
      get().then(
        () => isHere && setState({ tries: 0 }),
        (error: unknown) => isHere && setState((before) => ({ error, tries: before.tries })),
      )
      return () => {
        isHere = false
      }
    }, [state.tries])
    const Page = page
    if (Page) return <Page />
    // After an update the old parts are gone from the server: the page as a whole must be loaded anew.
    if (state.error)
      return <ErrorNote error={state.error} what="This page could not be loaded" retry={reload} />
    return <PageSkeleton />
  }
  return Object.assign(Lazy, { preload: () => void get().catch(() => undefined) })
}

const reload = (): void => location.reload()

function PageSkeleton() {
  return (
    <div class="stack" aria-busy="true">
      <span class="visually-hidden" role="status">
        Loading the page
      </span>
      <Skeleton width="14rem" height="2rem" />
      <Skeleton height="12rem" />
    </div>
  )
}
