/** What is in a folder of the disk. */
import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OWN_FOLDER } from '../../src/apps/files/names.ts'
import { diskPath, namesIn } from './odd-names.ts'

/** Path → bytes; undefined for a folder. */
export type Tree = Map<string, Buffer | undefined>

/** Links are not what they lead to. */
export function treeOf(root: string, folder = ''): Tree {
  const tree: Tree = new Map()
  for (const name of namesIn(join(root, folder))) {
    if (folder === '' && name === OWN_FOLDER) continue
    const path = folder === '' ? name : `${folder}/${name}`
    const at = diskPath(join(root, path))
    const stats = lstatSync(at)
    if (stats.isSymbolicLink()) continue
    if (stats.isDirectory()) {
      tree.set(path, undefined)
      for (const [below, bytes] of treeOf(root, path)) tree.set(below, bytes)
    } else tree.set(path, readFileSync(at))
  }
  return tree
}
