/**
 * Names that one side knows and the other does not take. Such a thing stays where it is, is reported, and is never
 * deleted on the side that has it.
 */
import type { Reason } from './left-code.ts'

/** Everything of ours inside the root: marker, partial downloads, trash. */
export const OWN_FOLDER = '.tidemark'
export const IGNORE_FILE = '.tidemarkignore'

const NAME_CHARS_MAX = 255
const PATH_CHARS_MAX = 400
const FORBIDDEN = /["*:<>?/\\|]/
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|\.lock|desktop\.ini)$/i
/** Linux counts bytes, and a conflict copy needs some more of them. */
const LOCAL_NAME_BYTES_MAX = 255

/** Why OneDrive would refuse it; undefined where it would not. */
export function illegalNameOf(name: string, place: { isInRoot: boolean; path: string }): string | undefined {
  const normal = name.normalize('NFC')
  const character = FORBIDDEN.exec(normal)?.[0] ?? controlIn(normal)
  if (character !== undefined) return `OneDrive does not take names with ${shown(character)}`
  if (normal !== normal.trim()) return 'OneDrive does not take names that begin or end with a space'
  if (normal.endsWith('.')) return 'OneDrive does not take names that end with a dot'
  if (normal.startsWith('~$')) return 'OneDrive does not take names that begin with ~$'
  if (/_vti_/i.test(normal)) return 'OneDrive does not take names with _vti_'
  if (RESERVED.test(normal)) return `OneDrive keeps the name ${normal} for itself`
  if (place.isInRoot && /^forms$/i.test(normal))
    return 'OneDrive keeps the name forms for itself at the top of a drive'
  if (normal.length > NAME_CHARS_MAX) return `OneDrive takes names of at most ${NAME_CHARS_MAX} characters`
  if (place.path.length > PATH_CHARS_MAX)
    return `OneDrive takes paths of at most ${PATH_CHARS_MAX} characters`
  return undefined
}

/** Why it cannot be a name in a local folder: a name from elsewhere must not lead out of the folder. */
export function unsafeNameOf(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'its name is not one that a file can have here'
  if (name.includes('/') || name.includes('\0')) return 'its name has a character that no file can have here'
  if (!name.isWellFormed()) return 'its name is not valid text'
  if (Buffer.byteLength(name) > LOCAL_NAME_BYTES_MAX)
    return `its name is longer than the ${LOCAL_NAME_BYTES_MAX} bytes that a file name can have here`
  return undefined
}

function controlIn(name: string): string | undefined {
  for (const character of name) if (character < ' ' || character === '\x7f') return character
  return undefined
}

function shown(character: string): string {
  return character < ' ' || character === '\x7f' ? 'control characters' : `the character ${character}`
}

const TEMPORARY = /^\.tidemark-move-\d+-/
const CONFLICT_COPY = /\.conflict-\d{8}-\d{6}(?:-\d+)?(?=\.[^.]*$|$)/

/** `report.conflict-20261116-031500.pdf`; with a number where that is taken. */
export function conflictNameOf(name: string, atMs: number, count = 0): string {
  const at = new Date(atMs).toISOString().replaceAll(/[-:]/g, '')
  const stamp = `.conflict-${at.slice(0, 8)}-${at.slice(9, 15)}${count > 0 ? `-${count}` : ''}`
  const plain = originalNameOf(nameBefore(name)) || name
  const dot = plain.lastIndexOf('.')
  const [stem, ending] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot)] : [plain, '']
  return cut(stem, LOCAL_NAME_BYTES_MAX - Buffer.byteLength(stamp + ending)) + stamp + ending
}

export function isConflictName(name: string): boolean {
  return CONFLICT_COPY.test(name)
}

/** By whole characters, so that what is left is still text. */
function cut(text: string, bytesMax: number): string {
  let kept = text
  while (Buffer.byteLength(kept) > bytesMax) kept = [...kept].slice(0, -1).join('')
  return kept
}

/** A name for a moment, while two things exchange theirs. It never counts as one that somebody chose. */
export function temporaryNameOf(name: string, number: number): string {
  const mark = `.tidemark-move-${number}-`
  return mark + cut(name, LOCAL_NAME_BYTES_MAX - Buffer.byteLength(mark))
}

export function isTemporaryName(name: string): boolean {
  return TEMPORARY.test(name)
}

/** What it was called before it got such a name; of a long name the beginning. */
export function nameBefore(temporary: string): string {
  return temporary.replace(TEMPORARY, '')
}

/** The name that a conflict copy is a copy of; of any other, itself. */
export function originalNameOf(name: string): string {
  return name.replace(CONFLICT_COPY, '')
}

/** What takes no part because somebody wished it. */
export function leftOut(excluded: string): Reason {
  return { code: 'left-out', because: `left out: ${excluded}` }
}

/** Of what is in a folder that has such a name: until the end of its move. */
export const IN_EXCHANGE: Reason = {
  code: 'in-exchange',
  because: 'left out: its folder is on its way to another name',
}
