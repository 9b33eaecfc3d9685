import { appPages } from '../../src/apps/pages.ts'
import type { AppPages } from './app-pages.ts'
import { streamLink } from './links.ts'

function pagesOf(name: string): { pages: AppPages | undefined; source: string } {
  const pages = appPages.find((one) => name.startsWith(`${one.name}:`))
  return { pages, source: name.slice((pages?.name.length ?? 0) + 1) }
}

/** The page that tells most about it. */
export function homeLink(name: string): string {
  const { pages, source } = pagesOf(name)
  return pages?.stream?.home?.(source) ?? streamLink(name)
}

/** `mail:ann@example.com` as people would say it: whose, and what it is a copy of. */
export function streamTitle(name: string): { title: string; kind: string } {
  const colon = name.indexOf(':')
  if (colon <= 0 || colon === name.length - 1) return { title: name, kind: 'Stream' }
  const kind = name.slice(0, colon)
  return { title: name.slice(colon + 1), kind: kind[0]!.toUpperCase() + kind.slice(1) }
}

/** How lists name it: with its kind before it, which a narrow column shows, where another of them has the same title. */
export function titleAmong(name: string, names: readonly string[]): string {
  const { title, kind } = streamTitle(name)
  const isAlone = names.every((other) => other === name || streamTitle(other).title !== title)
  return isAlone ? title : `${kind} · ${title}`
}
