/** What stands after the `?`: a page's filters live there, so that a link leads back to them. */
import { useSearch } from 'wouter-preact'

/** wouter decodes the text once by itself, which would turn `%2541` into `A`: read from the address instead. */
export function useSearchParam(name: string): string {
  useSearch()
  return new URLSearchParams(location.search).get(name) ?? ''
}

/** Writes into the address: in place unless `push` is said, so that typing does not fill the history. */
export function setSearchParams(
  values: Record<string, string | number | undefined>,
  options: { push?: boolean } = {},
): void {
  const search = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') search.delete(name)
    else search.set(name, String(value))
  }
  const text = search.toString()
  const url = location.pathname + (text === '' ? '' : `?${text}`)
  if (options.push) history.pushState(null, '', url)
  else history.replaceState(null, '', url)
}
