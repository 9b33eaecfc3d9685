/**
 * Looks for what is not at its place among what takes no part: nobody has deleted what was moved there, and it is known
 * again by its identity. Nothing is opened or changed by what is found here.
 */
import { accessSync, constants, lstatSync } from 'node:fs'
import type { Filter } from '../filter.ts'
import { OWN_FOLDER } from '../names.ts'
import { ASIDE, isAside, type LocalRow, type LocalStat, nameKey } from '../trees.ts'
import {
  type FolderReader,
  illegibleFolders,
  listHeld,
  listRaw,
  type PackedListing,
  STAT_FIELDS,
  statAt,
} from './listing.ts'
import type { Root } from './root.ts'
import type { ScanOptions } from './scan-options.ts'
import type { Places } from './scan-places.ts'

/** So many names in folders that are left out are looked at. */
const LEFT_OUT_NAMES_MAX = 100_000

const TOO_MANY_LEFT_OUT =
  'it is not here, and the folders that are left out hold too many names to look for it there'
const UNREADABLE_LEFT_OUT = 'it is not here, and a folder that is left out, where it may be, cannot be read: '

type Pause = (names: number) => Promise<void>

/**
 * What is not at its place, or was in a folder that is not, may be in one that is left out: then nobody has deleted it.
 * `leftOutFolders`: those that the look has seen. A look at some folders has not seen all, so all are looked for first.
 */
export async function seekInLeftOut(
  options: ScanOptions,
  scan: { places: Places; reader: FolderReader; leftOutFolders: readonly (string | Buffer)[]; pause: Pause },
): Promise<void> {
  const { root, filter, crossMounts = false, leftOutNamesMax: namesMax = LEFT_OUT_NAMES_MAX } = options
  const { places, reader, pause } = scan
  const gone = await allGone(options, { places, pause })
  if (gone.length === 0) return
  const search = new LeftOutSearch({
    root,
    filter,
    crossMounts,
    reader,
    namesMax,
    pause,
    rows: gone.map(({ row }) => row),
    tell: (stat, reason) => places.leftOut(stat, reason),
  })
  const folders = options.folders ? await search.folders() : scan.leftOutFolders
  const doubt = await search.lookInto(folders)
  if (doubt !== undefined) places.doubtMissing(doubt)
  for (const { row, top } of gone) if (row !== top && places.leftOutAs(row)) places.emptied(top)
}

/** What is not at its place, and what was in it and went nowhere else. */
async function allGone(
  { tree, folders }: ScanOptions,
  { places, pause }: { places: Places; pause: Pause },
): Promise<{ row: LocalRow; top: LocalRow }[]> {
  // What is aside stays so in a look at some folders, whatever is found.
  const rows = places.gone.filter((row) => !folders || !isAside(row))
  const gone = rows.map((row) => ({ row, top: row }))
  // It grows meanwhile.
  for (const { row, top } of gone) {
    if (row.type !== 'folder') continue
    const inside = await tree.children(row.id)
    for (const one of inside) if (!one.isMissing && !places.isClaimed(one.id)) gone.push({ row: one, top })
    await pause(inside.length)
  }
  return gone
}

type LeftOutSearchOptions = {
  root: Root
  filter: Filter
  reader: FolderReader
  crossMounts: boolean
  namesMax: number
  /** What is looked for. */
  rows: readonly LocalRow[]
  /** Told of each thing that may be one of them. */
  tell: (stat: LocalStat, reason: string) => void
  /** Called after so many names: others have their turn, and it throws where the search is to end. */
  pause: Pause
}

class LeftOutSearch {
  readonly #options: LeftOutSearchOptions
  readonly #inodes: ReadonlySet<bigint>

  constructor(options: LeftOutSearchOptions) {
    this.#options = options
    this.#inodes = new Set(options.rows.map(({ ino }) => BigInt(ino)))
  }

  /**
   * All folders of the root that are left out, for a look that did not see all of it. Those whose names are not valid
   * text are left out, too, and are told by their bytes.
   */
  async folders(): Promise<(string | Buffer)[]> {
    const { root, reader, pause } = this.#options
    const leftOut: (string | Buffer)[] = []
    const stack = ['']
    for (let below = stack.pop(); below !== undefined; below = stack.pop()) {
      const path = root.path + below
      const listing = listHeld(root, reader, path)
      if ('isGone' in listing) continue
      leftOut.push(...illegibleFolders(path, listing))
      this.#tellIllegible(listing, ASIDE.illegible)
      for (const [at, name] of listing.names.entries()) {
        if (below === '' && nameKey(name) === OWN_FOLDER) continue
        const isFolder = listing.types[at] === 'folder'
        if (!isFolder && !this.#isWanted(listing, at)) continue
        const isLeftOut = this.#isLeftOut(`${below}/${name}`.slice(1), listing, at)
        if (isLeftOut && this.#isWanted(listing, at)) this.#options.tell(statAt(listing, at), ASIDE.renamed)
        if (!isFolder) continue
        if (isLeftOut) leftOut.push(`${path}/${name}`)
        else if (this.#isSameDisk(listing, at)) stack.push(`${below}/${name}`)
      }
      await pause(listing.names.length + 1)
    }
    return leftOut
  }

  /** Tells of what is in them; returns why something that was not found may be there all the same. */
  async lookInto(folders: readonly (string | Buffer)[]): Promise<string | undefined> {
    const { root, reader, pause, tell, namesMax } = this.#options
    const stack = [...folders]
    let left = namesMax
    let doubt: string | undefined
    for (let path = stack.pop(); path !== undefined; path = stack.pop()) {
      if (left <= 0) return TOO_MANY_LEFT_OUT
      const before = left
      if (typeof path !== 'string') {
        const inside = listRaw(path)
        if (!inside) {
          if (isWithinReach(path)) doubt ??= UNREADABLE_LEFT_OUT + this.#shown(path)
          continue
        }
        left -= inside.length
        for (const { path: below, look } of inside) {
          if (this.#inodes.has(BigInt(look.ino))) tell(look, ASIDE.moved)
          if (look.type === 'folder') stack.push(below)
        }
      } else {
        const listing = listHeld(root, reader, path)
        if ('isGone' in listing) {
          if (!listing.isGone && isWithinReach(path)) doubt ??= UNREADABLE_LEFT_OUT + this.#shown(path)
          continue
        }
        left -= listing.names.length + listing.illegible.length
        this.#tellIllegible(listing, ASIDE.moved)
        stack.push(...illegibleFolders(path, listing))
        for (const [at, name] of listing.names.entries()) {
          if (this.#isWanted(listing, at)) tell(statAt(listing, at), ASIDE.moved)
          if (listing.types[at] === 'folder') stack.push(`${path}/${name}`)
        }
      }
      await pause(before - left + 1)
    }
    return doubt
  }

  #shown(path: string | Buffer): string {
    return path.toString().slice(this.#options.root.path.length + 1)
  }

  #tellIllegible({ illegible }: PackedListing, reason: string): void {
    for (const { look } of illegible)
      if (look && this.#inodes.has(BigInt(look.ino))) this.#options.tell(look, reason)
  }

  #isWanted({ numbers }: PackedListing, at: number): boolean {
    return this.#inodes.has(numbers[at * STAT_FIELDS + 1]!)
  }

  #isLeftOut(path: string, listing: PackedListing, at: number): boolean {
    const type = listing.types[at] === 'folder' ? 'folder' : 'file'
    return this.#options.filter.excluded(path, { type, size: statAt(listing, at).size }) !== undefined
  }

  #isSameDisk(listing: PackedListing, at: number): boolean {
    return this.#options.crossMounts || statAt(listing, at).dev === listing.self.dev
  }
}

/**
 * Whether something could have been moved there by this user, who may have closed it since. Folders of others that are
 * closed to him, as containers leave them in a folder that is left out, hold nothing of his: on their account no
 * deletion ever waits.
 */
function isWithinReach(path: string | Buffer): boolean {
  try {
    if (lstatSync(path).uid === process.getuid?.()) return true
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false // gone, or not his to write to
  }
}
