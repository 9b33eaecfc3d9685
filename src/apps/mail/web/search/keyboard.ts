/** Single keys for the page as a whole; while somebody types they are letters. */
import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { searchLink } from '../links.ts'
import { rememberOpened } from './last-search.ts'

export type KeyBindings = Record<string, (event: KeyboardEvent) => void>

export function useKeys(bindings: KeyBindings): void {
  const latest = useRef(bindings)
  latest.current = bindings
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
      // A dialog has its own keys.
      if (document.querySelector('dialog[open]')) return
      latest.current[event.key]?.(event)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

function isTyping({ target }: KeyboardEvent): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input:not([type=radio], [type=checkbox]), select, textarea'))
  )
}

/** `/` leads to the search from every page; on the page of the search it is the field's own. */
export function useSearchKey(path: string): void {
  const [, navigate] = useLocation()
  useKeys({
    '/': (event) => {
      if (path === '/search') return
      event.preventDefault()
      // Somebody who wants to search anew is not coming back to a list.
      rememberOpened(undefined)
      navigate(searchLink())
    },
  })
}
