/** Names of attachments come from strangers. This makes names of them that are nothing but names. */

/** File systems take 255 bytes; some are left for `.partial`, `-2` and the like. */
const NAME_BYTES_MAX = 200
const EXTENSION_CHARS_MAX = 20
const LOOKED_AT_CHARS = 2_000

/** Those that Windows takes for devices, with any extension. */
const RESERVED = /^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])$/i

/** Controls, and what makes a name read otherwise than it is: direction marks, invisible characters. */
const REMOVED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

/** One path segment that is safe on every system: never empty, a path, hidden, or a device; keeps the extension. */
export function safeFileName(name: string, fallback: string): string {
  return cleaned(name) ?? cleaned(fallback) ?? 'unnamed'
}

function cleaned(name: string): string | null {
  const visible = shortened(name).toWellFormed().normalize('NFC').replace(REMOVED, '')
  const segment = lastSegment(visible)
  const plain = trimmed(segment.replace(/[/\\:*?"<>|]/g, '_').replace(/\s/g, ' '))
  if (plain === '' || /^_+$/.test(plain)) return null
  const stem = plain.split('.', 1)[0]!.trim()
  return fitting(RESERVED.test(stem) ? `_${plain}` : plain)
}

/** The middle of an endless name is of no use to anyone; its end is, for the extension. */
function shortened(name: string): string {
  if (name.length <= LOOKED_AT_CHARS) return name
  return name.slice(0, LOOKED_AT_CHARS / 2) + name.slice(-LOOKED_AT_CHARS / 2)
}

/** `C:\Users\me\report.pdf` is report.pdf; `AC/DC.mp3` is a name with a slash in it. */
function lastSegment(name: string): string {
  if (!/^(\/|\\|\.{1,2}[/\\]|~[/\\]|[a-z]:[/\\])/i.test(name)) return name
  return name.split(/[/\\]/).findLast((segment) => /[^. ]/.test(segment)) ?? ''
}

/** No hidden files; no dots and blanks at the end, which Windows drops. */
function trimmed(name: string): string {
  let start = 0
  let end = name.length
  while (start < end && (name[start] === '.' || name[start] === ' ')) start++
  while (end > start && (name[end - 1] === '.' || name[end - 1] === ' ')) end--
  return name.slice(start, end)
}

function fitting(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name
  const dot = name.lastIndexOf('.')
  const extension = dot > 0 && name.length - dot <= EXTENSION_CHARS_MAX ? name.slice(dot) : ''
  const stem = name.slice(0, name.length - extension.length)
  const room = NAME_BYTES_MAX - Buffer.byteLength(extension)
  const kept: string[] = []
  let bytes = 0
  for (const char of stem) {
    bytes += Buffer.byteLength(char)
    if (bytes > room) break
    kept.push(char)
  }
  return trimmed(kept.join('')) + extension
}
