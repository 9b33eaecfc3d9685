import { useLocation } from 'wouter-preact'
import { useKeys } from '../../../../../web/src/keyboard.ts'
import { searchLink } from '../links.ts'
import { rememberOpened } from './last-search.ts'

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
