/** Gmail's own labels come in capitals; people know them by other words. */
import { operatorText } from './query-text.ts'

const SYSTEM = /^(?:CATEGORY_)?[A-Z]+$/
/** What most mail carries says nothing about this one. */
const QUIET = new Set(['INBOX', 'UNREAD', 'SENT', 'IMPORTANT', 'CATEGORY_PERSONAL'])

export const isQuietLabel = (name: string): boolean => QUIET.has(name.toUpperCase())

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
