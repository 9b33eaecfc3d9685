/**
 * By what contents are shared. The name of a document is embedded with its chunks, so that documents share a content only
 * where they have the same bytes and, but for what copying adds to it, the same name.
 */
import { createHash } from 'node:crypto'

/** `bytesHash`: of what was read, with the name of its algorithm: `sha256:…`. */
export function contentKey(bytesHash: string, title: string): string {
  return createHash('sha256')
    .update(`${bytesHash}\n${plainTitle(title)}`)
    .digest('hex')
    .slice(0, KEY_CHARS)
}

/** 128 bits: nobody finds two by chance. */
const KEY_CHARS = 32
const COPIES_MAX = 5

/** Without the ending of a file and what says that it is a copy: `Copy of Plan (1).docx` is `plan`. */
export function plainTitle(title: string): string {
  let plain = title
    .normalize('NFC')
    .trim()
    .replace(/\.[\p{L}\p{N}]{1,8}$/u, '')
  for (let n = 0; n < COPIES_MAX; n++) {
    const shorter = plain
      .replace(/^(?:copy of|kopie von|copie de|copia de)\s+/i, '')
      .replace(/\s*(?:\(\d{1,3}\)|[-–]\s*copy(?:\s*\(\d{1,3}\))?)$/i, '')
      .trim()
    if (shorter === plain || shorter === '') break
    plain = shorter
  }
  return plain.toLowerCase().replaceAll(/\s+/g, ' ')
}
