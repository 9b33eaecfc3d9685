/** The same files on both sides: told by numbers, made without looking anything up. */
import { closeSync, mkdirSync, openSync, utimesSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syntheticBytes } from '../../src/sim/onedrive/synthetic.ts'

/** `tops` folders with `subs` folders each, which have `files` files each. */
export type Tree = { tops: number; subs: number; files: number; bytesMax: number }

export type Huge = { files: number; bytes: number }

/** Long ago: the time of an upload is not the time of the file. */
export const MODIFIED_MS = Date.UTC(2021, 5, 1)

export type TreeFile = { path: string; content: Buffer }

export function fileCount({ tops, subs, files }: Tree): number {
  return tops * subs * files
}

export function* foldersOf({ tops, subs }: Tree): Generator<string> {
  for (let top = 0; top < tops; top++) {
    yield `t${top}`
    for (let sub = 0; sub < subs; sub++) yield `t${top}/s${sub}`
  }
}

export function* filesOf(tree: Tree): Generator<TreeFile> {
  for (let number = 0; number < fileCount(tree); number++) {
    const sub = Math.floor(number / tree.files)
    const path = `t${Math.floor(sub / tree.subs)}/s${sub % tree.subs}/f${number}.txt`
    yield { path, content: fileContent(number, tree.bytesMax) }
  }
}

/** Every file is another one; sizes are spread evenly. */
function fileContent(number: number, bytesMax: number): Buffer {
  const bytes = 16 + ((number * 7919) % (bytesMax - 16))
  return Buffer.alloc(bytes, `file ${number} `)
}

export function makeHere(root: string, tree: Tree): void {
  for (const folder of foldersOf(tree)) mkdirSync(join(root, folder), { recursive: true })
  for (const { path, content } of filesOf(tree)) {
    writeFileSync(join(root, path), content)
    utimesSync(join(root, path), MODIFIED_MS / 1000, MODIFIED_MS / 1000)
  }
}

export function hugeFiles({ files, bytes }: Huge): { path: string; seed: number; size: number }[] {
  return Array.from({ length: files }, (_, at) => ({ path: `huge/${at}.bin`, seed: 100 + at, size: bytes }))
}

/** Content that the simulator recognises, and need not keep. */
export function makeHugeHere(root: string, huge: Huge): void {
  for (const { path, seed, size } of hugeFiles(huge)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    const file = openSync(join(root, path), 'w')
    try {
      for (const piece of syntheticBytes({ seed, size })) writeSync(file, piece)
    } finally {
      closeSync(file)
    }
  }
}
