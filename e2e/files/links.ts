/**
 * What somebody puts on another disk, with a link in its place. Nobody has deleted it by that, and so it stays in
 * OneDrive; it comes back as it was.
 */
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { OWN_FOLDER } from '../../src/apps/files/names.ts'
import { diskPath, namesIn } from './odd-names.ts'

export class OtherDisk {
  readonly #root: string
  readonly #disk: string
  #count = 0

  constructor(root: string) {
    this.#root = root
    this.#disk = `${root}-on-another-disk`
    mkdirSync(this.#disk)
  }

  take(path: string): void {
    this.#count += 1
    const there = join(this.#disk, String(this.#count))
    renameSync(join(this.#root, path), there)
    symlinkSync(there, join(this.#root, path))
  }

  /** Where a link leads to; undefined: it is none, or leads elsewhere. */
  behind(path: string): string | undefined {
    return this.#behind(join(this.#root, path))
  }

  /** Of all files there, behind such links as well. */
  contents(path: string): Buffer[] {
    const behind = this.#behind(path)
    if (behind !== undefined) return this.contents(behind)
    const stats = lstatSync(diskPath(path))
    if (stats.isDirectory()) return namesIn(path).flatMap((name) => this.contents(join(path, name)))
    return stats.isFile() ? [readFileSync(diskPath(path))] : []
  }

  #behind(path: string): string | undefined {
    const target = linkAt(path)
    return target !== undefined && dirname(target) === this.#disk ? target : undefined
  }

  bringBack(path: string): boolean {
    const there = this.behind(path)
    if (there === undefined) return false
    rmSync(join(this.#root, path))
    renameSync(there, join(this.#root, path))
    return true
  }

  /** No link is left: what they led to is in their place, and what no link led to any more is in the folder. */
  bringAllBack(): void {
    for (let links = linksIn(this.#root); links.length > 0; links = linksIn(this.#root)) {
      // Copies come last: they are of what is back by then.
      const [first] = links.filter((path) => this.behind(path) !== undefined)
      if (first !== undefined) this.bringBack(first)
      else replaceByCopy(join(this.#root, links[0]!))
    }
    for (const name of readdirSync(this.#disk))
      renameSync(join(this.#disk, name), join(this.#root, `from-another-disk-${name}`))
    if (linksIn(this.#root).length > 0) this.bringAllBack()
  }
}

export function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(diskPath(path)).toString()
  } catch {
    return undefined // nothing, or no link, or not even a folder above it
  }
}

function replaceByCopy(path: string): void {
  const target = linkAt(path)!
  rmSync(path)
  const isAround = `${path}/`.startsWith(`${target}/`)
  if (isAround || !isThere(target)) return
  cpSync(target, path, { recursive: true, verbatimSymlinks: true })
}

function isThere(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false // nothing, or a file where a folder above it was
  }
}

export function linksIn(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((path) => path.split('/')[0] !== OWN_FOLDER && basename(path) !== OWN_FOLDER)
    .sort()
}
