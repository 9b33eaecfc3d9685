/** Labels as Takeout writes them, and as Gmail's API names them. */
import { decodeWords, headerText } from '../mime/encoded-words.ts'
import { clip, NAME_CHARS_MAX, plainLine } from '../mime/limits.ts'

/** Takeout's names in English of what has a fixed id. */
const OWN_LABELS: readonly (readonly [name: string, id: string])[] = [
  ['Inbox', 'INBOX'],
  ['Sent', 'SENT'],
  ['Starred', 'STARRED'],
  ['Important', 'IMPORTANT'],
  ['Unread', 'UNREAD'],
  ['Drafts', 'DRAFT'],
  ['Spam', 'SPAM'],
  ['Trash', 'TRASH'],
  ['Chat', 'CHAT'],
  ['Category Personal', 'CATEGORY_PERSONAL'],
  ['Category Promotions', 'CATEGORY_PROMOTIONS'],
  ['Category Social', 'CATEGORY_SOCIAL'],
  ['Category Updates', 'CATEGORY_UPDATES'],
  ['Category Forums', 'CATEGORY_FORUMS'],
]

const ID_OF = new Map(OWN_LABELS.map(([name, id]) => [name.toLowerCase(), id]))
const NAME_OF = new Map(OWN_LABELS.map(([name, id]) => [id, name]))

/** States that Takeout lists among the labels. */
const NO_LABELS = new Set(['opened', 'archived'])

const LABELS_MAX = 5_000

/** The names in an X-Gmail-Labels header: separated by commas, with quotes around names that have some. */
export function parseLabelNames(value: string): string[] {
  const text = decodeWords(headerText(value))
  const names = new Set<string>()
  let name = ''
  let isQuoted = false
  const finish = (): void => {
    const plain = clip(plainLine(name).trim(), NAME_CHARS_MAX)
    if (plain !== '' && names.size < LABELS_MAX) names.add(plain)
    name = ''
  }
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === '\\' && isQuoted && (text[at + 1] === '"' || text[at + 1] === '\\')) name += text[++at]
    else if (char === '"' && (isQuoted || name.trim() === '')) isQuoted = !isQuoted
    else if (char === ',' && !isQuoted) finish()
    else name += char
  }
  finish()
  return [...names]
}

/** As an X-Gmail-Labels header has it. */
export function formatLabelNames(names: readonly string[]): string {
  const text = names
    .map((name) => (/[",\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name))
    .join(',')
  if (/^[ -~]*$/.test(text) && !text.includes('=?')) return text
  // Words of one charset are read as one text, wherever they were cut.
  const bytes = Buffer.from(text, 'utf8')
  const words: string[] = []
  for (let at = 0; at < bytes.length; at += WORD_BYTES) {
    words.push(`=?UTF-8?B?${bytes.subarray(at, at + WORD_BYTES).toString('base64')}?=`)
  }
  return words.join(' ')
}

/** An encoded word has 75 characters at most. */
const WORD_BYTES = 45

/** `labels`: ids by lower-case name. A name that nobody knows is its own id. */
export function labelIdsOf(names: readonly string[], labels: ReadonlyMap<string, string>): string[] {
  const ids = names
    .filter((name) => !NO_LABELS.has(name.toLowerCase()))
    .map((name) => ID_OF.get(name.toLowerCase()) ?? labels.get(name.toLowerCase()) ?? name)
  return [...new Set(ids)]
}

export function labelNamesOf(ids: readonly string[], names: ReadonlyMap<string, string>): string[] {
  return ids.map((id) => NAME_OF.get(id) ?? names.get(id) ?? id)
}
