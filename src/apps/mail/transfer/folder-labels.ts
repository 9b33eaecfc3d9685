/** The label that a message gets from the folder it lies in: what mail programs add to the path is left out. */
import { clip, NAME_CHARS_MAX, plainLine } from '../mime/limits.ts'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** Parts of the path below a folder of Apple's, of a Maildir, and of a Thunderbird profile. */
const STRUCTURE = /^(?:Data|Messages|Attachments|cur|new|\d{1,3}|V\d{1,3}|mbox)$/
const SUFFIX = /\.(?:sbd|mbo?x|imapmbox)$/i

/** `parts`: folders from where the import began, and the name of a mailbox file. */
export function folderLabel(parts: readonly string[]): string[] {
  const names: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!
    const next = parts[at + 1] ?? ''
    // A Thunderbird profile has a folder for each server.
    if (part === 'ImapMail' || (part === 'Mail' && (next === 'Local Folders' || next.includes('.')))) {
      names.length = 0
      at += 1
    } else if (!UUID.test(part) && !(STRUCTURE.test(part) && isWithin(parts, at)))
      names.push(...labelParts(part))
  }
  const label = clip(plainLine(names.join('/')).trim(), NAME_CHARS_MAX)
  return label === '' ? [] : [label]
}

/** A folder that a person has called `2019` or `Data` is a label; below a mailbox it is not. */
function isWithin(parts: readonly string[], at: number): boolean {
  const part = parts[at]!
  if (part === 'cur' || part === 'new' || /^V\d/.test(part)) return true
  return parts.slice(0, at).some((one) => /\.(?:mbox|imapmbox)$/i.test(one))
}

function labelParts(part: string): string[] {
  // A Maildir's subfolder: `.Work.Plans`.
  if (part.startsWith('.')) return part.slice(1).split('.').filter(Boolean).map(withoutUtf7)
  return [withoutUtf7(part.replace(SUFFIX, '').replace(/\.gz$/i, '').replace(SUFFIX, ''))].filter(Boolean)
}

/** IMAP's way to write names in ASCII, which servers and Thunderbird keep in theirs of files: `Entw&APw-rfe`. */
function withoutUtf7(name: string): string {
  if (!/&[A-Za-z0-9+,]*-/.test(name)) return name
  let isSound = true
  const decoded = name.replace(/&([A-Za-z0-9+,]*)-/g, (_all, code: string) => {
    const bytes = Buffer.from(code.replaceAll(',', '/'), 'base64')
    const text = bytes
      .subarray(0, bytes.length & ~1)
      .swap16()
      .toString('utf16le')
    const again = Buffer.from(text, 'utf16le').swap16().toString('base64').replace(/=+$/, '')
    // `R&D-plans` is a name as it is: nobody writes ASCII in this way, or leaves bits over.
    if (again !== code.replaceAll(',', '/') || /[ -~]/.test(text)) isSound = false
    return code === '' ? '&' : text
  })
  return isSound ? decoded : name
}
