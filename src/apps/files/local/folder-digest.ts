/**
 * What is in a folder, in one short text: equal where names, types and stats of everything in it are. A folder whose
 * listing has the digest of its rows need not be compared with them, nor need they be read.
 *
 * Of a folder in it only the identity counts: its own times and size say nothing about it.
 */
import { hash } from 'node:crypto'
import type { LocalRow } from '../trees.ts'
import { type PackedListing, STAT_FIELDS } from './listing.ts'

type Digested = Pick<LocalRow, 'name' | 'type' | 'dev' | 'ino' | 'birthNs' | 'mtimeNs' | 'ctimeNs' | 'size'>

const LETTERS = { file: 'f', folder: 'd', link: 'l', other: 'o' } as const
/** No name has it. */
const END = '/'

/**
 * `skipped`: a name that takes no part. A link that may be followed is never equal to a row; one that is not is as
 * anything else that takes no part.
 */
export function digestOfListing(
  { names, types, numbers: packed }: PackedListing,
  { followLinks, skipped }: { followLinks: boolean; skipped?: string | undefined },
): string {
  const numbers = packed.subarray(0, names.length * STAT_FIELDS)
  let letters = ''
  for (const type of types) letters += LETTERS[type === 'link' && !followLinks ? 'other' : type]
  const at = skipped === undefined ? -1 : names.indexOf(skipped)
  if (at < 0 && !letters.includes(LETTERS.folder)) return digest(names, letters, numbers)
  const kept = new BigInt64Array(numbers)
  for (let index = 0; index < types.length; index++) if (types[index] === 'folder') forgetContent(kept, index)
  if (at < 0) return digest(names, letters, kept)
  kept.copyWithin(at * STAT_FIELDS, (at + 1) * STAT_FIELDS)
  return digest(
    names.toSpliced(at, 1),
    letters.slice(0, at) + letters.slice(at + 1),
    kept.subarray(0, (names.length - 1) * STAT_FIELDS),
  )
}

/** Of all that is in a folder as the local tree has it, missing rows left out, in any order. */
export function digestOfRows(rows: readonly Digested[]): string {
  const sorted = rows.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  const numbers = new BigInt64Array(rows.length * STAT_FIELDS)
  let letters = ''
  for (const [index, row] of sorted.entries()) {
    letters += LETTERS[row.type]
    const at = index * STAT_FIELDS
    numbers[at] = BigInt(row.dev)
    numbers[at + 1] = BigInt(row.ino)
    numbers[at + 2] = BigInt(row.birthNs)
    numbers[at + 3] = BigInt(row.mtimeNs)
    numbers[at + 4] = BigInt(row.size)
    numbers[at + 5] = BigInt(row.ctimeNs)
    if (row.type === 'folder') forgetContent(numbers, index)
  }
  return digest(
    sorted.map(({ name }) => name),
    letters,
    numbers,
  )
}

function forgetContent(numbers: BigInt64Array, index: number): void {
  numbers[index * STAT_FIELDS + 3] = 0n
  numbers[index * STAT_FIELDS + 4] = 0n
  numbers[index * STAT_FIELDS + 5] = 0n
}

/** In two calls, as each of them is one for the whole: an object that is fed piece by piece takes twice as long. */
function digest(names: readonly string[], letters: string, numbers: BigInt64Array): string {
  const text = `${letters}${END}${names.join(END)}`
  return hash('sha256', numbers, 'base64') + hash('sha256', text, 'base64')
}
