/**
 * What the browser loads by itself, a frame, a picture or a download, cannot carry the session: it is given an address
 * that is good for a minute.
 */
import { useQuery } from '@tanstack/preact-query'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { api } from './api.ts'
import { showToast } from './components/toast-store.ts'
import { ApiError } from './problem.ts'

/** Undefined until it is there. Asked for once: what was loaded stays. */
export function useTicket(path: string): { href: string | undefined; error: unknown } {
  const { data, error } = useQuery({
    queryKey: ['ticket', path],
    queryFn: () => api.ticket(path),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
  return { href: data?.href, error }
}

export function DownloadButton(props: {
  path: string
  class: string
  title?: string
  children: ComponentChildren
}) {
  const { path, children, ...rest } = props
  const [busy, setBusy] = useState(false)
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      const link = document.createElement('a')
      link.href = (await api.ticket(path)).href
      link.download = ''
      link.click()
    } catch (error) {
      const text = error instanceof ApiError ? error.message : 'That did not work.'
      showToast(text, { tone: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" {...rest} disabled={busy} aria-busy={busy || undefined} onClick={() => void save()}>
      {children}
    </button>
  )
}
