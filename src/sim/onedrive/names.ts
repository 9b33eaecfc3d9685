/** Which names OneDrive takes, and which of them are the same. */

export const PATH_CHARS_MAX = 400
export const NAME_CHARS_MAX = 255

const PLAIN_LOWER = /^[\x20-\x40\x5b-\x7e]*$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const ILLEGAL = /["*:<>?/\\|\x00-\x1f\x7f]/
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d|\.lock|desktop\.ini)$/i

/** Two names with the same key cannot stand in the same folder. */
export function nameKey(name: string): string {
  return PLAIN_LOWER.test(name) ? name : name.normalize('NFC').toLowerCase()
}

/** Why a name is refused. */
export function nameProblem(name: string, { isInRoot = false } = {}): string | undefined {
  if (name === '') return 'The name is empty.'
  if (name.length > NAME_CHARS_MAX) return `The name is longer than ${NAME_CHARS_MAX} characters.`
  if (ILLEGAL.test(name)) return 'The provided name contains characters that are not allowed.'
  if (name.startsWith(' ') || name.endsWith(' ')) return 'The name begins or ends with a space.'
  if (name.endsWith('.')) return 'The name ends with a dot.'
  if (name.startsWith('~$')) return 'The name begins with ~$.'
  if (/_vti_/i.test(name)) return 'The name contains _vti_.'
  if (RESERVED.test(name)) return 'The provided name is reserved.'
  if (isInRoot && /^forms$/i.test(name)) return 'The provided name is reserved in the root folder.'
  return undefined
}

/** `a.txt` → `a 1.txt`, as the service does it when it is told to rename. */
export function numberedName(name: string, number: number): string {
  const dot = name.lastIndexOf('.')
  return dot > 0 ? `${name.slice(0, dot)} ${number}${name.slice(dot)}` : `${name} ${number}`
}
