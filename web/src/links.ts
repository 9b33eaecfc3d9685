/** Addresses of pages, and back: names contain colons, slashes and worse. */

export const overviewLink = (): string => '/'
export const streamLink = (name: string): string => `/streams/${encodeURIComponent(name)}`
export const workLink = (): string => '/work'
export const jobsLink = (filter: Record<string, string | number | undefined> = {}): string =>
  withQuery('/work/jobs', filter)
export const jobLink = (id: number): string => `/work/jobs/${id}`
export const settingsLink = (): string => '/settings'
export const setupLink = (service: string): string => `/settings/setup/${encodeURIComponent(service)}`

/** What stood in a part of the path; the text as it is where it cannot be decoded. */
export function pathPart(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? '')
  } catch {
    // A lone percent sign: the address was typed by hand.
    return text ?? ''
  }
}

export function withQuery(
  path: string,
  query: Record<string, string | number | boolean | undefined>,
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

/** What a browser may be sent to: never a script. */
export function safeAddress(text: string): string | undefined {
  try {
    const { protocol, href } = new URL(text)
    return protocol === 'https:' || protocol === 'http:' ? href : undefined
  } catch {
    return undefined
  }
}
