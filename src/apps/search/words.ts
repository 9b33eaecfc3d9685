/** What was found, and why, in plain words: the same for pages, the command line and models. */
import { formatCount } from '../../base/format.ts'
import type { Hit, Why } from '../../search/contract.ts'
import type { Place } from '../../search/extract/contract.ts'
import { RECENCY_WEIGHT } from '../../search/query/fuse.ts'

/** '' where a format has no places that hold for every reader. */
export function placeText(place: Place): string {
  switch (place.kind) {
    case 'page':
      return `page ${formatCount(place.page)}`
    case 'slide':
      return `slide ${formatCount(place.slide)}`
    case 'rows':
      return `${place.sheet === undefined ? '' : `${place.sheet}, `}${rangeText('row', place)}`
    case 'lines':
      return rangeText('line', place)
    case 'none':
      return ''
  }
}

function rangeText(what: string, { first, last }: { first: number; last: number }): string {
  return first === last
    ? `${what} ${formatCount(first)}`
    : `${what}s ${formatCount(first)}–${formatCount(last)}`
}

export function citationText(citation: NonNullable<Hit['citation']>): string {
  return [placeText(citation.place), ...citation.headings].filter((part) => part !== '').join(' › ')
}

/** Said where there are hits, and none of them is an answer. */
export const NOT_ANSWERED = 'Nothing clearly matches: these are only the nearest by meaning.'

/** Everything has a little of it: told of what was changed within about ten weeks. */
const RECENCY_TOLD_MIN = 0.75 * RECENCY_WEIGHT

/** A sentence for each part of the score that says something, and one for each way to see it. */
export function whyTexts({ words, meaning, recency, access }: Why): string[] {
  const texts: string[] = []
  if (words && words.found.length > 0) {
    const missing = words.missing.length === 0 ? '' : `, without ${words.missing.join(', ')}`
    texts.push(`Has the words ${words.found.join(', ')}${missing}.`)
  }
  if (meaning) {
    const what = meaning.isWeak ? 'May be about something alike' : 'Is about the same'
    texts.push(`${what} (${Math.round(meaning.similarity * 100)} % alike).`)
  }
  if (recency >= RECENCY_TOLD_MIN) texts.push('Was changed not long ago.')
  for (const { principal, kind, via } of access) {
    texts.push(`Seen through ${principal} as ${kind}${via === '' ? '' : `: ${via}`}.`)
  }
  return texts
}
