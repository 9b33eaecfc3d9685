/** Pieces of queries that are made for people: of labels, addresses and names. */

/** Quoted where a label, a name or an address would otherwise fall into several words. */
export function operatorText(operator: string, value: string): string {
  const plain = value.replaceAll('"', ' ').trim()
  return /^[\p{L}\p{N}@._+-]+$/u.test(plain) ? `${operator}:${plain}` : `${operator}:"${plain}"`
}

const SYSTEM = /^(?:CATEGORY_)?[A-Z]+$/
export function labelText(name: string): string {
  if (name === 'CATEGORY_PERSONAL') return 'Primary'
  if (!SYSTEM.test(name)) return name
  const plain = name.replace('CATEGORY_', '')
  return plain[0] + plain.slice(1).toLowerCase()
}

/** What finds all mail with that label. */
export function labelQuery(name: string): string {
  return name.startsWith('CATEGORY_')
    ? `category:${labelText(name).toLowerCase()}`
    : operatorText('label', name)
}
