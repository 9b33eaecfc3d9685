/** The text of a query as it is typed: which word a suggestion completes, and what comes of it. */

/** Where the last word begins; spaces inside quotes belong to it. */
export function lastWordAt(query: string): number {
  let at = 0
  let isQuoted = false
  for (let i = 0; i < query.length; i++) {
    const char = query[i]
    if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && (char === ' ' || char === '(')) at = i + 1
  }
  return at
}

/** A suggestion is either the whole query, or what its last word becomes. */
export function applySuggestion(query: string, suggestion: string): string {
  const before = query.slice(0, lastWordAt(query))
  const isWhole = suggestion.toLowerCase().startsWith(before.toLowerCase())
  const next = isWhole ? suggestion : before + suggestion
  // After an operator's colon its value is typed; after a whole word the next one.
  return next.endsWith(':') ? next : `${next.trimEnd()} `
}

/** Ends with an operator that has no value yet: nothing to search for before more is typed. */
export const isUnfinished = (query: string): boolean => /(?:^|[\s({-])[a-z_]+:["(]?$/i.test(query)

/** Quoted where a label, a name or an address would otherwise fall into several words. */
export function operatorText(operator: string, value: string): string {
  const plain = value.replaceAll('"', ' ').trim()
  return /^[\p{L}\p{N}@._+-]+$/u.test(plain) ? `${operator}:${plain}` : `${operator}:"${plain}"`
}
