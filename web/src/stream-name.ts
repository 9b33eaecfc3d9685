import type { StreamView } from '../../src/server/engine-api/schemas.ts'
import { formatCount, formatMark } from './format.ts'
import { driveLink, streamLink } from './links.ts'

const FILES = 'files:'

/** How far it is settled: of files a link of OneDrive, which means nothing to people; its plans are counted. */
export function markText({ name, mark, markAt }: Pick<StreamView, 'name' | 'mark' | 'markAt'>): string {
  if (!name.startsWith(FILES)) return formatMark(mark)
  return markAt > 0 ? `plan ${formatCount(markAt)}` : '–'
}

/** The page that tells most about it: a folder has one of its own. */
export function homeLink(name: string): string {
  return name.startsWith(FILES) ? driveLink(name.slice(FILES.length)) : streamLink(name)
}

/** `mail:ann@example.com` as people would say it: whose, and what it is a copy of. */
export function streamTitle(name: string): { title: string; kind: string } {
  const colon = name.indexOf(':')
  if (colon <= 0 || colon === name.length - 1) return { title: name, kind: 'Stream' }
  const kind = name.slice(0, colon)
  return { title: name.slice(colon + 1), kind: kind[0]!.toUpperCase() + kind.slice(1) }
}
