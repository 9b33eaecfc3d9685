/** A copy of the whole folder that somebody keeps, and puts in its place later: with the marker, and with old times. */
import { lstatSync, mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { OWN_FOLDER } from '../../src/apps/files/filter.ts'
import { type Tree, treeOf } from './disk-tree.ts'
import { diskPath } from './odd-names.ts'

const MARKER = 'root.json'

export class Backup {
  readonly tree: Tree
  readonly #times: Map<string, Date>
  readonly #marker: Buffer

  constructor(root: string) {
    this.tree = treeOf(root)
    const files = [...this.tree].filter(([, bytes]) => bytes !== undefined)
    this.#times = new Map(files.map(([path]) => [path, lstatSync(diskPath(join(root, path))).mtime]))
    this.#marker = readFileSync(join(root, OWN_FOLDER, MARKER))
  }

  /** What was there is elsewhere then. */
  replace(root: string, elsewhere: string): void {
    renameSync(root, elsewhere)
    for (const own of ['trash', 'partial']) mkdirSync(join(root, OWN_FOLDER, own), { recursive: true })
    for (const [path, bytes] of this.tree) {
      const at = diskPath(join(root, path))
      if (bytes === undefined) {
        mkdirSync(at, { recursive: true })
        continue
      }
      mkdirSync(diskPath(dirname(join(root, path))), { recursive: true })
      writeFileSync(at, bytes)
      utimesSync(at, this.#times.get(path)!, this.#times.get(path)!)
    }
    // Last: until then it is not the folder.
    writeFileSync(join(root, OWN_FOLDER, MARKER), this.#marker)
  }
}
