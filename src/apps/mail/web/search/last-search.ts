/** Where the reader goes back to: the search that it was opened from, and the message in it. */

let link = '/search'
let opened: string | undefined

export const lastSearchLink = (): string => link
export const lastOpened = (): string | undefined => opened
export const resultKey = (hit: { account: string; id: string }): string => `${hit.account}/${hit.id}`

export function rememberSearch(address: string): void {
  link = address
}

export function rememberOpened(key: string | undefined): void {
  opened = key
}
