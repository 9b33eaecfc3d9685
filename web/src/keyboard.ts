/** Single keys for the page as a whole; while somebody types they are letters. */
import { useEffect, useRef } from 'preact/hooks'

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
