/**
 * A made-up source, computed and not stored: which items there are and what becomes of each is a function of
 * their names, so that every process, and the oracle, knows the truth without asking anybody.
 *
 * A stream has segments of 1,000 positions, a segment has pages of 100, a page has items at its first
 * positions. An item is called `stream:position`.
 */
export type SourceSize = {
  streams: readonly string[]
  segments: number
  pages: number
  pageItems: number
  batchItems: number
  /** Long jobs per stream that commit part after part, and how many parts each has. */
  uploads: number
  parts: number
  /** How long handlers take, on average. */
  paceMs: number
  /** Handlers do not listen when they are told to stop. */
  deaf?: boolean
}

export const SMALL: SourceSize = {
  streams: ['inbox', 'drive'],
  segments: 4,
  pages: 3,
  pageItems: 12,
  batchItems: 6,
  uploads: 1,
  parts: 6,
  paceMs: 3,
}

export const SEGMENT_SPAN = 1_000
export const PAGE_SPAN = 100
/** This segment of each stream is cut in two while it is being listed, before this page. */
export const SPLIT_SEGMENT = 1
export const SPLIT_PAGE = 2

/**
 * - stored: works; `heavy` too, but only alone: in a batch it fails again and again
 * - poison: fails for good; `told-bad`: the handler itself says so
 * - gone: the call about it fails with `gone`; `told-gone`: the handler counts it
 * - skipped: the handler leaves it out
 */
export type Fate = 'stored' | 'heavy' | 'poison' | 'told-bad' | 'gone' | 'told-gone' | 'skipped'
export type Category = 'stored' | 'gone' | 'skipped' | 'bad'

export const CATEGORY_OF: Record<Fate, Category> = {
  stored: 'stored',
  heavy: 'stored',
  poison: 'bad',
  'told-bad': 'bad',
  gone: 'gone',
  'told-gone': 'gone',
  skipped: 'skipped',
}

/** By position on the page: one fate of each unusual kind in some pages, none in most. */
const UNUSUAL: readonly Fate[] = ['poison', 'told-bad', 'gone', 'told-gone', 'skipped', 'heavy']

export function fateOf(item: string): Fate {
  const roll = hash(item) % 40
  return UNUSUAL[roll] ?? 'stored'
}

export function pageItems(size: SourceSize, stream: string, pageAt: number): string[] {
  return Array.from({ length: size.pageItems }, (_, n) => `${stream}:${pageAt + n}`)
}

/** Where the pages within [from, to) begin. */
export function pagesIn(size: SourceSize, from: number, to: number): number[] {
  const starts = Array.from({ length: size.segments }, (_, segment) =>
    Array.from({ length: size.pages }, (_, page) => segment * SEGMENT_SPAN + page * PAGE_SPAN),
  )
  return starts.flat().filter((at) => at >= from && at < to)
}

export function itemsIn(size: SourceSize, stream: string, from: number, to: number): string[] {
  return pagesIn(size, from, to).flatMap((at) => pageItems(size, stream, at))
}

export function streamEnd(size: SourceSize): number {
  return size.segments * SEGMENT_SPAN
}

export function positionOf(item: string): number {
  return Number(item.slice(item.indexOf(':') + 1))
}

export function countFates(items: readonly string[]): Record<Category, number> {
  const counts: Record<Category, number> = { stored: 0, gone: 0, skipped: 0, bad: 0 }
  for (const item of items) counts[CATEGORY_OF[fateOf(item)]] += 1
  return counts
}

/** FNV-1a with a final mix: neighbours get unrelated numbers. */
export function hash(text: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d)
  return (h ^ (h >>> 13)) >>> 0
}
