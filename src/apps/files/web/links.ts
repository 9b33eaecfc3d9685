/** Addresses of the pages of folders. */
import { withQuery } from '../../../../web/src/links.ts'

export const filesLink = (): string => '/files'
export const folderLink = (name: string, view?: string): string =>
  withQuery(`/files/${encodeURIComponent(name)}`, { view })
export const conflictLink = (name: string, id: number): string =>
  `/files/${encodeURIComponent(name)}/conflicts/${id}`
